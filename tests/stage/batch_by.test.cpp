// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/batch_by.hpp>

#include <penstock/core/random.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/inspection/consumed.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/inspection/ledger_proof.hpp>
#include <penstock/inspection/prove.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/require.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/cut_batches.hpp"
#include "support/engine_test.hpp"
#include "support/resume_test.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace batch_by_test {

namespace ps = penstock;
using namespace cut_batches;
using penstock_test::contains;
using penstock_test::error_of;
using penstock_test::first_ints;

namespace {

/// The batches of an epoch, computed the slow way from its samples in order.
batches cut_slowly(const numbers& samples, std::uint64_t limit) {
  batches all;
  std::uint64_t sum = 0;
  for (const std::uint64_t sample : samples) {
    if (all.empty() || sum + length(sample) > limit) {
      all.emplace_back();
      sum = 0;
    }
    all.back().push_back(sample);
    sum += length(sample);
  }
  return all;
}

}  // namespace

TEST_CASE("stage/batch_by: batches are as long as costs allow, in epoch order, with any number of workers") {
  const auto source = ps::generated(500, same) | ps::shuffle(ps::seed(3));
  std::vector<std::size_t> steps;
  for (const std::uint64_t epoch : {0u, 1u, 5u}) {
    const batches expected = cut_slowly(in_order(source, epoch), 60);
    for (const unsigned workers : {0u, 1u, 4u})
      CHECK(got(source | ps::batch_by(length, 60) | ps::workers(workers), epoch) == expected);
    auto run = (source | ps::batch_by(length, 60)).open();
    CHECK(run.epoch(epoch).steps() == expected.size());
    for (auto&& b : run.epoch(epoch)) {
      CHECK(run.steps_per_epoch() == expected.size());
      CHECK(b.global_size() == b.size());
      break;
    }
    steps.push_back(expected.size());
  }
  CHECK(steps[0] != steps[1]);
}

TEST_CASE("stage/batch_by: ranks take batches in turn, and have equally many steps") {
  const auto source = ps::generated(333, same) | ps::shuffle(ps::seed(11));
  const batches whole = cut_slowly(in_order(source, 2), 50);
  for (const std::uint64_t world : {1u, 2u, 3u, 7u, 200u}) {
    for (const ps::tail at_end : {ps::tail::keep, ps::tail::drop}) {
      const std::size_t steps =
          at_end == ps::tail::keep ? (whole.size() + world - 1) / world : whole.size() / world;
      for (std::uint64_t rank = 0; rank<world; rank += world> 10 ? 61 : 1) {
        const auto plan = source | ps::shard(rank, world) | ps::batch_by(length, 50, at_end) | ps::workers(2);
        const batches mine = got(plan, 2);
        INFO("rank " << rank << " of " << world);
        REQUIRE(mine.size() == steps);
        for (std::size_t s = 0; s < steps; ++s) {
          const std::size_t number = s * world + rank;
          CHECK(mine[s] == (number < whole.size() ? whole[number] : numbers{}));
        }
      }
    }
  }
}

TEST_CASE("stage/batch_by: a run resumes from a state after every step, across epochs of different lengths") {
  const auto source =
      ps::generated(90, engine_test::identity) | ps::shuffle(ps::seed(5)) | ps::map(engine_test::noisy);
  const auto plan = source | ps::batch_by(length, 45);
  engine_test::check_all_stops(plan | ps::workers(2), plan | ps::workers(0), 3);
  const auto second = source | ps::shard(1, 3) | ps::batch_by(length, 45);
  engine_test::check_all_stops(second | ps::workers(2), second | ps::workers(3) | ps::prefetch(40), 3);
  const auto dropping = source | ps::repeat(2) | ps::shard(1, 2) | ps::batch_by(length, 45, ps::tail::drop);
  engine_test::check_all_stops(dropping | ps::workers(1), dropping | ps::workers(1), 2);
}

