// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `cached` with a `memory_cache`.

#include <penstock/storage/cached.hpp>

#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_cache.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/count_allocations.hpp"
#include "support/stamped_files.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace ps::literals;

namespace cached_memory_test {

using penstock_test::stamped_files;

constexpr std::uint64_t block = 64 << 10;
constexpr ps::memory_cache_options small{.block = block};

std::string noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string made(size, '\0');
  for (char& one : made) one = static_cast<char>(random());
  return made;
}

/// Objects of many sizes around those of blocks, 35 blocks in all.
struct objects {
  std::vector<std::string> contents;
  stamped_files files;

  objects() {
    for (const std::size_t size : std::initializer_list<std::size_t>{
             1, block - 1, block, block + 1, 4 * block, 4 * block + 1, 5 * block + 777, 13 * block}) {
      contents.push_back(noise(size, static_cast<unsigned>(size)));
      files.files = files.files.add("object-" + std::to_string(contents.size()) + ".bin", contents.back());
    }
  }
  [[nodiscard]] ps::simulated_storage<stamped_files> counted() const {
    return ps::simulated_storage(files, {.latency = std::chrono::milliseconds(0)});
  }
  [[nodiscard]] std::uint64_t blocks(std::uint64_t size) const {
    std::uint64_t all = 0;
    for (const auto& one : contents) all += (one.size() + size - 1) / size;
    return all;
  }
  /// Whether reads of random ranges are right.
  template <class Session>
  bool all_right(Session& session, unsigned seed, int times = 200) const {
    std::mt19937 random(seed);
    bool right = true;
    for (int i = 0; i < times; ++i) {
      const auto id = static_cast<ps::object_id>(random() % contents.size());
      const std::string& whole = contents[id];
      const std::size_t offset = random() % (whole.size() + 1), left = whole.size() - offset;
      const std::size_t size =
          random() % 4 == 0 ? left : random() % (std::min<std::size_t>(left, 3 * block) + 1);
      std::vector<std::byte> got(size);
      session.read(id, offset, got);
      right = right && ps::text_of(got) == std::string_view(whole).substr(offset, size);
    }
    return right;
  }
  template <class Session>
  void read_all(Session& session) const {
    for (ps::object_id id = 0; id < contents.size(); ++id) {
      std::vector<std::byte> got(contents[id].size());
      session.read(id, 0, got);
      REQUIRE((ps::text_of(got) == contents[id]));  // its bytes are no message
    }
  }
};

/// An object of many blocks, which counts the reads of each, and takes its time.
struct counting_store {
  struct counts {
    std::atomic<int> reads[40]{};
    std::atomic<int> fail{0};       // so many reads fail
    std::atomic<bool> hold{false};  // reads wait until it is false
    std::atomic<int> in_flight{0};
  };
  std::shared_ptr<counts> seen = std::make_shared<counts>();
  std::vector<std::string> list{"object"};

  struct session {
    std::shared_ptr<counts> seen;
    [[nodiscard]] std::uint64_t size(ps::object_id) const { return 40 * block - 77; }
    [[nodiscard]] ps::object_version version(ps::object_id id) const { return {size(id), 5}; }
    void read(ps::object_id, std::uint64_t offset, ps::mutable_bytes into) const {
      ++seen->reads[offset / block];
      ++seen->in_flight;
      while (seen->hold) std::this_thread::yield();
      --seen->in_flight;
      if (seen->fail > 0 && seen->fail-- > 0) throw ps::error(ps::errc::io, "the store is ill");
      for (std::size_t i = 0; i < into.size(); ++i) into[i] = byte_at(offset + i);
      std::this_thread::yield();
    }
    void will_need(ps::object_id, std::uint64_t, std::uint64_t) const noexcept {}
  };
  [[nodiscard]] static std::byte byte_at(std::uint64_t offset) {
    return static_cast<std::byte>((offset * 0x9e3779b97f4a7c15u) >> 56);
  }
  [[nodiscard]] std::span<const std::string> names() const { return list; }
  [[nodiscard]] session connect() const { return {seen}; }
};
/// Whether some bytes are those of the object.
bool right(std::uint64_t offset, std::span<const std::byte> got) {
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != counting_store::byte_at(offset + i)) return false;
  return true;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ps::error& e) {
    return std::string(ps::to_string(e.code())) + ": " + e.what();
  }
  return "none";
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

