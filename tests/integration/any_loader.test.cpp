// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/any_loader.hpp>

#include <penstock/observe/progress.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

struct numbers_batch {
  std::span<const int> values;
};

/// As a function in another file would: two plans of different types, one type of loader.
ps::any_loader<numbers_batch> make_loader(bool odd_only) {
  const auto source = ps::from(first_ints(100)) | ps::shuffle(ps::seed(4));
  const auto view = [](auto& b) { return numbers_batch{b.values()}; };
  if (odd_only) return {source | ps::filter([](int x) { return x % 2 != 0; }) | ps::batch(8), view};
  return {source | ps::batch(8) | ps::workers(2), view};
}

std::vector<int> drain(ps::any_loader<numbers_batch>& loader, std::uint64_t epoch) {
  std::vector<int> all;
  for (auto& b : loader.epoch(epoch)) all.insert(all.end(), b.values.begin(), b.values.end());
  return all;
}

struct trainer {  // a loader as a member, without a template
  ps::any_loader<numbers_batch> loader = make_loader(false);
};

}  // namespace

TEST_CASE("integration/any_loader: the batches are those of the plan, epoch after epoch") {
  trainer mine;
  const auto plan = ps::from(first_ints(100)) | ps::shuffle(ps::seed(4)) | ps::batch(8);
  auto run = plan.open();
  for (auto epoch : run.epochs(3)) {
    std::vector<int> expected;
    for (auto&& b : epoch) expected.insert(expected.end(), b.begin(), b.end());
    CHECK(drain(mine.loader, epoch.number()) == expected);
  }
  CHECK(mine.loader.counters().samples == 300);
  CHECK(mine.loader.monitor().counters().samples == 300);
  auto other = make_loader(true);
  CHECK(drain(other, 0).size() == 50);
}

TEST_CASE("integration/any_loader: it can be moved, and resumes from a state") {
  auto loader = make_loader(false);
  std::vector<int> rest;
  std::size_t seen = 0;
  ps::state middle;
  for (auto& b : loader.epoch(0)) {
    if (++seen == 5)
      middle = loader.state();
    else if (seen > 5)
      rest.insert(rest.end(), b.values.begin(), b.values.end());
  }
  auto again = make_loader(false);
  again.restore(middle);
  auto moved = std::move(again);
  CHECK_FALSE(again);
  CHECK(drain(moved, 0) == rest);
}

TEST_CASE("integration/any_loader: an exception of the chain passes through") {
  const auto plan = ps::from(first_ints(100)) |
                    ps::map([](int x) { return x < 50 ? x : throw std::runtime_error("fifty"); }) |
                    ps::batch(10);
  ps::any_loader<numbers_batch> loader(plan, [](auto& b) { return numbers_batch{b.values()}; });
  std::size_t seen = 0;
  try {
    for (auto& b : loader.epoch(0)) seen += b.values.size();
    FAIL("nothing was thrown");
  } catch (const ps::nested_error& e) {
    REQUIRE(e.as<std::runtime_error>() != nullptr);
    CHECK(std::string(e.as<std::runtime_error>()->what()) == "fifty");
  }
  CHECK(seen == 50);
}

TEST_CASE("integration/any_loader: limits change, and the sequence does not") {
  const auto plan = ps::from(first_ints(100)) | ps::batch(10) | ps::prefetch(3) | ps::workers(2);
  ps::any_loader<numbers_batch> loader(plan, [](auto& b) { return numbers_batch{b.values()}; });
  CHECK(loader.limits().workers == 2);
  loader.adjust({.workers = 1, .depth = 1});
  CHECK(loader.limits().workers == 1);
  const ps::state begin = loader.state();
  CHECK(drain(loader, 0) == first_ints(100));
  loader.restore(begin);
  CHECK(loader.limits().workers == 1);
  CHECK(loader.limits().depth == 1);
  CHECK(drain(loader, 0) == first_ints(100));
  CHECK_THROWS_WITH(loader.adjust({.workers = 3}), Catch::Contains("workers = 3 is not in [1, 2]"));
}

TEST_CASE("integration/any_loader: an empty loader says so, and throws with an explanation") {
  ps::any_loader<numbers_batch> loader;
  CHECK_FALSE(loader);
  CHECK(loader.stopped());
  loader.request_stop();
  const auto empty = contains("any_loader: it is empty; assign one that was made from a plan");
  CHECK_THAT(error_of([&] { (void)drain(loader, 0); }), empty);
  CHECK_THAT(error_of([&] { (void)loader.epochs(2); }), empty);
  CHECK_THAT(error_of([&] { (void)loader.state(); }), empty);
  CHECK_THAT(error_of([&] { loader.restore({}); }), empty);
  CHECK_THAT(error_of([&] { (void)loader.counters(); }), empty);
  CHECK_THAT(error_of([&] { (void)loader.bad_samples(); }), empty);
  CHECK_THAT(error_of([&] { (void)loader.steps_per_epoch(); }), empty);
  CHECK_THAT(error_of([&] { loader.adjust({}); }), empty);
  CHECK_THAT(error_of([&] { (void)loader.limits(); }), empty);
  loader = make_loader(false);
  CHECK(loader);
  CHECK_FALSE(loader.stopped());
  CHECK(drain(loader, 0).size() == 100);
  const auto moved = std::move(loader);
  CHECK_THAT(error_of([&] { (void)drain(loader, 0); }), empty);
}

