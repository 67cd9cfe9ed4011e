// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/cached.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/storage/any_of.hpp>
#include <penstock/storage/cache/block_cache.hpp>
#include <penstock/storage/cache/block_folder.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/cache/block_plan.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/memory_cache.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/throttled.hpp>

#include "support/catch.hpp"
#include "support/noting_storage.hpp"
#include "support/stamped_files.hpp"
#include "support/temp_dir.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
namespace blocks = ps::detail::blocks;
using namespace ps::literals;

namespace cached_future_test {

/// The blocks that a run reads, row by row: a new shuffle of all of them in each epoch, each several times.
std::vector<std::uint32_t> shuffled(std::uint32_t count, std::uint32_t times, std::uint32_t epochs) {
  std::mt19937 random(11);
  std::vector<std::uint32_t> all;
  for (std::uint32_t e = 0; e < epochs; ++e) {
    std::vector<std::uint32_t> epoch;
    for (std::uint32_t i = 0; i < times; ++i)
      for (std::uint32_t b = 0; b < count; ++b) epoch.push_back(b);
    std::shuffle(epoch.begin(), epoch.end(), random);
    all.insert(all.end(), epoch.begin(), epoch.end());
  }
  return all;
}

/// How many reads find their block if the one that is needed last goes, and each that is read is kept.
std::size_t best_hits(const std::vector<std::uint32_t>& reads, std::size_t slots) {
  std::vector<std::size_t> next(reads.size());
  std::map<std::uint32_t, std::size_t> seen;
  for (std::size_t i = reads.size(); i-- > 0;) {
    next[i] = seen.contains(reads[i]) ? seen[reads[i]] : reads.size() + i;
    seen[reads[i]] = i;
  }
  std::map<std::uint32_t, std::size_t> in;             // block -> next use
  std::set<std::pair<std::size_t, std::uint32_t>> by;  // the same, by use
  std::size_t hits = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const std::uint32_t block = reads[i];
    if (in.contains(block)) {
      ++hits;
      by.erase({in[block], block});
    } else if (in.size() == slots) {
      const auto last = std::prev(by.end());
      in.erase(last->second);
      by.erase(last);
    }
    in[block] = next[i];
    by.insert({next[i], block});
  }
  return hits;
}

TEST_CASE("storage/cached: when a block is needed next is what a look at all reads says") {
  constexpr std::uint32_t count = 40;
  const std::vector<std::uint32_t> reads = shuffled(count, 30, 3);
  blocks::block_plan plan;
  std::vector<blocks::key> keys;
  for (std::uint64_t b = 0; b < count; ++b) keys.push_back({b % 3, b});  // many in one place of the table
  CHECK(plan.add({keys.begin(), keys.begin() + 15}) == 0);
  CHECK(plan.add({keys.begin() + 15, keys.end()}) == 15);

  std::uint64_t told = 0;
  for (std::uint64_t row = 0; row <= reads.size(); row += 7) {
    for (; told < reads.size() && told < row + 500; ++told) plan.plan_read(reads[told], told);
    const bool ends = told == reads.size();
    plan.stand_at(row, told, ends);
    for (std::uint32_t b = 0; b < count; ++b) {
      std::uint64_t at = row;
      while (at < told && reads[at] != b) ++at;
      const blocks::next_use found = plan.next(b);
      REQUIRE(plan.next(keys[b]) == found);
      if (at == told) {
        REQUIRE(found == (ends ? blocks::next_use::never() : blocks::next_use::not_before(told)));
      } else {
        // Reads that follow each other closely are one use, which may have begun before.
        REQUIRE(found.rows_from(0) <= at);
        REQUIRE(found.rows_from(0) + blocks::block_plan::close >= at);
      }
    }
    std::vector<blocks::block_plan::coming> coming;
    plan.list_coming(10, coming);
    REQUIRE(coming.size() <= 10);
    for (std::size_t i = 1; i < coming.size(); ++i) REQUIRE(coming[i - 1].row <= coming[i].row);
    for (const auto& one : coming) REQUIRE(blocks::next_use::at(one.row) == plan.next(one.block));
  }
  CHECK(plan.next(blocks::key{9, 9}) == blocks::next_use::never());
  plan.clear();
  CHECK(plan.next(0) == blocks::next_use::not_before(0));
}

