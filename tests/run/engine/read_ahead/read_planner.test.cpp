// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/read_ahead/read_planner.hpp>

#include <penstock/evaluation/parts.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/engine/read_ahead/range_list.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/placement.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/synthetic.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace ps::literals;

namespace read_planner_test {

/// What a session was told.
struct told {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> reads;  // row, object and offset
  std::uint64_t row = 0, seen = 0, forgotten = 0, maximum = 1'000'000;
  bool ends = false;

  template <class Condition>
  bool wait_until(Condition met) {
    std::unique_lock held(mutex);
    return changed.wait_for(held, std::chrono::seconds(20), met);
  }
};

/// Files that want to know what will be read.
struct planning_files {
  ps::file files;
  std::shared_ptr<told> what = std::make_shared<told>();

  struct session : ps::file::session {
    static constexpr ps::session_traits traits = {.latency = true};
    std::shared_ptr<told> what;
    session(const ps::file& of, std::shared_ptr<told> given)
        : ps::file::session(of.connect()), what(std::move(given)) {}
    bool resident(ps::object_id) const { return false; }
    bool shows(ps::object_id) const = delete;

    ps::access_plan_sink access_plan() const {
      return {what.get(),
              [](void* self) {
                auto& all = *static_cast<told*>(self);
                const std::scoped_lock lock(all.mutex);
                return all.reads.size() < all.maximum;
              },
              [](void* self, std::uint64_t row, std::uint64_t seen, bool ends) noexcept {
                auto& all = *static_cast<told*>(self);
                const std::scoped_lock lock(all.mutex);
                all.row = row;
                all.seen = seen;
                all.ends = ends;
                all.changed.notify_all();
              },
              [](void* self) noexcept {
                auto& all = *static_cast<told*>(self);
                const std::scoped_lock lock(all.mutex);
                all.reads.clear();
                all.row = all.seen = 0;
                all.ends = false;
                ++all.forgotten;
              }};
    }
    void plan_read(ps::object_id id, std::uint64_t offset, std::uint64_t, std::uint64_t row) const {
      const std::scoped_lock lock(what->mutex);
      what->reads.emplace_back(row, std::uint64_t{id} << 32 | offset);
    }
  };
  [[nodiscard]] std::span<const std::string> names() const { return files.names(); }
  [[nodiscard]] session connect() const { return {files, what}; }
};
static_assert(ps::planning_session<planning_files::session>);
static_assert(ps::planning_session<ps::retrying<planning_files>::session>);

constexpr std::size_t samples = 60;
planning_files shards(const penstock_test::temp_dir& dir) {
  ps::shard_writer out((dir.path() / "a-%d.tar").string(), {.maxcount = 20});
  for (std::size_t i = 0; i < samples; ++i) out.write(std::to_string(i), {{"txt", std::to_string(100 + i)}});
  (void)out.close();
  return {ps::file((dir.path() / "a-{0..2}.tar").string())};
}

/// Where each sample is, in the order of a run's first `epochs` epochs.
template <class Plan>
std::vector<std::uint64_t> places(const Plan& plan, std::uint64_t epochs, std::uint64_t first = 0) {
  std::vector<std::uint64_t> all;
  auto run = plan.open();
  for (std::uint64_t e = first; e < epochs; ++e)
    for (auto&& batch : run.epoch(e))
      for (std::size_t i = 0; i < batch.valid_size(); ++i) {
        // A tar archive has a header of 512 bytes before each member of up to 512 bytes.
        const std::uint64_t number =
            std::stoull(std::string(ps::text_of(ps::as_bytes(ps::get<"txt">(batch)[i])))) - 100;
        all.push_back((number / 20) << 32 | (number % 20 * 1024 + 512));
      }
  return all;
}
/// The places by row; a row without a read is left out, and each has one.
std::vector<std::uint64_t> by_row(told& what) {
  const std::scoped_lock lock(what.mutex);
  std::vector<std::uint64_t> all;
  std::uint64_t row = 0;
  for (const auto& [at, place] : what.reads) {
    CHECK(at >= row);
    row = at;
    all.push_back(place);
  }
  return all;
}
bool begins_with(const std::vector<std::uint64_t>& all, const std::vector<std::uint64_t>& first) {
  return all.size() >= first.size() && std::equal(first.begin(), first.end(), all.begin());
}
bool ends_with(const std::vector<std::uint64_t>& all, const std::vector<std::uint64_t>& last) {
  return last.size() <= all.size() && std::equal(last.rbegin(), last.rend(), all.rbegin());
}

TEST_CASE("run/read_planner: a session hears what a run of three epochs will read, and that it ends there") {
  const penstock_test::temp_dir dir;
  const planning_files files = shards(dir);
  const auto loader = [](const auto& source) {
    return source | ps::shuffle(ps::seed(3)) | ps::shard(1, 2) | ps::fields<"txt"> | ps::prefetch(4) |
           ps::batch(5) | ps::prefetch(2) | ps::workers(2);
  };
  const auto expected = places(loader(ps::webdataset(files.files)), 3);
  REQUIRE(expected.size() == 3 * 30);

  const auto plan = loader(ps::webdataset(ps::retrying(files)));
  auto run = plan.open();
  auto& what = *files.what;
  std::size_t batches = 0;
  for (auto epoch : run.epochs(3))
    for (auto&& batch : epoch) {
      (void)batch;
      // To the end of the next epoch all is known; only what was listed before it began is not.
      if (++batches == 3) CHECK(what.wait_until([&] { return what.seen >= 60; }));
      if (batches == 9) CHECK(what.wait_until([&] { return what.ends; }));
    }
  const auto all = by_row(what);
  CHECK(all.size() >= 30);
  CHECK(ends_with(expected, all));
  const std::scoped_lock lock(what.mutex);
  CHECK(what.forgotten == 0);
  CHECK(what.seen == expected.size());
}

TEST_CASE(
    "run/read_planner: without a number of epochs the next ones are expected, as far as there is room") {
  // Without a limit to what is remembered: to the end of the eighth of them.
  for (const std::uint64_t maximum : {70u, 1000u}) {
    const penstock_test::temp_dir dir;
    const planning_files files = shards(dir);
    auto& what = *files.what;
    what.maximum = maximum;
    const auto loader = [](const auto& source) {
      return source | ps::shuffle(ps::seed(3)) | ps::fields<"txt"> | ps::prefetch(4) | ps::batch(4) |
             ps::prefetch(2) | ps::workers(1);
    };
    const auto expected = places(loader(ps::webdataset(files.files)), 10);
    const auto plan = loader(ps::webdataset(files));
    auto run = plan.open();
    std::uint64_t batches = 0;
    for (auto&& batch : run.epoch(0)) {
      (void)batch;
      if (++batches == 3)
        CHECK(
            what.wait_until([&] { return maximum == 70 ? what.reads.size() >= maximum : what.seen == 540; }));
    }
    const auto all = by_row(what);
    CHECK(all.size() < (maximum == 70 ? 90 : 541));
    const std::scoped_lock lock(what.mutex);
    CHECK_FALSE(what.ends);
    const auto at = std::find(expected.begin(), expected.end(), all.front());
    CHECK(begins_with({at, expected.end()}, all));
  }
}

TEST_CASE("run/read_planner: a number of epochs that is smaller than was expected is heard of, too") {
  const penstock_test::temp_dir dir;
  const planning_files files = shards(dir);
  auto& what = *files.what;
  const auto loader = [](const auto& source) {
    return source | ps::shuffle(ps::seed(3)) | ps::fields<"txt"> | ps::prefetch(4) | ps::batch(4) |
           ps::prefetch(2) | ps::workers(1);
  };
  const auto expected = places(loader(ps::webdataset(files.files)), 1);
  auto run = loader(ps::webdataset(files)).open();
  std::uint64_t batches = 0;
  for (auto&& batch : run.epoch(0)) {
    (void)batch;
    if (++batches != 10) continue;
    CHECK(what.wait_until([&] { return what.seen > 60; }));
    (void)run.epochs(1);
    CHECK(what.wait_until([&] { return what.ends; }));
  }
  CHECK(batches == 15);
  CHECK(ends_with(expected, by_row(what)));
  const std::scoped_lock lock(what.mutex);
  CHECK(what.forgotten == 1);
  CHECK(what.seen == 60);
}

TEST_CASE("run/read_planner: after a jump to another epoch it begins again there") {
  const penstock_test::temp_dir dir;
  const planning_files files = shards(dir);
  auto& what = *files.what;
  const auto loader = [](const auto& source) {
    return source | ps::shuffle(ps::seed(3)) | ps::fields<"txt"> | ps::prefetch(4) | ps::batch(4) |
           ps::prefetch(2) | ps::workers(2);
  };
  const auto expected = places(loader(ps::webdataset(files.files)), 9, 7);
  what.maximum = 100;
  auto run = loader(ps::webdataset(files)).open();
  std::uint64_t batches = 0;
  for (auto&& batch : run.epoch(0)) {
    (void)batch;
    if (++batches == 4) break;
  }
  CHECK(what.wait_until([&] { return what.seen > 0; }));
  for (auto&& batch : run.epoch(7)) {
    (void)batch;
    if (++batches == 12) CHECK(what.wait_until([&] { return what.reads.size() >= 100; }));
  }
  const auto all = by_row(what);
  {
    const std::scoped_lock lock(what.mutex);
    CHECK(what.forgotten == 1);
  }
  CHECK(begins_with(expected, std::vector(all.begin(), all.begin() + 100)));
}

TEST_CASE("run/read_planner: an index is not loaded before the run comes to its shard") {
  const penstock_test::temp_dir dir;
  const planning_files files = shards(dir);
  auto& what = *files.what;
  const ps::manifest known = ps::webdataset(files.files).manifest();
  const auto plan = ps::webdataset(files, known) | ps::fields<"txt"> | ps::prefetch(4) | ps::batch(4) |
                    ps::prefetch(1) | ps::workers(1);
  const auto expected = places(ps::webdataset(files.files) | ps::fields<"txt"> | ps::batch(4), 1);
  auto run = plan.open();
  std::uint64_t batches = 0;
  for (auto epoch : run.epochs(1))
    for (auto&& batch : epoch) {
      (void)batch;
      ++batches;
      if (batches == 1) {
        CHECK(what.wait_until([&] { return what.seen != 0; }));
        CHECK(by_row(what).size() <= 20);
      }
      if (batches == 11) CHECK(what.wait_until([&] { return what.seen >= 40; }));
    }
  CHECK(batches == 15);
  const auto all = by_row(what);
  REQUIRE_FALSE(all.empty());
  const auto at = std::find(expected.begin(), expected.end(), all.front());
  CHECK(begins_with({at, expected.end()}, all));
}

/// A session that remembers nothing, and so has room for everything.
struct planner {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t row = 0, seen = 0, tells = 0, forgotten = 0;

