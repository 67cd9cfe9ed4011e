// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/range_v3.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <range/v3/algorithm/count_if.hpp>
#include <range/v3/algorithm/equal.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <range/v3/algorithm/for_each.hpp>
#include <range/v3/algorithm/max.hpp>
#include <range/v3/algorithm/sort.hpp>
#include <range/v3/numeric/accumulate.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/chunk.hpp>
#include <range/v3/view/concat.hpp>
#include <range/v3/view/drop.hpp>
#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/join.hpp>
#include <range/v3/view/move.hpp>
#include <range/v3/view/reverse.hpp>
#include <range/v3/view/stride.hpp>
#include <range/v3/view/take.hpp>
#include <range/v3/view/take_while.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/zip_with.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
namespace rv = ranges::views;
using namespace penstock_test;

namespace {

auto shuffled() {
  return ps::from(first_ints(20)) | ps::shuffle(ps::seed(3)) | ps::batch(4) | ps::workers(2);
}
using shuffled_run = decltype(shuffled().open());

/// The epochs as a loop without range-v3 sees them.
std::vector<int> expected_epochs(std::uint64_t count) {
  std::vector<int> all;
  auto run = shuffled().open();
  for (auto epoch : run.epochs(count))
    for (auto&& b : epoch) all.insert(all.end(), b.begin(), b.end());
  return all;
}

const auto sum_of = [](auto& b) { return ranges::accumulate(b.values(), 0); };

}  // namespace

static_assert(ranges::input_range<shuffled_run>, "a run is an input range of range-v3");
static_assert(!ranges::forward_range<shuffled_run>, "its batches can be read only once");
static_assert(ranges::input_range<ps::epoch_view<shuffled_run>>, "so is an epoch of it");
static_assert(ranges::view_<ps::epoch_view<shuffled_run>>, "an epoch is a value that may be piped");
static_assert(ranges::random_access_range<decltype(ps::epochs_of(std::declval<shuffled_run&>(), 1))>,
              "epochs are numbers");
static_assert(ranges::view_<decltype(ps::epochs_of(std::declval<shuffled_run&>(), 1))>, "and a view");

TEST_CASE("integration/range_v3: a run goes through views and algorithms") {
  auto run = shuffled().open();
  std::vector<int> seen;
  for (auto&& [number, b] : run | rv::enumerate | rv::take(3)) {
    CHECK(b.positions().front().index == number * 4);
    seen.insert(seen.end(), b.begin(), b.end());
  }
  const auto all = expected_epochs(1);
  CHECK(ranges::equal(seen, all | rv::take(12)));
  // take(3) has requested three: the state is after them, and the rest can still be read.
  CHECK(run.state().step == 3);
  std::vector<int> rest;
  ranges::for_each(run, [&](auto& b) { rest.insert(rest.end(), b.begin(), b.end()); });
  CHECK(ranges::equal(rest, all | rv::drop(12)));
}

TEST_CASE("integration/range_v3: epochs joined are one range, in the order of the plain loop") {
  auto run = shuffled().open();
  std::vector<int> seen;
  for (auto&& b : ps::epochs_of(run, 3) | rv::join) seen.insert(seen.end(), b.begin(), b.end());
  CHECK(seen == expected_epochs(3));
  CHECK(ranges::accumulate(ps::epochs_of(run, 3) | rv::join | rv::transform(sum_of), 0) == 0);
}

TEST_CASE("integration/range_v3: an epoch is a view that can be stored, stepped through and folded") {
  auto run = shuffled().open();
  const auto epoch = ps::epoch_of(run, 0);
  CHECK(epoch.number() == 0);
  CHECK(ranges::accumulate(epoch | rv::transform(sum_of), 0) == 190);
  // restarts at the beginning of the epoch
  CHECK(ranges::accumulate(epoch | rv::transform(sum_of), 0) == 190);
  CHECK(ranges::max(ps::epoch_of(run, 1) | rv::transform([](auto& b) { return ranges::max(b.values()); })) ==
        19);
  const auto sums = ps::epoch_of(run, 2) | rv::stride(2) | rv::transform(sum_of) | ranges::to<std::vector>;
  CHECK(sums.size() == 3);
  const auto all = expected_epochs(3);
  CHECK(sums[1] == ranges::accumulate(all | rv::drop(48) | rv::take(4), 0));
  for (auto epochs = ps::epochs_of(run, 5); auto e : epochs | rv::reverse)
    CHECK(ranges::count_if(e, [](auto& b) { return b.size() == 4; }) == 5);
}