TEST_CASE("storage/cached: a plan has room for a number of uses, whatever lies between them") {
  blocks::block_plan plan;
  (void)plan.add(std::vector<blocks::key>{{1, 1}, {2, 2}});
  std::uint64_t row = 0;
  for (std::size_t i = 0; i < blocks::block_plan::max_uses; ++i, row += 10) {
    REQUIRE(plan.has_room());
    plan.plan_read(i % 2 == 0 ? 0 : 1, row);
  }
  CHECK_FALSE(plan.has_room());
  plan.stand_at(25, row, false);
  CHECK(plan.has_room());
  CHECK(plan.next(0) == blocks::next_use::at(40));
  CHECK(plan.next(1) == blocks::next_use::at(30));
}

TEST_CASE("storage/cached: a plan forgets what is behind it, also if one block is read all the time") {
  constexpr std::uint32_t count = 8;
  blocks::block_plan plan;
  std::vector<blocks::key> keys;
  for (std::uint64_t b = 0; b < count; ++b) keys.push_back({b, b});
  (void)plan.add(keys);
  for (std::uint64_t row = 0; row < blocks::block_plan::max_uses + 10'000; ++row) {
    if (row % 1000 == 0) {
      REQUIRE(plan.has_room());
      plan.stand_at(row - std::min<std::uint64_t>(row, 500), row, false);
    }
    plan.plan_read(0, row);
    plan.plan_read(1 + static_cast<std::uint32_t>(row) % (count - 1), row);
  }
  // No use is longer, and no row lies between two of them.
  plan.clear();
  constexpr std::uint64_t longest = blocks::block_plan::longest_use;
  for (std::uint64_t row = 0; row < 3 * longest; ++row) plan.plan_read(0, row);
  for (const std::uint64_t row : {longest - 1, longest, longest + 1, 3 * longest - 1}) {
    plan.stand_at(row, 3 * longest, false);
    CHECK(plan.next(0) == blocks::next_use::at(row));
  }
}