  struct session : ps::memory_files::session {
    planner* into;
    explicit session(planner* given)
        : ps::memory_files::session(ps::memory_files().add("a", "bytes").connect()), into(given) {}
    [[nodiscard]] ps::access_plan_sink access_plan() const {
      return {into, [](void*) { return true; },
              [](void* self, std::uint64_t now, std::uint64_t known, bool) noexcept {
                auto& all = *static_cast<planner*>(self);
                const std::scoped_lock lock(all.mutex);
                ++all.tells;
                all.row = now;
                all.seen = known;
                all.changed.notify_all();
              },
              [](void* self) noexcept {
                auto& all = *static_cast<planner*>(self);
                const std::scoped_lock lock(all.mutex);
                ++all.forgotten;
              }};
    }
    void plan_read(ps::object_id, std::uint64_t, std::uint64_t, std::uint64_t) const {}
  };
  template <class Condition>
  bool wait_until(Condition met) {
    std::unique_lock held(mutex);
    return changed.wait_for(held, std::chrono::seconds(20), met);
  }
};

/// What a run's engine does for a read_planner, without a run.
struct engine_part {
  planner what;
  planner::session session{&what};
  ps::feed first;
  std::atomic<std::uint64_t> calls{0};
  std::atomic<bool> fails{false};
  std::chrono::microseconds each{0};

