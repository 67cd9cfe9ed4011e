// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/run.hpp>

#include <penstock/device/simulated.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/engine_test.hpp"
#include "support/test_data.hpp"

#include <atomic>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace run_test {

namespace ps = penstock;
using namespace engine_test;

namespace {

constexpr auto identity = [](std::uint64_t i) { return i; };

/// Opens a plan and abandons it after some batches and some time.
template <class Plan>
void leave_early(const Plan& plan, ps::rng& draw) {
  auto run = plan.open();
  const std::uint64_t batches = draw.below(6);
  std::uint64_t seen = 0;
  std::vector<typename decltype(run)::value_type> held;
  const bool holds = draw.chance(0.3);
  if (draw.chance(0.2)) run.request_stop();
  while (seen < batches) {
    auto b = run.next();
    if (!b) break;
    ++seen;
    if (holds && held.size() < 1) held.push_back(std::move(*b));
  }
  if (draw.chance(0.5)) std::this_thread::sleep_for(std::chrono::microseconds(draw.below(200)));
  if (draw.chance(0.3)) {
    std::thread other([moved = std::move(held)]() mutable { moved.clear(); });
    { auto gone = std::move(run); }
    other.join();
  }
}

}  // namespace

TEST_CASE("run/run: its types meet the standard's concepts") {
  const auto plan = ps::generated(10, identity) | ps::batch(2);
  using run_type = decltype(plan.open());
  static_assert(std::ranges::input_range<run_type>, "a run is an input range");
  static_assert(!std::is_copy_constructible_v<run_type> && std::is_nothrow_move_constructible_v<run_type>,
                "a run is move-only");
  static_assert(std::input_iterator<run_type::iterator> && std::copyable<run_type::iterator>,
                "an iterator is one copyable pointer");
  static_assert(!std::is_copy_constructible_v<run_type::value_type>, "a batch is move-only");
  auto run = plan.open();
  std::uint64_t sum = 0;
  for (auto&& b : run | std::views::take(3)) sum += b.values()[0];
  CHECK(sum == 0 + 2 + 4);
  std::uint64_t whole = 0;
  for (auto&& b : plan) whole += b.size();
  CHECK(whole == 10);
}

TEST_CASE("run/run: take(3) requests three batches and no more") {
  auto run = (ps::generated(40, identity) | ps::batch(2)).open();
  for (auto&& b : run | std::views::take(3)) CHECK(b.size() == 2);
  CHECK(run.state().step == 3);
}

TEST_CASE("run/run: stopping at any moment ends it, hundreds of times") {
  const penstock_test::deadline guard("leave early", std::chrono::seconds(600));
  ps::rng draw(7, 0, 0);
  const int rounds = penstock_test::long_tests() ? 3000 : 150;
  for (int round = 0; round < rounds; ++round) {
    const unsigned workers = static_cast<unsigned>(draw.below(8));
    const auto depth = ps::prefetch(1 + draw.below(5));
    const auto end = ps::workers(workers);
    leave_early(ps::generated(200, identity) | ps::map(slowly{}) | ps::shuffle(ps::seed(3)) | ps::batch(5) |
                    depth | end,
                draw);
    leave_early(ps::generated(200, identity) | ps::map(slowly{}) |
                    ps::filter([](std::uint64_t x) { return x % 2 == 0; }) | ps::batch(3) | depth | end,
                draw);
    leave_early(ps::plan(counting_source(200)) | ps::map(slowly{}) | ps::shuffle_buffer(9) | ps::batch(5) |
                    depth | end,
                draw);
    leave_early(ps::generated(200, words_of) | ps::map([](const numbers& v) { return v[0]; }) |
                    ps::map(slowly{}) | ps::shuffle_buffer(5) | ps::batch(5) | ps::steps(70) | depth | end,
                draw);
    leave_early(ps::generated(200, identity) | ps::map(slowly{}) | ps::batch(5) |
                    ps::pin_and_copy(ps::simulated{}) | end,
                draw);
  }
}

