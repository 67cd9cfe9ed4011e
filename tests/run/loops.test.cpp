// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Loops over a run: which place they begin at, what a state after the last batch of an epoch says, loops
// inside loops, and what is left of a run, a batch or a result that has nothing.

#include <penstock/core/error.hpp>
#include <penstock/integration/any_loader.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace loops_test {

namespace ps = penstock;
using penstock_test::contains;

namespace {

using numbers = std::vector<std::uint64_t>;

auto counting(std::uint64_t n) {
  return ps::generated(n, [](std::uint64_t i) { return i; });
}

/// Epoch and values of each batch.
struct batches {
  std::vector<std::pair<std::uint64_t, numbers>> all;
  template <class Batch>
  void add(const Batch& b) {
    const auto values = b.values();
    all.emplace_back(b.epoch(), numbers(values.begin(), values.end()));
  }
  bool operator==(const batches&) const = default;
};

template <class Run>
batches rest_of(Run& run, std::uint64_t epochs) {
  batches seen;
  for (auto epoch : run.epochs(epochs))
    for (auto&& b : epoch) seen.add(b);
  return seen;
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
    return e.what();
  }
  return "nothing was thrown";
}

/// Checks that the state after each of the batches of three epochs begins at the next one; of those after an
/// epoch's last one, that it says so.
template <class Plan>
void resumes_after_each(const Plan& plan, std::size_t per_epoch) {
  auto whole = plan.open();
  const batches all = rest_of(whole, 3);
  REQUIRE(all.all.size() == 3 * per_epoch);
  auto run = plan.open();
  std::size_t taken = 0;
  for (auto epoch : run.epochs(3))
    for ([[maybe_unused]] auto&& b : epoch) {
      INFO("batch " << taken);
      const ps::state s = run.state();
      ++taken;
      if (taken % per_epoch == 0) {
        CHECK(s.epoch == taken / per_epoch);
        CHECK(s.step == 0);
      }
      auto resumed = plan.open(s);
      batches rest = rest_of(resumed, 3);
      rest.all.insert(rest.all.begin(), all.all.begin(),
                      all.all.begin() + static_cast<std::ptrdiff_t>(taken));
      CHECK(rest == all);
      // one epoch is a whole one, not what is left of none
      if (taken % per_epoch == 0 && taken != all.all.size()) {
        auto next = plan.open(s);
        std::size_t count = 0;
        for ([[maybe_unused]] auto&& one : next) ++count;
        CHECK(count == per_epoch);
      }
    }
}

}  // namespace

TEST_CASE("run/loops: a state after the last of steps(n) begins the next epoch") {
  const auto odd = ps::filter([](std::uint64_t i) { return i % 2 == 1; });
  for (const unsigned workers : {0u, 2u}) {
    resumes_after_each(
        counting(20) | ps::shuffle(ps::seed(3)) | ps::batch(4) | ps::steps(7) | ps::workers(workers), 7);
    resumes_after_each(counting(20) | odd | ps::batch(4) | ps::steps(3) | ps::workers(workers), 3);
    resumes_after_each(counting(20) | odd | ps::batch(4) | ps::steps(1) | ps::workers(workers), 1);
    resumes_after_each(counting(20) | ps::shuffle_buffer(5, ps::seed(1)) | ps::batch(4) | ps::steps(5) |
                           ps::workers(workers),
                       5);
    resumes_after_each(counting(20) | ps::shuffle_buffer(5, ps::seed(1)) | odd | ps::batch(2) | ps::steps(7) |
                           ps::workers(workers),
                       7);
    resumes_after_each(counting(20) | odd | ps::batch(2) | ps::take(3) | ps::workers(workers), 3);
  }
}

TEST_CASE("run/loops: a state of the end of steps(n) that says so by its step is the next epoch, too") {
  const auto plan =
      counting(20) | ps::filter([](std::uint64_t i) { return i != 3; }) | ps::batch(4) | ps::steps(3);
  auto run = plan.open();
  ps::state last;
  for (auto&& b : run.epoch(0)) {
    if (b.step() == 1) last = run.state();
  }
  last.step = 3;  // as earlier versions wrote it
  auto resumed = plan.open(last);
  auto fresh = plan.open();
  batches second;
  for (auto&& b : fresh.epoch(1)) second.add(b);
  batches got;
  for (auto&& b : resumed) got.add(b);
  CHECK(got == second);
}

TEST_CASE("run/loops: a second loop over epochs(n) goes on where the first was left") {
  const auto check = [](const auto& plan) {
    auto whole = plan.open();
    const batches all = rest_of(whole, 3);
    for (std::size_t leave = 1; leave < all.all.size(); ++leave) {
      INFO("left after " << leave);
      auto run = plan.open();
      batches seen;
      [&] {
        for (auto epoch : run.epochs(3))
          for (auto&& b : epoch) {
            seen.add(b);
            if (seen.all.size() == leave) return;
          }
      }();
      const batches rest = rest_of(run, 3);
      seen.all.insert(seen.all.end(), rest.all.begin(), rest.all.end());
      CHECK(seen == all);
      CHECK(rest_of(run, 3).all.empty());
    }
    // the range itself, and epochs that are begun again by hand
    auto run = plan.open();
    auto epochs = run.epochs(2);
    batches seen;
    for (auto epoch : epochs) {
      for (auto&& b : epoch) {
        seen.add(b);
        break;
      }
      break;
    }
    for (auto epoch : epochs)
      for (auto&& b : epoch) seen.add(b);
    auto two = plan.open();
    CHECK(seen == rest_of(two, 2));
    batches again;
    for (auto&& b : run.epoch(0)) {
      again.add(b);
      break;
    }
    for (auto&& b : run.epoch(0)) {
      again.add(b);
      break;
    }
    CHECK(again.all[0] == again.all[1]);
  };
  for (const unsigned workers : {0u, 2u}) {
    check(counting(20) | ps::shuffle(ps::seed(3)) | ps::batch(4) | ps::workers(workers));
    check(counting(20) | ps::filter([](std::uint64_t i) { return i % 3 != 0; }) | ps::batch(4) |
          ps::steps(3) | ps::workers(workers));
  }
}