TEST_CASE("integration/any_loader: a loop over epochs is that of the run, also when restored") {
  const auto plan = ps::from(first_ints(100)) | ps::shuffle(ps::seed(4)) | ps::batch(8);
  std::vector<int> expected, seen;
  auto run = plan.open();
  for (auto epoch : run.epochs(3))
    for (auto&& b : epoch) expected.insert(expected.end(), b.begin(), b.end());
  auto loader = make_loader(false);
  CHECK(loader.steps_per_epoch() == run.steps_per_epoch());
  ps::state middle;
  std::size_t before = 0;
  std::uint64_t number = 0;
  for (auto epoch : loader.epochs(3)) {
    CHECK(epoch.number() == number++);
    for (auto& b : epoch) {
      seen.insert(seen.end(), b.values.begin(), b.values.end());
      if (before == 0 && seen.size() > 150) {
        middle = loader.state();
        before = seen.size();
      }
    }
  }
  CHECK(seen == expected);
  CHECK(number == 3);
  CHECK(loader.counters().samples == 300);
  CHECK(loader.counters().batches == 3 * loader.steps_per_epoch());
  CHECK(loader.bad_samples().skipped == 0);
  CHECK(loader.epochs(3).begin() == loader.epochs(3).end());

  loader.restore(middle);
  std::vector<int> rest;
  for (auto epoch : loader.epochs(3))
    for (auto& b : epoch) rest.insert(rest.end(), b.values.begin(), b.values.end());
  CHECK(rest == std::vector<int>(expected.begin() + static_cast<std::ptrdiff_t>(before), expected.end()));

  auto uneven = make_loader(true);
  CHECK(uneven.steps_per_epoch() == 0);
}

TEST_CASE("integration/any_loader: a loop that leaves an epoch early continues with the next") {
  auto loader = make_loader(false);
  auto whole = make_loader(false);
  for (auto epoch : loader.epochs(3)) {
    std::vector<int> first;
    for (auto it = epoch.begin(); it != epoch.end(); ++it) {
      first.assign(it->values.begin(), it->values.end());
      break;
    }
    auto all = drain(whole, epoch.number());
    all.resize(first.size());
    CHECK(first == all);
  }
}

TEST_CASE("integration/any_loader: a loop over an epoch starts at its beginning, and rest() resumes") {
  for (const bool odd : {false, true}) {
    auto loader = make_loader(odd);
    const auto loop = [](auto&& range, std::size_t maximum) {
      std::vector<int> all;
      std::size_t batches = 0;
      for (auto& b : range) {
        all.insert(all.end(), b.values.begin(), b.values.end());
        if (++batches == maximum) break;
      }
      return all;
    };
    const std::vector<int> whole = loop(loader.epoch(1), 100);
    const auto first = loop(loader.epoch(1), 2);
    CHECK(first == std::vector<int>(whole.begin(), whole.begin() + 16));
    CHECK(loop(loader.epoch(1), 2) == first);
    const ps::state middle = loader.state();
    CHECK(loader.rest().number() == 1);
    CHECK(loop(loader.rest(), 100) == std::vector<int>(whole.begin() + 16, whole.end()));
    CHECK(loop(loader.rest(), 100).empty());
    loader.restore(middle);
    CHECK(loop(loader.epoch(1), 100) == std::vector<int>(whole.begin() + 16, whole.end()));
    CHECK(loop(loader.epoch(1), 100) == whole);
  }
}

TEST_CASE("integration/any_loader: request_stop ends loops") {
  auto loader = make_loader(false);
  std::size_t batches = 0;
  for (auto epoch : loader.epochs(1000))
    for ([[maybe_unused]] auto& b : epoch)
      if (++batches == 3) loader.request_stop();
  CHECK(loader.stopped());
  CHECK(batches >= 3);
  CHECK(batches < 20);
}

TEST_CASE("integration/any_loader: a progress bar follows") {
  auto loader = make_loader(false);
  std::FILE* const out = std::tmpfile();
  REQUIRE(out != nullptr);
  for (auto epoch : loader.epochs(2)) {
    ps::progress bar("epoch " + std::to_string(epoch.number()), loader.steps_per_epoch(), out);
    bar.begin(loader.counters());
    for ([[maybe_unused]] auto& b : epoch) bar.tick([&] { return loader.counters(); });
    bar.finish(loader.counters());
    CHECK_THAT(bar.line(loader.counters()), contains("epoch " + std::to_string(epoch.number())));
    CHECK_THAT(bar.line(loader.counters()), contains(std::to_string(loader.steps_per_epoch())));
  }
  std::fclose(out);
}