TEST_CASE("run/run: request_stop from another thread ends the loop, also while it waits") {
  const penstock_test::deadline guard("request_stop");
  for (const unsigned workers : {0u, 1u, 3u}) {
    const auto plan = ps::generated(1'000'000, identity) | ps::map([](std::uint64_t x) {
                        std::this_thread::sleep_for(std::chrono::microseconds(50));
                        return x;
                      }) |
                      ps::batch(10'000) | ps::workers(workers);
    auto run = plan.open();
    std::thread other([&run] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      run.request_stop();
    });
    for (auto&& b : run.epoch(0)) CHECK(b.size() == 10'000);
    other.join();
    CHECK(run.stopped());
    CHECK(run.state().step < 100);
    CHECK(run.next().ended());
  }
}

TEST_CASE("run/run: stop tokens, stopped before and later") {
  const penstock_test::deadline guard("stop_token");
  for (const unsigned workers : {0u, 2u}) {
    const auto plan = ps::generated(1000, identity) | ps::map(slowly{}) | ps::batch(5) | ps::workers(workers);
    std::stop_source stop;
    auto later = plan.open(stop.get_token());
    std::uint64_t seen = 0;
    for (auto&& b : later.epoch(0)) {
      seen += b.size() / 5;
      if (seen == 10) stop.request_stop();
    }
    CHECK(seen == 10);
    CHECK(later.stopped());
    CHECK(later.state().step == 10);
    auto before = plan.open(stop.get_token());
    CHECK(before.stopped());
    CHECK(before.next().ended());
    for (auto&& b : before.epoch(0)) FAIL("a stopped run gave a batch of " << b.size());
    auto going_on = plan.open(later.state(), std::stop_token{});
    auto b = going_on.next();
    REQUIRE(static_cast<bool>(b));
    CHECK(values_of(*b)[0] == 50);
  }
}

TEST_CASE("run/run: the state of a stopped run covers what was delivered, though more was gathered") {
  const penstock_test::deadline guard("state when stopped");
  std::atomic<bool> broken{true};
  const auto plan = ps::generated(300, [](std::uint64_t x) { return std::vector<std::uint64_t>(1, x); }) |
                    ps::map([&broken](const numbers& v) {
                      if (v[0] == 77 && broken.load()) throw std::runtime_error("77");
                      return v[0];
                    }) |
                    ps::shuffle_buffer(10) | ps::filter([](std::uint64_t) { return true; }) | ps::batch(30) |
                    ps::workers(2);
  broken = false;
  const auto whole = read_plan(plan, 1)[0];
  broken = true;
  auto run = plan.open();
  batches got;
  CHECK_THROWS_AS(
      [&] {
        for (auto&& b : run.epoch(0)) got.push_back(values_of(b));
      }(),
      ps::nested_error);
  broken = false;
  auto again = plan.open(run.state());
  for (auto&& b : again.epoch(0)) got.push_back(values_of(b));
  CHECK(got == whole);
}

TEST_CASE("run/run: batches outlive their run and may be dropped in another thread") {
  const penstock_test::deadline guard("batches outlive");
  for (const unsigned workers : {0u, 1u, 4u}) {
    using plan_type =
        decltype(ps::generated(100, identity) | ps::batch(10) | ps::workers(1) | ps::prefetch(3));
    std::vector<typename ps::run<plan_type>::value_type> held;
    {
      const plan_type plan =
          ps::generated(100, identity) | ps::batch(10) | ps::workers(workers) | ps::prefetch(3);
      auto run = plan.open();
      for (int i = 0; i < 3; ++i) held.push_back(std::move(*run.next()));
    }
    for (std::size_t i = 0; i < 3; ++i) CHECK(held[i].values()[0] == i * 10);
    CHECK(held[1].positions().size() == 10);
    CHECK(held[2].keys()[0] == "20");
    std::thread([last = std::move(held)]() mutable { last.clear(); }).join();
  }
}

TEST_CASE(
    "run/run: requesting a batch while holding all says how many and what to do; then the run continues") {
  const penstock_test::deadline guard("holding every batch");
  for (const unsigned workers : {0u, 2u}) {
    for (const std::uint64_t depth : {2u, 4u}) {
      auto run =
          (ps::generated(100, identity) | ps::batch(5) | ps::workers(workers) | ps::prefetch(depth - 1))
              .open();
      std::vector<typename decltype(run)::value_type> held;
      for (std::uint64_t i = 0; i < depth; ++i) held.push_back(std::move(*run.next()));
      auto refused = run.next();
      REQUIRE(refused.failure != nullptr);
      try {
        std::rethrow_exception(refused.failure);
      } catch (const ps::error& e) {
        CHECK(e.code() == ps::errc::argument);
        const std::string count = std::to_string(depth);
        CHECK_THAT(e.what(), penstock_test::contains("you hold " + count + " of " + count + " batches") &&
                                 penstock_test::contains("prefetch(n)"));
      }
      CHECK_FALSE(run.stopped());
      held.erase(held.begin());
      auto next = run.next();
      REQUIRE(static_cast<bool>(next));
      CHECK(values_of(*next)[0] == depth * 5);
    }
  }
}

TEST_CASE("run/run: its threads serve every epoch, and start the next one before it is requested") {
  const penstock_test::deadline guard("epochs");
  static std::atomic<int> threads{0};
  std::atomic<std::uint64_t> evaluated{0};
  const auto noted = ps::map([&evaluated](std::uint64_t x) {
    static thread_local const int number = ++threads;
    static_cast<void>(number);
    ++evaluated;
    return x;
  });
  auto run = (ps::generated(60, identity) | noted | ps::batch(10) | ps::workers(2)).open();
  for (auto epoch : run.epochs(5)) {
    for (auto&& b : epoch)
      if (b.step() == 5 && epoch.number() < 4)  // the last batch: any work from now on is for the next epoch
        while (evaluated <= 60 * (epoch.number() + 1)) std::this_thread::yield();
  }
  CHECK(evaluated == 300);
  CHECK(threads >= 1);
  CHECK(threads <= 2);
}

TEST_CASE("run/run: an exception in the loop's body, a break, and a move of the run") {
  const penstock_test::deadline guard("loop bodies");
  const auto plan = ps::generated(500, identity) | ps::map(slowly{}) | ps::batch(5) | ps::workers(3);
  for (int i = 0; i < 20; ++i) {
    CHECK_THROWS_AS(
        [&] {
          for (auto&& b : plan)
            if (b.step() == static_cast<std::uint64_t>(i)) throw std::logic_error("the body");
        }(),
        std::logic_error);
  }
  auto run = plan.open();
  for (auto&& b : run.epoch(0))
    if (b.step() == 3) break;
  auto moved = std::move(run);
  auto fifth = moved.next();
  REQUIRE(static_cast<bool>(fifth));
  CHECK(fifth->step() == 4);
  fifth = {};
  auto other = plan.open();
  ps::state far;
  {
    auto probe = plan.open();
    for (auto epoch : probe.epochs(4))
      for (auto&& b : epoch)
        if (epoch.number() == 3 && b.step() == 2) {
          far = probe.state();
          break;
        }
  }
  other = plan.open(far);
  auto restored = other.next();  // the batch given to restore is moved with the run
  REQUIRE(static_cast<bool>(restored));
  CHECK(restored->epoch() == 3);
  CHECK(restored->step() == 3);
}

TEST_CASE("run/run: many threads open and read plans at once") {
  const penstock_test::deadline guard("many runs");
  const auto plan = ps::generated(300, identity) | ps::map(slowly{}) | ps::shuffle(ps::seed(5)) |
                    ps::batch(7) | ps::workers(2);
  const auto expected = read_plan(plan, 2);
  std::vector<int> wrong(6, 0);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 5; ++i) wrong[t] += read_plan(plan, 2) != expected;
      });
  }
  CHECK(wrong == std::vector<int>(6, 0));
}