TEST_CASE("stage/batch_by: a state resumes with another number of ranks where one of their steps starts") {
  const auto source = ps::generated(400, same) | ps::shuffle(ps::seed(9));
  const auto on = [&](std::uint64_t rank, std::uint64_t world) {
    return source | ps::shard(rank, world) | ps::batch_by(length, 40) | ps::workers(1);
  };
  const batches whole = cut_slowly(in_order(source, 0), 40);
  const ps::state stopped = ps::state_from_string(to_string(state_after(on(1, 4), 3)));  // 12 batches in all
  CHECK(stopped.step == 3);
  CHECK(stopped.ordinal ==
        std::accumulate(whole.begin(), whole.begin() + 12, std::uint64_t{0},
                        [](std::uint64_t sum, const numbers& b) { return sum + b.size(); }));
  for (const std::uint64_t world : {1u, 2u, 3u, 6u, 12u}) {
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      auto again = on(rank, world).open(stopped);
      std::size_t number = 12 + rank;
      for (auto&& b : again.epoch(0)) {
        const auto values = b.values();
        CHECK(numbers(values.begin(), values.end()) == (number < whole.size() ? whole[number] : numbers{}));
        number += world;
      }
      CHECK(number >= whole.size());
    }
  }
  CHECK_THAT(error_of([&] { (void)on(0, 5).open(stopped); }),
             contains("samples, and no step of 5 ranks starts there; resume on another number of ranks"));
}

TEST_CASE("stage/batch_by: a state of other batches is refused") {
  const auto source = ps::generated(400, same);
  const auto plan = source | ps::batch_by(length, 40);
  const ps::state stopped = state_after(plan, 3);
  CHECK_THAT(error_of([&] { (void)(source | ps::batch_by(length, 41)).open(stopped); }),
             contains("it has batch_by(limit 40, tail keep) where this plan has "
                      "batch_by(limit 41, tail keep)"));
  const auto other = [](std::uint64_t i) -> std::uint64_t { return i % 5 + 1; };
  CHECK_THAT(error_of([&] { (void)(source | ps::batch_by(other, 40)).open(stopped); }),
             contains("starts there: the batches are cut differently now"));
  CHECK_THAT(error_of([&] { (void)plan.open(state_after(source | ps::batch(4), 3)); }),
             contains("another sequence"));
  ps::state edited = stopped;
  edited.rows = 2;
  CHECK_THAT(error_of([&] { (void)plan.open(edited); }), contains("edited"));
  edited = stopped;
  edited.step = ~std::uint64_t{0};
  CHECK_THAT(error_of([&] { (void)plan.open(edited); }), contains("no step"));
}

TEST_CASE("stage/batch_by: a sample above the limit is one error, with both numbers") {
  const auto source = ps::generated(50, same) | ps::shuffle(ps::seed(2));
  const auto cost = [](std::uint64_t i) -> std::uint64_t { return i == 17 ? 900 : 10; };
  const std::string said = error_of([&] { (void)(source | ps::batch_by(cost, 100)).open(); });
  CHECK_THAT(said, contains("sample 17 costs 900, but a batch holds 100 at most"));
  CHECK_THAT(said, contains("[stage batch_by, position 0:8]"));
  CHECK(got(source | ps::batch_by(cost, 900)).size() == 3);
  CHECK_THAT(error_of([] { (void)(ps::generated(5, same) | ps::batch_by(length, 0)).open(); }),
             contains("limit of 0"));
  CHECK_THAT(
      error_of([] { (void)(ps::generated(5, same) | ps::repeat() | ps::batch_by(length, 100)).open(); }),
      contains("goes through an epoch before its first batch"));
  CHECK_THAT(error_of([] { (void)ps::batch_by(length, 5, ps::tail::pad); }),
             contains("tail::keep or tail::drop"));
}