using memory_session = ps::cached<ps::memory_cache, stamped_files>::session;
static_assert(ps::background_session<memory_session>);
static_assert(ps::session_traits_of<memory_session>().latency);

TEST_CASE("storage/cached_memory: any range has its bytes, and each block is fetched once for all storages") {
  const objects all;
  const auto far = all.counted();
  const ps::memory_cache memory(8_MiB, small);
  const ps::cached near(far, memory);
  CHECK(contains(near.describe(), "memory_cache(8388608 bytes)"));
  auto first = near.connect();
  auto second = ps::cached(far, memory).connect();  // another storage, the same blocks
  CHECK(first.size(2) == block);
  CHECK(first.version(5) == far.connect().version(5));
  CHECK(all.all_right(first, 1));
  CHECK(all.all_right(second, 2));
  all.read_all(second);
  CHECK(far.reads() == all.blocks(block));
  CHECK(first.report().counters.fetched + second.report().counters.fetched == all.blocks(block));
  CHECK(first.report().counters.uncached + second.report().counters.uncached == 0);
  CHECK(first.report().counters.evicted + second.report().counters.evicted == 0);

  auto third = near.connect();
  CHECK(third.resident(7));
  all.read_all(third);
  CHECK(all.all_right(third, 3));
  CHECK(third.report().counters.fetched == 0);
  CHECK(third.report().counters.hits >= all.blocks(block));
  CHECK(far.reads() == all.blocks(block));
  CHECK(contains(error_of([&] {
                   std::vector<std::byte> got(2);
                   third.read(0, 0, got);
                 }),
                 "format: "));
}

TEST_CASE("storage/cached_memory: blocks outlive sessions, and go with the last copy of the value") {
  const objects all;
  const auto far = all.counted();
  {
    const ps::memory_cache memory(8_MiB, small);
    {
      auto session = ps::cached(far, memory).connect();
      all.read_all(session);
    }
    auto session = ps::cached(far, memory).connect();
    all.read_all(session);
    CHECK(far.reads() == all.blocks(block));
  }
  auto session = ps::cached(far, ps::memory_cache(8_MiB, small)).connect();
  all.read_all(session);
  CHECK(far.reads() == 2 * all.blocks(block));
}

TEST_CASE("storage/cached_memory: a cache that is too small keeps to its limit") {
  const objects all;
  for (const auto evict : {ps::eviction::lru, ps::eviction::fifo}) {
    const auto far = all.counted();
    const ps::cached near(far, ps::memory_cache(12 * block + 2000, {.block = block, .evict = evict}));
    auto session = near.connect();
    CHECK(all.all_right(session, 4));
    all.read_all(session);
    const auto counted = session.report().counters;
    CHECK(counted.evicted > 50);
    CHECK(counted.fetched - counted.evicted == 12);  // what is there now
    CHECK(counted.uncached == 0);
    CHECK(far.reads() == counted.fetched);

    // The first block of the last object, again and again, between those of all others.
    std::vector<std::byte> got(100);
    session.read(7, 0, got);
    std::uint64_t again = 0;
    for (std::uint64_t i = 1; i < 40; ++i) {
      session.read(i % 2 == 0 ? 7 : 6, (i % 2 == 0 ? 1 + i / 2 % 12 : i / 2 % 5) * block, got);
      const std::uint64_t before = session.report().counters.fetched;
      session.read(7, 0, got);
      again += session.report().counters.fetched - before;
    }
    CHECK((again == 0) == (evict == ps::eviction::lru));
  }
}