TEST_CASE("run/loops: a loop inside a loop over the same run is an error of the outer one") {
  const auto plan = counting(20) | ps::batch(4);
  auto run = plan.open();
  std::size_t outer = 0, inner = 0;
  const std::string said = message_of([&] {
    for ([[maybe_unused]] auto&& a : run.epoch(0)) {
      ++outer;
      for ([[maybe_unused]] auto&& b : run.epoch(0)) ++inner;
    }
  });
  CHECK_THAT(said, contains("another loop over this run") && contains("open the plan once more"));
  CHECK(outer == 1);
  CHECK(inner == 5);
  auto flat = plan.open();
  CHECK_THAT(message_of([&] {
               for ([[maybe_unused]] auto&& a : flat)
                 for ([[maybe_unused]] auto&& b : flat.rest()) {
                 }
             }),
             contains("another loop over this run"));
  auto rows = counting(6).open();
  CHECK_THAT(message_of([&] {
               for ([[maybe_unused]] auto&& a : rows.epoch(0))
                 for ([[maybe_unused]] auto&& b : rows.epoch(1)) break;
             }),
             contains("another loop over this run"));
  // A loop that was left is no outer loop, and another run is another loop.
  std::size_t count = 0;
  for (int i = 0; i < 3; ++i)
    for ([[maybe_unused]] auto&& a : run.epoch(0)) {
      ++count;
      if (i != 2) break;
      auto other = plan.open();
      for ([[maybe_unused]] auto&& b : other) ++count;
    }
  CHECK(count == 2 + 5 + 25);
  // So it is for loops over epochs.
  auto epochs = plan.open();
  CHECK_THAT(message_of([&] {
               for ([[maybe_unused]] auto a : epochs.epochs(3))
                 for (auto b : epochs.epochs(3))
                   for ([[maybe_unused]] auto&& batch : b) {
                   }
             }),
             contains("another loop over this run"));

  ps::any_loader<std::size_t> loader(plan, [](auto& b) { return b.size(); });
  CHECK_THAT(message_of([&] {
               for ([[maybe_unused]] auto& a : loader.epoch(0))
                 for ([[maybe_unused]] auto& b : loader.epoch(0)) {
                 }
             }),
             contains("another loop over this any_loader"));
}

TEST_CASE("run/loops: what was moved from says so") {
  const auto plan = counting(20) | ps::bad_samples::skip(1) | ps::batch(4);
  auto run = plan.open();
  auto kept = run.next();
  auto batch = std::move(*kept);
  auto& gone = *kept;
  CHECK(batch.size() == 4);
  CHECK_FALSE(static_cast<bool>(gone));
  CHECK(gone.size() == 0);
  CHECK(gone.valid_size() == 0);
  CHECK(gone.valid().empty());
  for (const auto& f : {std::string(message_of([&] { (void)gone.values(); })),
                        std::string(message_of([&] { (void)gone.positions(); })),
                        std::string(message_of([&] { (void)gone.hold(); })),
                        std::string(message_of([&] { (void)gone.device_data(); })),
                        std::string(message_of([&] { (void)gone.keys(); }))})
    CHECK_THAT(f, contains("this batch is empty: it was moved from or reset"));
  auto held = batch.hold();
  const auto other = std::move(held);
  CHECK(other.view().size() == 4);
  CHECK(held.view().empty());
  batch.reset();
  CHECK_THAT(message_of([&] { (void)batch.values(); }), contains("this batch is empty"));

  auto moved = std::move(run);
  for (const auto& f : {std::string(message_of([&] { (void)run.state(); })),
                        std::string(message_of([&] { (void)run.epoch(0); })),
                        std::string(message_of([&] { (void)run.epochs(2); })),
                        std::string(message_of([&] { (void)run.rest(); })),
                        std::string(message_of([&] { (void)run.counters(); })),
                        std::string(message_of([&] { (void)run.limits(); })),
                        std::string(message_of([&] { (void)run.steps_per_epoch(); })),
                        std::string(message_of([&] { (void)*run.next(); })), std::string(message_of([&] {
                          for ([[maybe_unused]] auto&& b : run) {
                          }
                        }))})
    CHECK_THAT(f, contains("this run was moved from"));
  CHECK(run.stopped());
  run.request_stop();
  run = std::move(moved);
  CHECK(run.next());
  while (run.next()) {
  }
  CHECK_THAT(message_of([&] { (void)*run.next(); }), contains("the run has ended"));

  ps::any_loader<std::size_t> loader(plan, [](auto& b) { return b.size(); });
  auto taken = std::move(loader);
  CHECK_THAT(message_of([&] { (void)loader.state(); }), contains("it is empty"));
}

}  // namespace loops_test