TEST_CASE("stage/batch_by: if only a later epoch has a sample above the limit, its step is the error") {
  // take after shuffle: different samples in each epoch
  const auto source = ps::generated(1000, same) | ps::shuffle(ps::seed(4)) | ps::take(100);
  const auto of = [&](std::uint64_t epoch) { return in_order(source, epoch); };
  std::uint64_t bad = 0, place = 0;
  for (const numbers second = of(1), first = of(0); place < 100; ++place) {
    bad = second[static_cast<std::size_t>(place)];
    if (place > 40 && std::find(first.begin(), first.end(), bad) == first.end()) break;
  }
  REQUIRE(place < 100);
  const auto cost = [bad](std::uint64_t i) -> std::uint64_t { return i == bad ? 11 : 1; };
  for (const unsigned workers : {0u, 2u}) {
    for (std::uint64_t rank = 0; rank < 3; ++rank) {
      auto run = (source | ps::shard(rank, 3) | ps::batch_by(cost, 10) | ps::workers(workers) |
                  ps::prefetch(64) | ps::prefetch(8))
                     .open();
      std::size_t seen = 0;
      const std::string said = error_of([&] {
        for (auto epoch : run.epochs(3))
          for (auto&& b : epoch) {
            CHECK(b.epoch() == epoch.number());
            ++seen;
          }
      });
      CHECK_THAT(said, contains("costs 11, but a batch holds 10"));
      CHECK(seen == 4 + (place + 9) / 10 / 3);
      CHECK(run.stopped());
      CHECK(run.state().epoch == 1);
    }
  }
}

TEST_CASE("stage/batch_by: costs are values too: those of derive, and lists") {
  const penstock_test::temp_dir folder;
  const auto source = ps::generated(120, same);
  const auto index = ps::derive(source, "length", length, folder.path().string());
  const batches expected = cut_slowly(in_order(source | ps::shuffle(ps::seed(6)), 0), 70);
  CHECK(got(source | ps::shuffle(ps::seed(6)) | ps::batch_by(index, 70)) == expected);
  std::vector<std::uint32_t> list;
  for (std::uint64_t i = 0; i < 120; ++i) list.push_back(static_cast<std::uint32_t>(length(i)));
  const auto by_list = ps::batch_by(ps::sample_list(list), 70);
  CHECK(got(source | ps::shuffle(ps::seed(6)) | by_list) == expected);
  CHECK(by_list.describe() == "batch_by(a list of 120, limit 70, tail keep)");
  CHECK_THAT(error_of([&] { (void)(ps::generated(121, same) | by_list).open(); }),
             contains("a list of 120 has 120 values, but the dataset has 121 samples"));
  CHECK_THAT(error_of([&] { (void)(ps::from(first_ints(120)) | ps::batch_by(index, 70)).open(); }),
             contains("this is not the dataset from which index 'length' was made"));
}

TEST_CASE("stage/batch_by: works with the stages that work after batch") {
  const auto source = ps::generated(300, same) | ps::shuffle(ps::seed(8));
  const auto twice = [](auto& columns) {
    for (auto& x : columns.values()) x *= 2;
  };
  batches expected = cut_slowly(in_order(source, 0), 64);
  const auto plan = source | ps::batch_by(length, 64) | ps::workers(3);
  CHECK(got(plan | ps::memory(1 << 20) | ps::prefetch(5)) == expected);
  CHECK(got(plan | ps::pin_and_copy(ps::simulated{})) == expected);
  for (auto& b : expected)
    for (auto& x : b) x *= 2;
  CHECK(got(plan | ps::map_batch(twice)) == expected);
  CHECK(got(plan | ps::map_batch(twice) | ps::prefetch(3) | ps::pin_and_copy(ps::simulated{})) == expected);

  auto run = (plan | ps::map_batch(twice)).open();
  CHECK(got_while_adjusted(run) == expected);
}