TEST_CASE("run/run: counters add up") {
  const penstock_test::deadline guard("counters");
  for (const unsigned workers : {0u, 2u}) {
    auto run =
        (ps::generated(103, identity) | ps::map(slowly{}) | ps::batch(10) | ps::workers(workers)).open();
    for (auto&& b : run.epoch(0)) CHECK(b.size() > 0);
    const ps::run_counters c = run.counters();
    CHECK(c.samples == 103);
    CHECK(c.batches == 11);
    CHECK(c.bytes == 103 * 8);
    CHECK(c.workers == workers);
    REQUIRE(c.stages.size() == 2);
    CHECK(c.stages[0].name == "generated");
    CHECK(c.stages[1].name == "map");
    CHECK(c.stages[1].samples == 103);
    CHECK(c.bytes_held > 0);
    CHECK(run.steps_per_epoch() == 11);
  }
}

TEST_CASE("run/run: a state at the end of the last epoch has nothing left, for every kind of loop") {
  const auto plan = ps::generated(20, identity) | ps::shuffle(ps::seed(1)) | ps::batch(4);
  ps::state end;
  {
    auto run = plan.open();
    for (auto epoch : run.epochs(2))
      for (auto&& b : epoch) static_cast<void>(b.size());
    end = run.state();
  }
  CHECK(end.epoch == 2);
  const auto left = [&](std::uint64_t epochs) {
    std::size_t by_next = 0, by_range = 0, by_epochs = 0;
    auto one = plan.open(end), two = plan.open(end), three = plan.open(end);
    static_cast<void>(one.epochs(epochs));
    static_cast<void>(two.epochs(epochs));
    while (one.next()) ++by_next;
    for (auto&& b : two) by_range += b.size() != 0;
    for (auto epoch : three.epochs(epochs))
      for (auto&& b : epoch) by_epochs += b.size() != 0;
    CHECK(by_next == by_epochs);
    CHECK(by_range == by_epochs);
    return by_epochs;
  };
  CHECK(left(1) == 0);
  CHECK(left(2) == 0);
  CHECK(left(3) == 5);
  CHECK(left(4) == 10);
  // Without epochs in the plan: one more.
  auto more = plan.open(end);
  std::size_t count = 0;
  while (more.next()) ++count;
  CHECK(count == 5);
}