TEST_CASE("storage/cached: the block goes that nobody needs, then the one that is needed last") {
  constexpr std::uint64_t slots = 6;
  std::vector<std::uint64_t> memory(blocks::next_uses::bytes(slots) / 8);
  const blocks::next_uses uses(reinterpret_cast<std::byte*>(memory.data()), slots);
  uses.begin(3);
  uses.begin(9);
  uses.stand_at(3, 100, 0);
  uses.stand_at(9, 1000, 0);
  const auto never = blocks::next_use::never();
  const auto at = [](std::uint64_t row) { return blocks::next_use::at(row); };
  uses.set(3, 0, at(150)), uses.set(9, 0, at(2000));  // 50
  uses.set(3, 1, never), uses.set(9, 1, at(1070));    // 70
  uses.set(3, 2, never), uses.set(9, 2, never);
  uses.set(3, 3, at(500));                                                      // 9 has not said
  uses.set(3, 4, at(90)), uses.set(9, 4, never);                                // it stands behind that
  uses.set(3, 5, blocks::next_use::not_before(300)), uses.set(9, 5, at(1201));  // 200
  blocks::outlook future;
  future.add(uses, 3);
  future.add(uses, 9);
  future.settle();
  std::vector<std::uint64_t> found;
  for (std::uint32_t slot = 0; slot < slots; ++slot) found.push_back(future.distance(slot));
  CHECK(found == std::vector<std::uint64_t>{50, 70, blocks::next_uses::farthest, 0, 0, 200});
  CHECK(future.distance(9, at(1007)) == 7);

  // Two jobs, one a hundred times as fast as the other: what counts is the time.
  uses.stand_at(3, 100, 1'000'000);
  uses.stand_at(9, 1000, 10'000);
  blocks::outlook timed;
  timed.add(uses, 3);
  timed.add(uses, 9);
  timed.settle();
  CHECK(timed.distance(0) == 10'000'000);
  CHECK(timed.distance(1) == 700'000);

  uses.forget(2);
  CHECK(future.distance(2) == 0);
  CHECK(uses.get(3, 2).is_stale(0));
  CHECK_FALSE(never.is_stale(1'000'000));
  CHECK(at(5).is_stale(6));
  CHECK_FALSE(at(6).is_stale(6));
  CHECK(blocks::next_use::not_before(6).is_stale(0));
}

/// A session of the test's own cache that knows which blocks are read, and reads them.
struct driven {
  static constexpr std::uint64_t block = 128_KiB;
  const std::vector<std::uint32_t>& reads;
  std::uint64_t horizon;
  std::uint64_t told = 0;

  template <class Session>
  void step(Session& session, std::uint64_t row, bool ends) {
    const ps::access_plan_sink plan = session.access_plan();
    const std::uint64_t size = reads.size();
    if (plan.self != nullptr) {
      for (; told < size && told < row + horizon; ++told)
        session.plan_read(0, reads[told] * block + 7, 3, told);
      plan.stand_at(plan.self, row, told, ends && told == size);
    }
    std::byte one[3];
    session.read(0, reads[row] * block + 7, one);
  }
};

TEST_CASE("storage/cached: with half of the data, a new shuffle each epoch has the hits of the best choice") {
  constexpr std::uint32_t count = 120, slots = 60;
  std::string content(count * driven::block, '\0');
  for (std::size_t i = 0; i < content.size(); i += 999) content[i] = static_cast<char>(i / 999);
  const penstock_test::stamped_files far{ps::memory_files().add("a", content)};
  const std::vector<std::uint32_t> reads = shuffled(count, 6, 4);
  const auto hits_of = [&](ps::eviction evict, std::uint64_t horizon) {
    const penstock_test::temp_dir dir;
    std::uint64_t limit = slots * driven::block;
    const auto fits = [&] { return blocks::block_index::slots_within(limit, driven::block, driven::block); };
    while (fits() < slots) limit += 4096;
    const ps::cached near(far, ps::disk_cache(dir.path().string(), limit,
                                              {.block = driven::block, .evict = evict, .ahead = 0}));
    auto session = near.connect();
    driven all{reads, horizon};
    for (std::uint64_t row = 0; row < reads.size(); ++row) all.step(session, row, true);
    const ps::storage_counters counted = session.report().counters;
    CHECK(counted.hits + counted.fetched == reads.size());
    CHECK(counted.uncached == 0);
    return counted.hits;
  };
  const std::size_t best = best_hits(reads, slots), lru = hits_of(ps::eviction::lru, 0);
  const std::size_t epoch = hits_of(ps::eviction::belady, reads.size() / 4);
  const std::size_t whole = hits_of(ps::eviction::belady, reads.size());
  CHECK(static_cast<double>(whole) >= .98 * static_cast<double>(best));
  CHECK(static_cast<double>(epoch) >= .98 * static_cast<double>(best));
  CHECK(whole <= best);
  CHECK(lru * 4 < whole * 3);
  // Without a future it is lru.
  CHECK(hits_of(ps::eviction::belady, 0) <= lru + reads.size() / 100);
}

TEST_CASE(
    "storage/cached: what a run reads soon is fetched before it is asked for, and no sooner block goes") {
  constexpr std::uint32_t count = 40;
  const penstock_test::stamped_files far{
      ps::memory_files().add("a", std::string(count * driven::block, 'x'))};
  const penstock_test::temp_dir dir;
  const ps::cached near(far,
                        ps::disk_cache(dir.path().string(), 64_MiB, {.block = driven::block, .ahead = 2}));
  auto session = near.connect();
  const ps::access_plan_sink plan = session.access_plan();
  for (std::uint32_t b = 0; b < count; ++b) session.plan_read(0, b * driven::block, 10, 10 * b);
  // Nothing is read, and yet everything comes.
  for (std::uint64_t come = 0; come < count; come = session.report().counters.fetched) {
    plan.stand_at(plan.self, 10 * come, 10 * count, true);
    std::this_thread::yield();
  }
  CHECK(session.report().counters.hits == 0);
  std::byte one[1];
  for (std::uint32_t b = 0; b < count; ++b) session.read(0, b * driven::block, one);
  CHECK(session.report().counters.hits == count);
  CHECK(session.report().counters.fetched == count);
}

TEST_CASE("storage/cached: a cache that goes by use or by age does not ask to be told the future") {
  const penstock_test::stamped_files far{ps::memory_files().add("a", std::string(4 * driven::block, 'x'))};
  const penstock_test::temp_dir dir;
  for (const auto evict : {ps::eviction::lru, ps::eviction::fifo, ps::eviction::belady}) {
    const ps::disk_cache near(dir.path().string(), 8 * driven::block,
                              {.block = driven::block, .evict = evict});
    CHECK((ps::cached(far, near).connect().access_plan().self != nullptr) == (evict == ps::eviction::belady));
    // Memory around it asks for itself, and keeps what it hears to itself.
    const ps::cached memory(ps::cached(far, near), ps::memory_cache(1_MiB, {.block = driven::block}));
    auto session = memory.connect();
    const ps::access_plan_sink plan = session.access_plan();
    REQUIRE(plan.self != nullptr);
    session.plan_read(0, 0, 10, 5);
    plan.stand_at(plan.self, 0, 6, true);
    CHECK(plan.has_room(plan.self));
  }
}

TEST_CASE("storage/cached: memory over a folder: both know the future") {
  constexpr std::uint32_t count = 120, slots = 40;
  const penstock_test::stamped_files far{
      ps::memory_files().add("a", std::string(count * driven::block, 'x'))};
  const std::vector<std::uint32_t> reads = shuffled(count, 6, 4);
  const auto hits_of = [&](ps::eviction evict) {
    const penstock_test::temp_dir dir;
    const std::uint64_t limit = slots * (driven::block + 100);
    const ps::cached disk(far, ps::disk_cache(dir.path().string(), 2 * limit,
                                              {.block = driven::block, .evict = evict, .ahead = 0}));
    const ps::cached near(disk, ps::memory_cache(limit, {.block = driven::block, .evict = evict}));
    auto session = near.connect();
    driven all{reads, reads.size() / 4};
    for (std::uint64_t row = 0; row < reads.size(); ++row) all.step(session, row, true);
    const ps::storage_counters counted = session.report().counters;  // of both
    CHECK(counted.uncached == 0);
    return counted;
  };
  const ps::storage_counters lru = hits_of(ps::eviction::lru), ours = hits_of(ps::eviction::belady);
  CHECK(ours.fetched * 4 < lru.fetched * 3);
}

/// Ten places, and who reads blocks by their numbers.
struct small_cache {
  penstock_test::stamped_files far{ps::memory_files().add("a", std::string(40 * driven::block, 'x'))};
  penstock_test::temp_dir dir;
  ps::cached<ps::disk_cache, penstock_test::stamped_files> near{
      far, ps::disk_cache(dir.path().string(), 11 * driven::block, {.block = driven::block, .ahead = 0})};

  template <class Session>
  static void read(Session& session, std::uint32_t first, std::uint32_t end) {
    std::byte one[1];
    for (std::uint32_t b = first; b < end; ++b) session.read(0, b * driven::block, one);
  }
  template <class Session>
  static void plan_read(Session& session, std::uint32_t first, std::uint32_t end, std::uint64_t row) {
    for (std::uint32_t b = first; b < end; ++b) session.plan_read(0, b * driven::block, 1, row + 10 * b);
  }
  template <class Session>
  static void stand_at(Session& session, std::uint64_t row, std::uint64_t seen, bool ends) {
    const ps::access_plan_sink plan = session.access_plan();
    plan.stand_at(plan.self, row, seen, ends);
  }
};

TEST_CASE("storage/cached: a process that died plans for nothing") {
  const small_cache all;
  auto session = all.near.connect();
  all.stand_at(session, 0, 2000, false);  // before the other one, whose row of next uses stays
  const ::pid_t child = ::fork();
  if (child == 0) {
    auto own = all.near.connect();
    all.read(own, 0, 10);
    all.plan_read(own, 0, 10, 1000);
    all.stand_at(own, 0, 2000, true);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));

  all.read(session, 20, 30);
  all.plan_read(session, 20, 29, 1000);
  all.stand_at(session, 0, 2000, true);
  const std::uint64_t hits = session.report().counters.hits;
  // For these 29 goes, which nobody needs, and then 31. Of what the dead one needs of them nothing is known,
  // and if that counted, those would go that were used longest ago.
  all.read(session, 31, 33);
  all.read(session, 20, 29);
  CHECK(session.report().counters.hits == hits + 9);
}

TEST_CASE("storage/cached: what comes ahead takes no place of what is needed before it") {
  using answer = blocks::block_folder::answer;
  const penstock_test::temp_dir dir;
  blocks::block_folder folder(ps::disk_cache(dir.path().string(), 1_MiB, {.block = driven::block}),
                              &blocks::xxh3);
  const std::vector<std::byte> bytes(driven::block);
  const std::uint64_t count = folder.slots();
  const auto begun = folder.stops().now();
  for (std::uint64_t b = 1; b <= count; ++b) {
    const answer got = folder.ask({b, b}, begun);
    REQUIRE(got.is == answer::mine);
    CHECK(folder.fill(got.where, {b, b}, bytes, begun));
  }
  folder.stand_at(
      0, 0, [](const void*, const blocks::key& one) { return blocks::next_use::at(10 * one.high); }, nullptr);
  const blocks::key other{99, 99};
  CHECK(folder.ask(other, begun, blocks::next_use::at(10 * count + 1), true).is == answer::nothing);
  CHECK(folder.ask(other, begun, blocks::next_use::at(10 * count), true).is == answer::nothing);
  const answer got = folder.ask(other, begun, blocks::next_use::at(10 * count - 1), true);
  REQUIRE(got.is == answer::mine);
  folder.give_up(got.where, begun);
  std::atomic<std::uint32_t> hint{0};
  CHECK_FALSE(folder.find({count, count}, hint));  // which was needed last
  CHECK(folder.find({1, 1}, hint));
}

TEST_CASE("storage/cached: a run that ended and goes on needs its blocks again") {
  const small_cache all;
  auto session = all.near.connect();
  all.read(session, 0, 10);
  all.stand_at(session, 50, 100, true);  // none of them again
  all.plan_read(session, 0, 5, 100);
  all.stand_at(session, 60, 200, false);
  all.read(session, 20, 25);  // for which the others go
  const std::uint64_t hits = session.report().counters.hits;
  all.read(session, 0, 5);
  CHECK(session.report().counters.hits == hits + 5);
}

TEST_CASE("storage/cached: a run that goes elsewhere goes by what it reads there") {
  const small_cache all;
  auto session = all.near.connect();
  all.read(session, 0, 10);
  all.plan_read(session, 5, 10, 1000);
  all.plan_read(session, 0, 5, 2000);  // last
  all.stand_at(session, 900, 3000, false);
  const ps::access_plan_sink plan = session.access_plan();
  plan.forget(plan.self);
  all.plan_read(session, 0, 5, 10);  // first
  all.stand_at(session, 0, 200, false);
  all.read(session, 20, 25);
  const std::uint64_t hits = session.report().counters.hits;
  all.read(session, 0, 5);
  CHECK(session.report().counters.hits == hits + 5);
}

TEST_CASE("storage/cached: the child of a fork may let a session that plans go") {
  const small_cache all;
  auto session = std::make_unique<decltype(all.near.connect())>(all.near.connect());
  all.read(*session, 0, 10);
  all.plan_read(*session, 0, 10, 10);
  all.stand_at(*session, 0, 200, true);
  const ::pid_t child = ::fork();
  if (child == 0) {
    session.reset();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  // And its parent plans as before.
  all.read(*session, 20, 30);
  all.stand_at(*session, 0, 200, true);
  const std::uint64_t hits = session->report().counters.hits;
  all.read(*session, 0, 9);
  CHECK(session->report().counters.hits == hits + 9);
}

TEST_CASE("storage/cached: beside a process that is stopped, blocks go by when they were used") {
  const small_cache all;
  const ::pid_t child = ::fork();
  if (child == 0) {
    auto session = all.near.connect();
    all.read(session, 0, 10);
    all.plan_read(session, 0, 10, 1000);
    all.stand_at(session, 0, 2000, true);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  REQUIRE(WIFSTOPPED(status));
  auto session = all.near.connect();
  for (int i = 0; i < 2; ++i) {
    all.read(session, 20, 30);
    all.plan_read(session, 20, 30, 1000 * static_cast<std::uint64_t>(i));
    all.stand_at(session, 0, 2000, true);
  }
  const std::uint64_t hits = session.report().counters.hits;
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(hits == 10);
}

TEST_CASE("storage/cached: what a session reads that does not plan stays no longer than what others need") {
  const small_cache all;
  auto plans = all.near.connect();
  auto reads = all.near.connect();
  all.read(plans, 0, 10);
  all.plan_read(plans, 0, 10, 10);
  all.stand_at(plans, 0, 200, true);
  for (std::uint32_t b = 20; b < 40; ++b) {
    all.read(reads, b, b + 1);
    all.stand_at(plans, 0, 200, true);  // it hears of the new block
  }
  const std::uint64_t hits = plans.report().counters.hits;
  all.read(plans, 0, 9);
  CHECK(plans.report().counters.hits == hits + 9);
}

TEST_CASE("storage/cached: sessions come, plan and go while others choose") {
  const small_cache all;
  std::atomic<bool> wrong{false};
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 20; ++i) {
        auto session = all.near.connect();
        for (std::uint64_t row = 0; row < 30; ++row) {
          const auto block = static_cast<std::uint32_t>(random() % 40);
          session.plan_read(0, block * driven::block, 1, row);
          if (row % 3 == 0) all.stand_at(session, row, row + 1, row % 2 == 0);
          if (row % 11 == 10) session.access_plan().forget(session.access_plan().self);
          std::byte one[2];
          session.read(0, block * driven::block + 1, one);
          if (one[0] != std::byte{'x'} || one[1] != std::byte{'x'}) wrong = true;
        }
      }
    });
  threads.clear();
  CHECK_FALSE(wrong);
}