TEST_CASE("stage/batch_by: values of different lengths, and a batch far longer than usual") {
  const auto text = [](std::uint64_t i) {
    return std::vector<int>(static_cast<std::size_t>(length(i)), static_cast<int>(i));
  };
  // a thousand free samples at the end
  const auto cost = [](std::uint64_t i) -> std::uint64_t { return i < 200 ? length(i) : 0; };
  const auto plan = ps::generated(1200, same) | ps::map(text) | ps::batch_by(cost, 50, ps::ragged);
  for (const unsigned workers : {0u, 3u}) {
    std::uint64_t next = 0;
    std::size_t maximum = 0;
    for (auto&& b : (plan | ps::workers(workers)).epoch(0)) {
      const auto values = b.values();
      for (std::size_t i = 0; i < b.size(); ++i, ++next) {
        CHECK(values[i].size() == length(next));
        CHECK(values[i][0] == static_cast<int>(next));
      }
      maximum = std::max(maximum, b.size());
    }
    CHECK(next == 1200);
    CHECK(maximum > 1000);
  }
}

TEST_CASE("stage/batch_by: bad samples leave holes or are replaced") {
  const auto fails = [](std::uint64_t i) {
    if (i % 29 == 3) throw ps::error(ps::errc::format, "made to fail");
    return i;
  };
  const auto source = ps::generated(200, same) | ps::shuffle(ps::seed(1)) | ps::map(fails);
  std::uint64_t holes = 0, seen = 0;
  auto run = (source | ps::bad_samples::skip(10) | ps::batch_by(length, 50) | ps::workers(2)).open();
  for (auto&& b : run) {
    holes += b.size() - b.valid_size();
    seen += b.size();
  }
  CHECK(holes == 7);
  CHECK(seen == 200);
  std::uint64_t replaced = 0;
  for (auto&& b : (source | ps::bad_samples::replace(10) | ps::batch_by(length, 50)).epoch(0))
    replaced += b.valid_size();
  CHECK(replaced == 200);
}

TEST_CASE("stage/batch_by: the costs of an epoch are read once, for all users") {
  std::atomic<int> asked{0};
  const auto counting = [&asked](std::uint64_t i) {
    ++asked;
    return length(i);
  };
  auto run = (ps::generated(1000, same) | ps::shuffle(ps::seed(5)) | ps::prefetch(100) |
              ps::batch_by(counting, 50) | ps::workers(2))
                 .open();
  for (auto epoch : run.epochs(3))
    for (auto&& b : epoch) CHECK(run.steps_per_epoch() > b.step());
  CHECK(asked == 3 * 1000 + 64);  // some costs are read when the run is opened, to size its grains
}

TEST_CASE("stage/batch_by: a stop ends the pass over an epoch, whichever thread makes it") {
  for (const unsigned workers : {0u, 2u}) {
    std::atomic<int> asked{0};
    std::atomic<bool> told{false};
    std::stop_source stop;
    const auto counting = [&](std::uint64_t) -> std::uint64_t {
      if (++asked == 64 + 1000 + 10 && !told.exchange(true)) stop.request_stop();
      return 1;
    };
    const auto plan =
        ps::generated(1000, same) | ps::prefetch(100) | ps::batch_by(counting, 50) | ps::workers(workers);
    auto run = plan.open(stop.get_token());
    std::size_t seen = 0;
    for (auto epoch : run.epochs(3))
      for (auto&& b : epoch) seen += b.size();
    CHECK(run.stopped());
    CHECK(asked == 64 + 1000 + 10);
    CHECK(seen <= 1000);
    const ps::state left = run.state();
    CHECK(left.ordinal == (left.epoch == 0 ? seen : 0));
    CHECK(asked == 64 + 1000 + 10);
  }
}

