// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/inspection/consumed.hpp>

#include <penstock/order/repeat.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>

#include "support/catch.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace consumed_test {

namespace ps = penstock;

namespace {

constexpr auto identity = [](std::uint64_t i) { return i; };
using samples = std::vector<std::uint64_t>;

template <class Plan>
samples consumed(const Plan& plan, const ps::state& where) {
  samples all;
  std::pair<std::uint64_t, std::uint64_t> last{0, 0};
  ps::for_each_consumed(plan, where, [&](ps::consumed_range range) {
    REQUIRE(range.count != 0);
    REQUIRE((range.epoch != last.first || range.first >= last.second));  // ascending, and no two adjoin
    last = {range.epoch, range.first + range.count + 1};
    for (std::uint64_t i = 0; i < range.count; ++i) all.push_back(range.first + i);
  });
  std::sort(all.begin(), all.end());
  return all;
}

/// Checks after every step that the state describes exactly the samples three ranks delivered.
template <class Make>
void check(const Make& make) {
  std::vector<samples> after;  // of all ranks together
  std::vector<ps::state> states;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    auto run = make(rank).open();
    samples mine;
    std::size_t step = 0;
    for (auto epoch : run.epochs(3))
      for (auto&& b : epoch) {
        const auto values = b.values();
        for (std::size_t i = 0; i < b.valid_size(); ++i) mine.push_back(values[i]);
        if (step == after.size()) after.emplace_back();
        after[step].insert(after[step].end(), mine.begin(), mine.end());
        ++step;
        if (rank == 0) states.push_back(run.state());
      }
  }
  CHECK(consumed(make(0), make(0).open().state()).empty());
  for (std::size_t step = 0; step < states.size(); ++step) {
    INFO("after step " << step);
    std::sort(after[step].begin(), after[step].end());
    REQUIRE(consumed(make(step % 3), states[step]) == after[step]);
  }
}

}  // namespace

TEST_CASE("inspection/consumed: exactly what was delivered") {
  const auto source = ps::generated(50, identity);
  check([&](std::uint64_t rank) {
    return source | ps::shuffle(ps::seed(3)) | ps::shuffle_buffer(7, ps::seed(2)) | ps::shard(rank, 3) |
           ps::global_batch(8);
  });
  check([&](std::uint64_t rank) {
    return source | ps::repeat(2) | ps::shuffle_buffer(7, ps::seed(2)) | ps::shard(rank, 3) |
           ps::global_batch(8) | ps::steps(17);
  });
  check([&](std::uint64_t rank) {
    return source | ps::shuffle(ps::seed(3)) | ps::shard(rank, 3) | ps::global_batch(8);
  });
  check([&](std::uint64_t rank) {
    return source | ps::shuffle(ps::seed(3), ps::window(1), ps::lanes(4)) | ps::shard(rank, 3) |
           ps::batch(4, ps::tail::drop);
  });
  check([&](std::uint64_t rank) {
    return source | ps::skip(3) | ps::take(30) | ps::shuffle(ps::seed(3)) | ps::repeat(2) |
           ps::shard(rank, 3) | ps::batch(4, ps::tail::pad);
  });
  check([&](std::uint64_t rank) {
    return source | ps::shuffle(ps::seed(3)) | ps::shard(rank, 3) | ps::batch(4) | ps::skip(1) | ps::take(3);
  });
  check([&](std::uint64_t rank) {
    return source | ps::shuffle(ps::seed(3)) | ps::shard(rank, 3) | ps::batch(4) | ps::steps(7);
  });
}

TEST_CASE("inspection/consumed: ranges, and states of another plan") {
  const auto source = ps::generated(1000, identity);
  const auto plan = source | ps::batch(100);
  auto run = plan.open();
  for (int i = 0; i < 3; ++i) CHECK(run.next());
  std::vector<ps::consumed_range> ranges;
  ps::for_each_consumed(plan, run.state(), [&](ps::consumed_range range) { ranges.push_back(range); });
  REQUIRE(ranges.size() == 1);
  CHECK((ranges[0].first == 0 && ranges[0].count == 300));
  // The message says something even if the descriptions are equal.
  const auto kept = [](std::vector<int> labels) {
    return ps::generated(6, identity) | ps::subset(ps::sample_list(std::move(labels)), ps::equals(1)) |
           ps::batch(2);
  };
  CHECK_THROWS_WITH(ps::for_each_consumed(kept({1, 1, 1, 1, 0, 1}), kept({1, 1, 1, 1, 1, 0}).open().state(),
                                          [](ps::consumed_range) {}),
                    penstock_test::contains("not of this plan: a stage was changed"));
  CHECK_THROWS_WITH(
      ps::for_each_consumed(source | ps::batch(50), run.state(), [](ps::consumed_range) {}),
      penstock_test::contains("it has batch of 100 in all, tail keep where this plan has batch of 50"));
}

TEST_CASE("inspection/consumed: random stages of the run may be left out") {
  const auto order = ps::generated(50, identity) | ps::shuffle(ps::seed(3));
  auto run =
      (order | ps::map([](std::uint64_t x, ps::rng& random) { return x + random.below(2); }) | ps::batch(8))
          .open();
  CHECK(static_cast<bool>(run.next()));
  const ps::state where = run.state();
  CHECK(where.random != 0);
  CHECK(consumed(order | ps::batch(8), where).size() == 8);
}

}  // namespace consumed_test
