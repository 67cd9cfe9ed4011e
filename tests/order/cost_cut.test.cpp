// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/cost_cut.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/order/order_chain.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/shuffle.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

const auto by_seven = [](std::uint64_t i) -> std::uint64_t { return i % 7; };
using rule = ps::cost_rule<decltype(by_seven)>;

}  // namespace

TEST_CASE("order/cost_cut: batches are consecutive, full, and do not depend on the number of ranks") {
  const auto orders = ps::make_order_chain({500}, ps::shuffle(ps::seed(3)));
  for (const std::uint64_t limit : {6u, 7u, 13u, 100u, 5000u}) {
    const auto whole = rule{{by_seven}, limit}.make(orders, {});
    static_assert(ps::step_cut<std::remove_cv_t<decltype(whole)>>);
    const ps::dealt_batches alone = whole.bind(1);
    const auto bound = orders.bind(1, 0, 500);
    std::uint64_t next = 0, least = std::numeric_limits<std::uint64_t>::max();
    for (std::uint64_t s = 0; s < alone.steps(); ++s) {
      const ps::step_view view = alone.at(s);
      CHECK(view.base() == next);
      CHECK(alone.before(s) == next);
      CHECK(alone.count(s) == view.valid());
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0; i < view.valid(); ++i) sum += by_seven(bound(view[i]).index);
      CHECK(sum <= limit);
      if (s != 0) CHECK(least + by_seven(bound(next).index) > limit);  // the previous batch had no room
      least = sum;
      next += view.valid();
    }
    CHECK(next == 500);
    CHECK(alone.before(alone.steps()) == 500);
    CHECK(whole.usual() >= 1);
    for (const std::uint64_t world : {2u, 3u, 64u, 1000u}) {
      for (std::uint64_t rank = 0; rank < world; rank += world / 2) {
        const ps::dealt_batches mine = whole.on(world, rank).bind(1);
        CHECK(mine.steps() == (alone.steps() + world - 1) / world);
        for (std::uint64_t s = 0; s < mine.steps(); ++s) {
          const std::uint64_t number = s * world + rank;
          CHECK(mine.at(s).valid() == (number < alone.steps() ? alone.at(number).valid() : 0));
          if (number < alone.steps()) CHECK(mine.at(s).base() == alone.at(number).base());
          CHECK(mine.count(s) == mine.before(s + 1) - mine.before(s));
        }
      }
    }
  }
}

TEST_CASE("order/cost_cut: with padding every sample of a batch costs as much as the most costly one") {
  const auto orders = ps::make_order_chain({500}, ps::shuffle(ps::seed(3)));
  const auto bound = orders.bind(1, 0, 500);
  for (const std::uint64_t limit : {6u, 7u, 13u, 100u, 5000u}) {
    const auto made = rule{{by_seven}, limit, ps::tail::keep, true}.make(orders, {});
    CHECK(made.usual() >= 1);
    const ps::dealt_batches epoch = made.bind(1);
    std::uint64_t next = 0;
    for (std::uint64_t s = 0; s < epoch.steps(); ++s) {
      const ps::step_view view = epoch.at(s);
      CHECK(view.base() == next);
      std::uint64_t highest = 0;
      for (std::uint64_t i = 0; i < view.valid(); ++i)
        highest = std::max(highest, by_seven(bound(view[i]).index));
      CHECK(highest * view.valid() <= limit);
      next += view.valid();
      if (next == 500) break;
      CHECK(std::max(highest, by_seven(bound(next).index)) * (view.valid() + 1) > limit);  // it had no room
    }
    CHECK(next == 500);
  }
  constexpr std::uint64_t maximum = (std::uint64_t{1} << 63) - 1;
  const std::vector<std::uint64_t> costs{maximum, 0, maximum / 2, maximum / 2, 1};
  const auto values =
      ps::cost_rule<ps::sample_list<std::uint64_t>>{{ps::sample_list(costs)}, maximum, ps::tail::keep, true};
  const ps::dealt_batches epoch = values.make(ps::make_order_chain({5}), {.samples = 5}).bind(0);
  REQUIRE(epoch.steps() == 3);
  CHECK(epoch.count(0) == 1);
  CHECK(epoch.count(1) == 2);
  CHECK(epoch.count(2) == 2);
  CHECK(rule{{by_seven}, 9, ps::tail::keep, true}.describe() == "batch_by(limit 9 with padding, tail keep)");
}

TEST_CASE("order/cost_cut: a cost of any size is added without a wrap") {
  constexpr std::uint64_t maximum = (std::uint64_t{1} << 63) - 1;
  const std::vector<std::uint64_t> costs{maximum, 1, maximum - 1, 1, 1, 0};
  const auto made = ps::cost_rule<ps::sample_list<std::uint64_t>>{{ps::sample_list(costs)}, maximum}.make(
      ps::make_order_chain({6}), {.samples = 6});
  const ps::dealt_batches epoch = made.bind(0);
  REQUIRE(epoch.steps() == 3);
  CHECK(epoch.count(0) == 1);
  CHECK(epoch.count(1) == 2);
  CHECK(epoch.count(2) == 3);
}