TEST_CASE("integration/range_v3: batches of batches, and batches that are kept") {
  auto run = (shuffled() | ps::prefetch(6)).open();
  std::vector<int> sums;
  for (auto&& two : ps::epoch_of(run, 0) | rv::transform(sum_of) | rv::chunk(2))
    sums.push_back(ranges::accumulate(two, 0));
  CHECK(sums.size() == 3);
  CHECK(ranges::accumulate(sums, 0) == 190);
  const auto kept = ps::epoch_of(run, 1) | rv::move | ranges::to<std::vector>;  // handles can be moved out
  CHECK(kept.size() == 5);
  CHECK(ranges::accumulate(kept, 0, [](int sum, const auto& b) { return sum + ranges::accumulate(b, 0); }) ==
        190);
}

TEST_CASE("integration/range_v3: a loop without batches, and a search that stops") {
  const auto plan = ps::from(first_ints(50)) | ps::filter([](int x) { return x % 3 == 0; });
  auto run = plan.open();
  CHECK((ps::epoch_of(run, 0) | rv::take_while([](int x) { return x < 10; }) | ranges::to<std::vector>) ==
        std::vector{0, 3, 6, 9});
  auto other = plan.open();
  const auto epoch = ps::epoch_of(other, 0);
  const auto found = ranges::find_if(epoch, [](int x) { return x > 30; });
  CHECK(*found == 33);
}

TEST_CASE("integration/range_v3: an exception of the chain passes through the view") {
  const auto plan = ps::from(first_ints(40)) |
                    ps::map([](int x) { return x < 20 ? x : throw std::runtime_error("twenty"); }) |
                    ps::batch(8);
  auto run = plan.open();
  int batches = 0;
  CHECK_THROWS_AS(ranges::for_each(ps::epoch_of(run, 0), [&](auto&) { ++batches; }), ps::nested_error);
  CHECK(batches == 2);
}

TEST_CASE("integration/range_v3: a restored run delivers the rest of its epochs") {
  const auto all = expected_epochs(3);
  auto run = shuffled().open();
  ps::state middle;
  for (auto&& [number, b] : ps::epochs_of(run, 3) | rv::join | rv::enumerate | rv::take(7))
    if (number == 6 && b.size() != 0) middle = run.state();
  auto again = shuffled().open(middle);
  std::vector<int> rest;
  for (auto&& b : ps::epochs_of(again, 3) | rv::join) rest.insert(rest.end(), b.begin(), b.end());
  CHECK(ranges::equal(rest, all | rv::drop(28)));
}

TEST_CASE("integration/range_v3: a random-access view is an indexed source") {
  const std::vector<int> first{1, 2, 3}, second{40, 50, 60, 70};
  const auto plan = ps::from(rv::concat(first, second) | rv::transform([](int x) { return x * 10; })) |
                    ps::shuffle(ps::seed(1)) | ps::batch(2);
  static_assert(ps::indexed<decltype(plan)>, "a position of a random-access view may be read at any time");
  auto values = values_of(plan, 3);
  CHECK(values != std::vector{10, 20, 30, 400, 500, 600, 700});
  ranges::sort(values);
  CHECK(values == std::vector{10, 20, 30, 400, 500, 600, 700});

  const std::vector<std::string> names{"a", "bb", "ccc"};
  const auto join_up = [](int number, const std::string& name) {
    return number * 100 + static_cast<int>(name.size());
  };
  const auto pairs = ps::from(rv::zip_with(join_up, rv::iota(0, 3), names)) | ps::batch(3);
  static_assert(ps::indexed<decltype(pairs)>, "a zipped view does not lose it either");
  CHECK(values_of(pairs, 2) == std::vector{1, 102, 203});
}

TEST_CASE("integration/range_v3: a forward view is a forward source, read again each epoch") {
  auto odd = rv::iota(0, 30) | rv::filter([](int x) { return x % 2 != 0; });
  const auto plan = ps::from(odd) | ps::batch(4);
  static_assert(!ps::indexed<decltype(plan)>, "a filter has no positions");
  CHECK(values_of(plan, 2) == (odd | ranges::to<std::vector>));
  auto run = plan.open();
  const int sum = ranges::accumulate(odd, 0);
  CHECK(ranges::accumulate(ps::epochs_of(run, 2) | rv::join | rv::transform(sum_of), 0) == 2 * sum);
}