TEST_CASE("stage/batch_by: a cost that fails once in a later epoch is one error, and the run ends") {
  for (const unsigned workers : {0u, 2u}) {
    std::atomic<int> asked{0};
    const auto fails_once = [&](std::uint64_t) -> std::uint64_t {
      if (++asked == 64 + 200 + 100) throw ps::error(ps::errc::io, "no length today");
      return 1;
    };
    auto run =
        (ps::generated(200, same) | ps::prefetch(100) | ps::batch_by(fails_once, 50) | ps::workers(workers))
            .open();
    std::size_t seen = 0;
    const std::string said = error_of([&] {
      for (auto epoch : run.epochs(3))
        for (auto&& b : epoch) seen += b.size();
    });
    CHECK(seen == 200 + 99);
    CHECK_THAT(said, contains("no length today, in the cost of sample 99 [stage batch_by, position 1:99]"));
    CHECK(asked <= 64 + 200 + 100 + 200);
  }
}

TEST_CASE("stage/batch_by: a step allocates nothing, an epoch only its table") {
  // the first batch is the longest, so that its memory suffices for all
  const auto cost = [](std::uint64_t i) -> std::uint64_t { return i % 5000 < 20 ? 1 : 2 + i % 7; };
  auto run = (ps::generated(5000, same) | ps::batch_by(cost, 20) | ps::workers(0)).open();
  (void)run.epochs(4);
  while (run.state().epoch == 0) CHECK(run.next());
  std::uint64_t steps = 0;
  const std::uint64_t made = penstock_test::allocations_of([&] {
    while (run.next()) ++steps;
  });
  CHECK(steps > 3000);
  CHECK(made < 100);
}

TEST_CASE("stage/batch_by: keeps all guarantees, and says so") {
  const auto plan = ps::generated(100, same) | ps::shuffle(ps::seed(1)) | ps::shard(0, 2) |
                    ps::batch_by(length, 64) | ps::require<ps::guarantee::elastic> |
                    ps::require<ps::guarantee::lockstep>;
  static_assert(ps::resumable<decltype(plan)> && ps::deterministic<decltype(plan)> &&
                ps::indexed<decltype(plan)>);
  const std::string text = ps::describe(plan);
  CHECK_THAT(text, contains("batch_by(limit 64, tail keep)"));
  CHECK_THAT(text, contains("keeps: indexed deterministic resumable elastic lockstep"));
}

TEST_CASE("stage/batch_by: prove and for_each_consumed") {
  const auto source = ps::generated(700, same) | ps::shuffle(ps::seed(7));
  const auto plan = source | ps::shard(1, 3) | ps::batch_by(length, 55, ps::tail::drop);
  const std::vector<ps::topology> shapes{{1, 1}, {1, 3}, {2, 4}, {5, 3}};
  const ps::proof found = ps::prove(plan, shapes, {.epochs = 2, .stops = {1, 5}, .threads = 2});
  CHECK(found.holds());
  const batches whole = cut_slowly(in_order(source, 0), 55);
  for (const ps::topology_proof& one : found.topologies) {
    CHECK(one.steps == whole.size() / one.shape.ranks());
    CHECK(one.delivered + one.dropped == 700);
    CHECK(one.padded == 0);
  }
  CHECK(found.topologies[0].dropped == 0);
  CHECK_THAT(to_string(found), contains("batches without a fixed number"));

  numbers had;
  ps::for_each_consumed(plan, state_after(plan, 4), [&](const ps::consumed_range& range) {
    for (std::uint64_t i = 0; i < range.count; ++i) had.push_back(range.first + i);
  });
  numbers expected;
  for (std::size_t i = 0; i < 12; ++i) expected.insert(expected.end(), whole[i].begin(), whole[i].end());
  std::sort(expected.begin(), expected.end());
  CHECK(had == expected);
}