TEST_CASE("run/run: each loop over an epoch starts at its beginning; rest() resumes") {
  const auto check = [](const auto& plan) {
    using values = std::vector<std::vector<int>>;
    const auto loop = [](auto&& range, std::size_t maximum = 1000) {
      values all;
      for (auto&& b : range) {
        all.emplace_back(b.begin(), b.end());
        if (all.size() == maximum) break;
      }
      return all;
    };
    const values epoch_1 = loop(plan.epoch(1)), epoch_2 = loop(plan.epoch(2));
    REQUIRE(epoch_1.size() > 4);
    const auto part = [](const values& of, std::size_t first, std::size_t last) {
      return values(of.begin() + std::ptrdiff_t(first), of.begin() + std::ptrdiff_t(last));
    };
    auto run = plan.open();
    CHECK(loop(run.epoch(1), 3) == part(epoch_1, 0, 3));
    CHECK(loop(run.epoch(1), 2) == part(epoch_1, 0, 2));
    const ps::state middle = run.state();
    CHECK(loop(run.rest(), 1) == part(epoch_1, 2, 3));
    CHECK(loop(run.rest()) == part(epoch_1, 3, epoch_1.size()));
    CHECK(loop(run.rest()).empty());
    CHECK(loop(run.epoch(1)) == epoch_1);
    CHECK(loop(run.epoch(2)) == epoch_2);
    {
      auto restored = plan.open(middle);  // its first loop resumes
      CHECK(loop(restored.epoch(1), 1) == part(epoch_1, 2, 3));
      CHECK(loop(restored.epoch(1)) == epoch_1);
    }
    {
      auto restored = plan.open(middle);
      CHECK(loop(restored.rest()) == part(epoch_1, 2, epoch_1.size()));
      CHECK(loop(restored.rest()).empty());
    }
    {
      auto restored = plan.open(middle);
      values all;
      for (auto epoch : restored.epochs(3))
        for (const auto& b : loop(epoch)) all.push_back(b);
      values expected = part(epoch_1, 2, epoch_1.size());
      expected.insert(expected.end(), epoch_2.begin(), epoch_2.end());
      CHECK(all == expected);
    }
    {
      auto elsewhere = plan.open(middle);  // a loop over another epoch ignores the place in the state
      CHECK(loop(elsewhere.epoch(2), 1) == part(epoch_2, 0, 1));
      CHECK(loop(elsewhere.epoch(1)) == epoch_1);
    }
  };
  const auto source = ps::from(penstock_test::first_ints(50)) | ps::shuffle(ps::seed(5));
  for (const unsigned workers : {0u, 2u}) {
    check(source | ps::batch(7) | ps::workers(workers));
    check(source | ps::filter([](int x) { return x % 3 != 0; }) | ps::batch(4) | ps::workers(workers));
    check(source | ps::shuffle_buffer(10) | ps::batch(4) | ps::workers(workers));
  }
}