  engine_part(std::uint64_t size, std::uint64_t batch) {
    const auto plan = ps::synthetic({.samples = size, .bytes = 1, .shards = 1}) | ps::batch(batch);
    first = ps::feed(ps::make_feed_facts(plan, ps::make_sample_orders(plan)));
  }
  [[nodiscard]] ps::hinter hints() {
    ps::hinter made;
    made.self = this;
    made.plan_read = [](void* self, const ps::placement& rows, ps::planned_reads& into) {
      auto& me = *static_cast<engine_part*>(self);
      into.stand_at(rows.run_row);
      into(me.session, 0, 0, 1);
      ++me.calls;
      std::this_thread::sleep_for(me.each);
      if (me.fails) throw std::runtime_error("no answer");
    };
    return made;
  }
};

/// Waits until it is told twice in a row what it knows, and at least so much; returns what that is.
std::uint64_t resting_at(planner& what, std::uint64_t least) {
  std::uint64_t before = 0, tells = 0;
  CHECK(what.wait_until([&] {
    const bool same = what.seen == before && what.tells != tells;
    before = what.seen;
    tells = what.tells;
    return before > 2 * least || (same && before >= least);
  }));
  return before;
}

TEST_CASE("run/read_planner: it looks so many rows ahead and no further, and goes on as the run does") {
  constexpr std::uint64_t batch = std::uint64_t{1} << 18, maximum = ps::read_planner::max_rows;
  engine_part part(100 * maximum, batch);
  planner& what = part.what;
  ps::read_planner all;
  all.start(part.first, 0, part.hints(), nullptr);
  CHECK(all.limit(1, false));
  CHECK(resting_at(what, maximum) == maximum);
  all.passed(10 * batch);
  all.passed(3 * batch);  // which is less
  CHECK(resting_at(what, maximum + 10 * batch) == maximum + 10 * batch);
  all.stop();
  CHECK(what.row == 10 * batch);
}

TEST_CASE("run/read_planner: of blocks that are read all the time it looks so many epochs ahead, too") {
  constexpr std::uint64_t size = 100, maximum = ps::read_planner::max_epochs;
  engine_part part(size, 10);
  ps::read_planner all;
  all.start(part.first, 0, part.hints(), nullptr);
  CHECK(all.limit(1, false));
  CHECK(resting_at(part.what, (1 + maximum) * size) == (1 + maximum) * size);
  all.stands_in(2);
  all.passed(2 * size);
  CHECK(resting_at(part.what, (3 + maximum) * size) == (3 + maximum) * size);
}

TEST_CASE("run/read_planner: where a run stands that stands still is told again and again") {
  engine_part part(100, 10);
  planner& what = part.what;
  ps::read_planner all;
  all.start(part.first, 0, part.hints(), nullptr);
  CHECK(all.limit(1, true));
  all.passed(40);
  CHECK(what.wait_until([&] { return what.row == 40 && what.seen == 100; }));
  const std::uint64_t tells = [&] {
    const std::scoped_lock lock(what.mutex);
    return what.tells;
  }();
  CHECK(what.wait_until([&] { return what.tells >= tells + 3; }));
}

TEST_CASE(
    "run/read_planner: who restarts it waits for one call of the reader, not for all that are to come") {
  engine_part part(1'000'000, 1);
  part.each = std::chrono::microseconds(200);  // so that all of them would take half an hour
  planner& what = part.what;
  ps::read_planner all;
  all.start(part.first, 0, part.hints(), nullptr);
  CHECK(all.limit(1, false));
  CHECK(what.wait_until([&] { return what.tells != 0; }));
  bool restarted = false;
  std::thread other([&] {
    for (int i = 0; i < 10; ++i) all.restart(part.first, 0);
    const std::scoped_lock lock(what.mutex);
    restarted = true;
    what.changed.notify_all();
  });
  CHECK(what.wait_until([&] { return restarted; }));
  all.stop();  // which lets it in, too
  other.join();
  CHECK(what.forgotten == 10);
}

TEST_CASE("run/read_planner: a reader that fails is asked again, for what comes next") {
  engine_part part(1000, 1);
  part.fails = true;
  ps::read_planner all;
  all.start(part.first, 0, part.hints(), nullptr);
  CHECK(all.limit(1, true));
  CHECK(part.what.wait_until([&] { return part.calls >= 5; }));
  part.fails = false;
  CHECK(part.what.wait_until([&] { return part.what.seen == 1000; }));
  CHECK(part.calls == 1000);
}

}  // namespace read_planner_test