TEST_CASE("order/cost_cut: a sample that costs too much fails in its step on every rank") {
  const auto cost = [](std::uint64_t i) -> std::uint64_t { return i == 25 ? 11 : 2; };
  const auto made = ps::cost_rule<decltype(cost)>{{cost}, 10}.make(ps::make_order_chain({100}), {});
  for (const std::uint64_t world : {1u, 2u, 3u, 4u, 9u}) {
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      const ps::dealt_batches mine = made.on(world, rank).bind(0);
      CHECK(mine.steps() == 5 / world + 1);
      for (std::uint64_t s = 0; s + 1 < mine.steps(); ++s) CHECK_NOTHROW(mine.at(s));
      CHECK_THROWS_AS(mine.at(mine.steps() - 1), ps::error);
      CHECK_THROWS_AS(mine.check(), ps::error);
    }
  }
  CHECK_NOTHROW(
      ps::cost_rule<decltype(cost)>{{cost}, 11}.make(ps::make_order_chain({100}), {}).bind(0).check());
}

TEST_CASE("order/cost_cut: a batch usually has no more slots than there are positions") {
  const auto orders = ps::make_order_chain({16});
  CHECK(rule{{by_seven}, 1'000'000'000}.make(orders, {}).usual() == 16);
  CHECK(rule{{by_seven}, 1}.make(orders, {}).usual() == 1);
  CHECK(rule{{by_seven}, 1}.make(ps::make_order_chain({0}), {}).bind(0).steps() == 0);
}

TEST_CASE("order/cost_cut: a negative limit is refused") {
  const auto made_of = [](std::uint64_t limit) {
    return penstock_test::error_of([&] {
      (void)rule{{by_seven}, limit}.make(ps::make_order_chain({9}), {});
    });
  };
  CHECK_THAT(made_of(static_cast<std::uint64_t>(std::int64_t{-1})),
             penstock_test::contains("negative or absurd"));
  CHECK_THAT(made_of(std::uint64_t{1} << 63), penstock_test::contains("negative or absurd"));
}

TEST_CASE("order/cost_cut: a cost that throws fails in its step on every rank, and is not computed again") {
  std::uint64_t asked = 0;
  const auto cost = [&asked](std::uint64_t i) -> std::uint64_t {
    if (++asked; i == 25) throw ps::error(ps::errc::io, "no length today");
    return 2;
  };
  const auto made = ps::cost_rule<decltype(cost)>{{cost}, 10}.make(ps::make_order_chain({100}), {});
  for (const std::uint64_t world : {1u, 2u, 5u}) {
    const ps::dealt_batches mine = made.on(world, 0).bind(3);
    CHECK(mine.steps() == 5 / world + 1);
    for (std::uint64_t s = 0; s + 1 < mine.steps(); ++s) CHECK_NOTHROW(mine.at(s));
    for (int again = 0; again < 2; ++again) {
      const std::string said = penstock_test::error_of([&] { (void)mine.at(mine.steps() - 1); });
      CHECK_THAT(said, penstock_test::contains("no length today, in the cost of sample 25"));
      CHECK_THAT(said, penstock_test::contains("[stage batch_by, position 3:25]"));
    }
    CHECK_THROWS_AS(mine.check(), ps::error);
  }
  CHECK(asked == 26);
  const auto other = [](std::uint64_t) -> std::uint64_t { throw 5; };
  CHECK_THROWS_AS(
      (ps::cost_rule<decltype(other)>{{other}, 10}.make(ps::make_order_chain({9}), {}).bind(0).at(0)), int);
}

TEST_CASE("order/cost_cut: a pass can be stopped, and leaves nothing behind") {
  std::atomic<bool> stop{false};
  std::uint64_t asked = 0;
  const auto cost = [&](std::uint64_t) -> std::uint64_t {
    if (++asked == 10) stop = true;
    return 2;
  };
  const auto made = ps::cost_rule<decltype(cost)>{{cost}, 10}.make(ps::make_order_chain({100}), {});
  CHECK_THROWS_AS(made.bind(0, &stop), ps::pass_stopped);
  CHECK(asked == 10);
  CHECK(made.bind(0).steps() == 20);
  CHECK(asked == 110);
  CHECK(made.bind(0, &stop).steps() == 20);  // the pass works if it is not stopped
}

TEST_CASE("order/cost_cut: fingerprints cover the limit, the tail and values, but no functions") {
  const auto mark = [](const auto& r) {
    ps::fingerprint h;
    r.fingerprint(h);
    return h.value();
  };
  const ps::sample_list<unsigned> some({1, 2, 3}), other({1, 2, 4});
  using listed = ps::cost_rule<ps::sample_list<unsigned>>;
  CHECK(mark(listed{{some}, 5}) == mark(listed{{some}, 5}));
  CHECK(mark(listed{{some}, 5}) != mark(listed{{other}, 5}));
  CHECK(mark(listed{{some}, 5}) != mark(listed{{some}, 6}));
  CHECK(mark(listed{{some}, 5}) != mark(listed{{some}, 5, ps::tail::drop}));
  CHECK(rule{{by_seven}, 5}.describe() == "batch_by(limit 5, tail keep)");
}