TEST_CASE("run/run: loops over epochs evaluate no sample twice") {
  std::atomic<std::uint64_t> calls{0};
  const auto counted = ps::generated(60, [&](std::uint64_t i) {
    ++calls;
    return i;
  });
  const auto check = [&](const auto& plan) {
    for (const unsigned workers : {0u, 2u}) {
      calls = 0;
      auto run = (plan | ps::workers(workers)).open();
      for (auto epoch : run.epochs(3))
        for (auto&& one : epoch) (void)one;
      CHECK(calls == 180);
      calls = 0;
      auto again = (plan | ps::workers(workers)).open();
      for (const int e : {0, 1, 2})
        for (auto&& one : again.epoch(e)) (void)one;
      CHECK(calls == 180);
    }
  };
  check(counted | ps::shuffle(ps::seed(1)) | ps::batch(7));
  check(counted | ps::filter([](std::uint64_t i) { return i % 3 == 0; }) | ps::batch(7));
  check(counted | ps::shuffle_buffer(9) | ps::batch(7));
  check(counted | ps::shuffle(ps::seed(1)));
}

TEST_CASE("run/run: a loop over the run itself stays within the epochs that were asked for") {
  for (const unsigned workers : {0u, 2u}) {
    auto run = (ps::generated(6, identity) | ps::batch(2) | ps::workers(workers)).open();
    int steps = 0;
    for (auto epoch : run.epochs(2))
      for (auto&& b : epoch) steps += static_cast<int>(b.size()) / 2;
    CHECK(steps == 6);
    for (auto&& b : run) FAIL("a batch of " << b.size() << " of a third epoch");
    CHECK(run.next().ended());
  }
}

TEST_CASE("run/run: plans whose ranks would end at different times are refused") {
  const auto kept =
      ps::generated(100, identity) | ps::shard(0, 2) | ps::filter([](std::uint64_t) { return true; });
  CHECK_THROWS_WITH((kept | ps::batch(4)).open(),
                    penstock_test::contains("`lockstep` is lost by filter; write steps(n) after batch"));
  CHECK_THROWS_WITH((ps::plan(counting_source(9)) | ps::shard(0, 2) | ps::batch(4)).open(),
                    penstock_test::contains("only be read forward"));
  CHECK_NOTHROW((kept | ps::batch(4) | ps::steps(3)).open());
}

TEST_CASE("run/run: changing limits does not change the sequence, and fewer workers work") {
  std::atomic<int> at_work{0}, maximum{0};
  const auto plan =
      ps::generated(20'000,
                    [&](std::uint64_t i) {
                      const int now = ++at_work;
                      for (int seen = maximum; seen < now && !maximum.compare_exchange_weak(seen, now);) {
                      }
                      std::this_thread::yield();
                      --at_work;
                      return i;
                    }) |
      ps::shuffle(ps::seed(3)) | ps::batch(20) | ps::prefetch(8) | ps::workers(4);
  std::vector<std::uint64_t> expected, got;
  for (auto&& b : (plan | ps::workers(0)).epoch(0))
    for (std::size_t i = 0; i < b.size(); ++i) expected.push_back(b.values()[i]);

  auto run = plan.open();
  CHECK(run.limits().workers == 4);
  CHECK(run.limits().depth == 9);  // eight ahead of the held one
  CHECK(run.limits().ahead == 0);
  std::size_t batches = 0;
  std::uint64_t held_before = 0;
  for (auto&& b : run) {
    for (std::size_t i = 0; i < b.size(); ++i) got.push_back(b.values()[i]);
    ++batches;
    if (batches == 100) {
      held_before = run.counters().bytes_held;
      run.adjust({.workers = 1, .depth = 2});
    }
    if (batches == 150) maximum = 0;
    if (batches == 300) {
      CHECK(maximum <= 1);
      CHECK(run.counters().workers == 1);
      CHECK(run.counters().bytes_held < held_before);
      run.adjust({.workers = 4, .depth = 8});
    }
  }
  CHECK(got == expected);
  REQUIRE_THROWS_WITH(run.adjust({.workers = 9}), Catch::Contains("workers = 9 is not in [1, 4]"));
  REQUIRE_THROWS_WITH(run.adjust({.ahead = 5}), Catch::Contains("prefetch(n) before batch"));
}

TEST_CASE("run: an iterator has an arrow, to the batch or to the sample") {
  const auto plan = ps::from(std::vector<int>(20, 3)) | ps::batch(5);
  auto run = plan.open();
  auto it = run.begin();
  CHECK(it->size() == 5);
  ++it;
  CHECK(it->step() == 1);
  CHECK(it->values()[4] == 3);
  auto pass = plan.begin();
  CHECK(pass->step() == 0);
  const std::vector<std::string> texts{"one", "three"};
  auto samples = ps::from(texts).open();
  auto first = samples.begin();
  CHECK(first->size() == 3);
}

}  // namespace run_test