TEST_CASE("storage/cached: more sessions than can plan have the right bytes, too") {
  const penstock_test::stamped_files far{ps::memory_files().add("a", std::string(4 * driven::block, 'x'))};
  const penstock_test::temp_dir dir;
  const ps::cached near(
      far, ps::disk_cache(dir.path().string(), 3 * driven::block, {.block = driven::block, .ahead = 0}));
  std::vector<decltype(near.connect())> sessions;
  for (std::uint32_t i = 0; i < blocks::next_uses::maximum + 2; ++i) {
    auto& session = sessions.emplace_back(near.connect());
    const ps::access_plan_sink plan = session.access_plan();
    session.plan_read(0, i % 4 * driven::block, 1, 3);
    plan.stand_at(plan.self, 0, 4, false);
    std::byte one[1];
    session.read(0, i % 4 * driven::block, one);
    REQUIRE(one[0] == std::byte{'x'});
  }
}

/// Two schemes, and so two storages to choose from.
template <char Scheme>
struct noted_by_url : penstock_test::noting_storage {
  static constexpr char scheme[] = {Scheme, '\0'};
  static constexpr std::string_view schemes[] = {scheme};
  explicit noted_by_url(const std::string& url)
      : penstock_test::noting_storage{ps::memory_files().add(url, std::string(1000, 'x'))} {}
  explicit noted_by_url(const penstock_test::noting_storage& same) : penstock_test::noting_storage(same) {}
};