TEST_CASE("storage/cached_memory: an object that loses a block is no longer resident") {
  const objects all;
  const ps::cached near(all.files, ps::memory_cache(13 * block + 2000, small));  // 13 blocks
  auto session = near.connect();
  CHECK_FALSE(session.resident(7));
  std::vector<std::byte> got(13 * block);
  session.read(7, 0, got);
  CHECK(session.resident(7));
  session.read(4, 0, ps::mutable_bytes(got).first(4 * block));
  session.read(7, 0, got);
  CHECK(session.resident(7));  // the call after the first looks again
  CHECK((ps::text_of(got) == all.contents[7]));
}

TEST_CASE("storage/cached_memory: many threads fetch each block once") {
  const counting_store far;
  const ps::memory_cache memory(8_MiB, small);
  const ps::cached near(far, memory);
  auto first = near.connect(), second = near.connect();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t / 2);  // two threads each want the same
      std::vector<std::byte> got(3 * block);
      for (int i = 0; i < 150; ++i) {
        const std::uint64_t offset = random() % (36 * block);
        const auto some = ps::mutable_bytes(got).first(random() % (3 * block));
        (t % 2 == 0 ? first : second).read(0, offset, some);
        if (!right(offset, some)) ++wrong;
      }
    });
  for (std::thread& one : threads) one.join();
  CHECK(wrong == 0);
  for (const auto& one : far.seen->reads) CHECK(one <= 1);
  CHECK(first.report().counters.uncached + second.report().counters.uncached == 0);
}

TEST_CASE("storage/cached_memory: many threads, with a cache that is too small") {
  const counting_store far;
  for (const std::uint64_t limit : {block + 1000, 3 * block, 20 * block}) {
    const ps::memory_cache memory(limit, small);
    auto first = ps::cached(far, memory).connect(), second = ps::cached(far, memory).connect();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 6; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        std::vector<std::byte> got(2 * block);
        for (int i = 0; i < 100; ++i) {
          const std::uint64_t offset = random() % (37 * block);
          const auto some = ps::mutable_bytes(got).first(random() % (2 * block));
          (t % 2 == 0 ? first : second).read(0, offset, some);
          if (!right(offset, some)) ++wrong;
        }
      });
    for (std::thread& one : threads) one.join();
    CHECK(wrong == 0);
    CHECK(first.report().counters.evicted + second.report().counters.evicted > 100);
  }
}

TEST_CASE("storage/cached_memory: a failed fetch reaches who asked for it, and who waited tries again") {
  const counting_store far;
  const ps::cached near(far, ps::memory_cache(8_MiB, small));
  auto session = near.connect();
  far.seen->fail = 1;
  far.seen->hold = true;
  std::atomic<int> failed{0}, got_it{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::vector<std::byte> got(10);
      try {
        session.read(0, 5 * block, got);
        if (right(5 * block, got)) ++got_it;
      } catch (const ps::error& e) {
        if (contains(e.what(), "the store is ill")) ++failed;
      }
    });
  while (far.seen->in_flight == 0) std::this_thread::yield();
  far.seen->hold = false;
  for (std::thread& one : threads) one.join();
  CHECK(failed == 1);
  CHECK(got_it == 3);
  CHECK(far.seen->reads[5] == 2);
  CHECK(session.report().counters.fetched == 1);
  CHECK(session.report().counters.uncached == 0);
}

TEST_CASE("storage/cached_memory: who waits too long reads past the cache, and is not waited for again") {
  const counting_store far;
  const ps::cached near(far,
                        ps::memory_cache(8_MiB, {.block = block, .max_wait = std::chrono::milliseconds(0)}));
  auto session = near.connect();
  far.seen->hold = true;
  std::thread fetches([&] {
    std::vector<std::byte> got(10);
    session.read(0, 0, got);
  });
  while (far.seen->in_flight != 1) std::this_thread::yield();
  std::thread passes([&] {
    std::vector<std::byte> got(10);
    session.read(0, 0, got);
    if (!right(0, got)) std::terminate();
  });
  while (far.seen->in_flight != 2) std::this_thread::yield();
  far.seen->hold = false;
  fetches.join();
  passes.join();
  CHECK(session.report().counters.uncached == 1);
  CHECK(session.report().counters.fetched == 1);
}