TEST_CASE("stage/batch_by: a ledger is proved against the actual steps") {
  const penstock_test::temp_dir folder;
  const std::string ledger = (folder.path() / "bad-{rank}").string();
  const auto fails = [](std::uint64_t i) {
    if (i % 29 == 3) throw ps::error(ps::errc::format, "made to fail");
    return i;
  };
  const auto plan = ps::generated(200, same) | ps::shuffle(ps::seed(1)) | ps::map(fails) | ps::shard(0, 4) |
                    ps::bad_samples::skip(20, ps::bad_samples::ledger(ledger)) |
                    ps::batch_by(length, 100, ps::tail::drop);
  for (auto&& b : plan.epoch(0)) (void)b;
  std::vector<ps::bad_entry> entries = ps::read_bad_ledger((folder.path() / "bad-0").string()).all;
  REQUIRE(!entries.empty());
  CHECK(ps::prove_ledger(plan, entries).holds());
  const batches whole = cut_slowly(in_order(ps::generated(200, same) | ps::shuffle(ps::seed(1)), 0), 100);
  REQUIRE(whole.size() % 4 != 0);  // the last step is dropped
  entries.front().index = 199;
  entries.front().source.reset();
  CHECK_FALSE(ps::prove_ledger(plan, entries).holds());
}

TEST_CASE("stage/batch_by: epochs without a step are skipped") {
  // a few batches, for three ranks that drop incomplete steps
  const auto source = ps::generated(1000, same) | ps::shuffle(ps::seed(4)) | ps::take(10);
  auto cost_of = [&](std::uint64_t limit) {
    return source | ps::shard(0, 3) | ps::batch_by(length, limit, ps::tail::drop);
  };
  const auto plan = cost_of(40);
  std::size_t steps = 0, seen = 0;
  for (std::uint64_t e = 0; e < 12; ++e) steps += cut_slowly(in_order(source, e), 40).size() / 3;
  auto run = plan.open();
  (void)run.epochs(12);
  while (run.next()) ++seen;
  CHECK(seen == steps);
  CHECK(got(cost_of(100'000)).empty());
  CHECK(got(ps::generated(0, same) | ps::batch_by(length, 100)).empty());
  auto nothing = (ps::generated(0, same) | ps::batch_by(length, 100) | ps::allow_empty).open();
  (void)nothing.epochs(~std::uint64_t{0});
  CHECK(nothing.next().ended());
}

TEST_CASE("stage/batch_by: padding counts, for all fields or for one, and a state knows that it does") {
  const auto tokens = [](std::uint64_t i) {
    return std::vector<std::int32_t>(static_cast<std::size_t>(length(i)), static_cast<std::int32_t>(i));
  };
  const auto source = ps::generated(500, tokens) | ps::shuffle(ps::seed(3));
  constexpr std::uint64_t limit = 200;
  std::uint64_t samples = 0, fuller = 0;
  for (const unsigned workers : {0u, 2u}) {
    samples = 0;
    const auto plan = source | ps::batch_by(length, limit, ps::pad_to_longest) | ps::workers(workers);
    for (auto&& b : plan.epoch(1)) {
      CHECK(b.values().values().size() <= limit);
      fuller += b.values().values().size() > limit * 3 / 4 ? 1 : 0;
      samples += b.size();
    }
    CHECK(samples == 500);
  }
  CHECK(fuller > 10);

  using sample = ps::record<ps::field<"text", std::vector<std::int32_t>>, ps::field<"id", std::uint64_t>>;
  const auto both = ps::generated(500, [&](std::uint64_t i) { return sample(tokens(i), i); });
  const auto of_one = both | ps::batch_by(length, limit, ps::collate<"text">(ps::pad_to_longest));
  for (auto&& b : of_one) CHECK(ps::get<"text">(b).values().size() <= limit);

  const auto padded = source | ps::batch_by(length, limit, ps::pad_to_longest);
  const auto ragged = source | ps::batch_by(length, limit, ps::ragged);
  auto run = ragged.open();
  CHECK_THAT(error_of([&, where = run.state()] { (void)padded.open(where); }), contains("batch_by"));
  CHECK_THAT(describe(padded), contains("limit 200 with padding"));
}

}  // namespace batch_by_test