TEST_CASE("storage/cached: storages around it, or chosen when the program runs, pass on what is planned") {
  const penstock_test::noting_storage noted{ps::memory_files().add("a", std::string(1000, 'x'))};
  using range = penstock_test::noted_range;
  const auto hears = [&](const auto& where) {
    noted.notes->planned.clear();
    noted.notes->plans = true;
    auto session = where.connect();
    CHECK(session.access_plan().self == noted.notes.get());
    session.plan_read(0, 100, 20, 5);
    CHECK(noted.notes->planned == std::vector<range>{{100, 120}});
    noted.notes->plans = false;
    CHECK(session.access_plan().self == nullptr);
  };
  hears(ps::retrying(noted));
  hears(ps::throttled(noted, {.max_in_flight = 2}));
  hears(ps::any_of<noted_by_url<'a'>, noted_by_url<'b'>>(noted_by_url<'b'>(noted)));
  const ps::memory_cache keeps_recent(1_MiB, {.block = 64_KiB, .evict = ps::eviction::lru});
  const auto recent = ps::cached(noted, keeps_recent).connect();  // which itself does not want to know
  CHECK(recent.access_plan().self == nullptr);
  noted.notes->plans = true;
  noted.notes->planned.clear();
  CHECK(recent.access_plan().self != nullptr);
  recent.plan_read(0, 100, 20, 5);
  CHECK(noted.notes->planned == std::vector<range>{{100, 120}});
  // None of these plans.
  static_assert(!ps::planning_session<ps::retrying<ps::memory_files>::session>);
}

}  // namespace cached_future_test