TEST_CASE("storage/cached_memory: cancelling, and the end of a session, wait for nobody else") {
  const counting_store far;
  const ps::cached near(far, ps::memory_cache(8_MiB, small));
  auto fetching = near.connect();
  far.seen->hold = true;
  std::vector<std::byte> one(10), two(10), three(10);
  struct seen {
    std::atomic<int> done{0};
    std::atomic<int> failed{0};
  } first, second;
  const auto listener = [](seen& into) {
    return ps::read_listener{&into, [](void* self, std::uint64_t, std::exception_ptr failed) noexcept {
                               if (failed) ++static_cast<seen*>(self)->failed;
                               ++static_cast<seen*>(self)->done;
                             }};
  };
  const ps::read_request wanted{0, 0, one, 0}, same{0, 0, two, 0};
  fetching.read_many(std::span(&wanted, 1), listener(first));
  while (far.seen->in_flight == 0) std::this_thread::yield();
  {
    auto waits = near.connect();
    waits.read_many(std::span(&same, 1), listener(second));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    waits.cancel();
    while (second.done != 1) std::this_thread::yield();
    waits.read_many(std::span(&same, 1), listener(second));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(second.done == 2);
  CHECK(second.failed == 2);
  CHECK(first.done == 0);
  far.seen->hold = false;
  while (first.done != 1) std::this_thread::yield();
  CHECK(first.failed == 0);
  auto session = near.connect();
  session.read(0, 0, three);
  CHECK(right(0, three));
  CHECK(session.report().counters.hits == 1);
}

TEST_CASE("storage/cached_memory: objects are told apart by their stamps, and without one by their session") {
  const ps::memory_cache memory(8_MiB, small);
  const auto first_letter = [&](char letter, std::uint64_t stamp) {
    const stamped_files where{ps::memory_files().add("a", std::string(1000, letter)), stamp};
    auto session = ps::cached(where, memory).connect();
    std::vector<std::byte> got(1000);
    session.read(0, 0, got);
    session.read(0, 0, got);
    CHECK(session.report().counters.hits >= 1);
    return std::string(ps::text_of(got).substr(0, 1));
  };
  CHECK(first_letter('a', 1) == "a");
  CHECK(first_letter('b', 2) == "b");
  CHECK(first_letter('?', 1) == "a");
  CHECK(first_letter('c', 0) == "c");
  CHECK(first_letter('d', 0) == "d");
}

TEST_CASE("storage/cached_memory: memory over a disk over a store, each with what the one before lacks") {
  const objects all;
  const penstock_test::temp_dir dir;
  const auto far = all.counted();
  const ps::disk_cache disk((dir.path() / "cache").string(), 64_MiB, {.block = 4 * block});
  const ps::cached on_disk(far, disk);
  const std::uint64_t of_disk = all.blocks(4 * block), of_memory = all.blocks(block);
  {
    const ps::memory_cache memory(8_MiB, small);
    auto session = ps::cached(on_disk, memory).connect();
    all.read_all(session);
    CHECK(far.reads() == of_disk);
    const auto counted = session.report().counters;  // of both tiers
    CHECK(counted.fetched == of_memory + of_disk);
    CHECK(counted.hits == of_memory - of_disk);
    all.read_all(session);
    CHECK(session.report().counters.fetched == counted.fetched);
    CHECK(session.report().counters.hits == counted.hits + of_memory);
    CHECK(all.all_right(session, 8));
  }
  // Memory is gone; the disk is not.
  auto session = ps::cached(on_disk, ps::memory_cache(8_MiB, small)).connect();
  all.read_all(session);
  CHECK(far.reads() == of_disk);
  CHECK(session.report().counters.fetched == of_memory);
  CHECK(session.report().counters.hits == of_memory);  // of the disk
}

TEST_CASE("storage/cached_memory: a cache around itself does not wait for itself") {
  const objects all;
  const auto far = all.counted();
  const ps::memory_cache memory(8_MiB, {.block = block, .max_wait = std::chrono::hours(1)});
  const ps::cached once(far, memory);
  auto session = ps::cached(once, memory).connect();
  all.read_all(session);
  CHECK(far.reads() == all.blocks(block));
  CHECK(session.report().counters.uncached == all.blocks(block));  // by the inner one
  all.read_all(session);
  CHECK(all.all_right(session, 9));
  CHECK(far.reads() == all.blocks(block));
}

TEST_CASE("storage/cached_memory: two runs share what is in memory") {
  const penstock_test::temp_dir dir;
  ps::shard_writer out((dir.path() / "a-%d.tar").string(), {.maxcount = 40});
  for (std::size_t i = 0; i < 160; ++i)
    out.write(std::to_string(i),
              {{"bin", std::string(20'000 + i % 13 * 999, static_cast<char>('a' + (i + i / 30) % 26))}});
  (void)out.close();
  const std::string pattern = (dir.path() / "a-{0..3}.tar").string();
  const auto epoch_of = [](auto& run, std::uint64_t epoch) {
    std::string all;
    for (auto&& batch : run.epoch(epoch))
      for (std::size_t i = 0; i < batch.valid_size(); ++i)
        all.append(ps::text_of(ps::as_bytes(ps::get<"bin">(batch)[i]))).append("\n");
    return all;
  };
  const auto loader = [](const auto& source) {
    return (source | ps::shuffle(ps::seed(7)) | ps::fields<"bin"> | ps::batch(8, ps::ragged) |
            ps::prefetch(2) | ps::workers(2))
        .open();
  };
  const ps::memory_cache memory(8_MiB, small);
  const ps::simulated_storage far(ps::file(pattern), {.latency = std::chrono::microseconds(200)});
  auto plain = loader(ps::webdataset(pattern));
  const std::string expected[2] = {epoch_of(plain, 0), epoch_of(plain, 1)};
  std::uint64_t fetched = 0;
  {
    auto run = loader(ps::webdataset(ps::cached(far, memory)));
    CHECK(epoch_of(run, 0) == expected[0]);
    CHECK(epoch_of(run, 1) == expected[1]);
    fetched = run.counters().storage.fetched;
    CHECK(fetched > 0);
    CHECK(run.counters().storage.uncached == 0);
  }
  const std::uint64_t reads = far.reads();
  auto run = loader(ps::webdataset(ps::cached(far, memory)));
  CHECK(epoch_of(run, 0) == expected[0]);
  CHECK(epoch_of(run, 1) == expected[1]);
  CHECK(run.counters().storage.fetched == 0);
  CHECK(run.counters().storage.hits > 0);
  CHECK(far.reads() == reads);
}

TEST_CASE("storage/cached_memory: a child of a fork begins with an empty cache") {
  const objects all;
  const ps::cached near(all.files, ps::memory_cache(8_MiB, small));
  auto session = near.connect();
  all.read_all(session);
  CHECK(penstock_test::in_child([&] {
          auto own = near.connect();
          return all.all_right(own, 5, 50) && own.report().counters.fetched > 0 ? 0 : 1;
        }) == 0);
  CHECK(all.all_right(session, 6));
}

TEST_CASE("storage/cached_memory: more memory than there is, is one error when a run begins") {
  const objects all;
  for (const std::uint64_t limit : std::initializer_list<std::uint64_t>{1'000'000_GiB, ~std::uint64_t{0}}) {
    const ps::cached near(all.files, ps::memory_cache(limit));
    for (int i = 0; i < 2; ++i)
      CHECK(
          contains(error_of([&] { (void)near.connect(); }),
                   "argument: penstock: there is no memory for a memory_cache of " + std::to_string(limit)));
  }
}

TEST_CASE("storage/cached_memory: a read of what is there allocates nothing") {
  const objects all;
  const ps::cached near(all.files, ps::memory_cache(8_MiB, small));
  auto session = near.connect();
  all.read_all(session);
  std::vector<std::byte> got(3 * block);
  const auto counted = penstock_test::allocations_of([&] {
    for (std::uint64_t i = 0; i < 100; ++i) session.read(7, i * 1000, got);
  });
  CHECK(counted == 0);
}

}  // namespace cached_memory_test
