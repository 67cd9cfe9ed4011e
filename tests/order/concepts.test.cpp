// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/concepts.hpp>

#include <penstock/order/repeat.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/catch.hpp"

namespace ps = penstock;

namespace {

/// A user's own order: the positions in reverse.
struct backwards_order {
  struct bound {
    std::uint64_t epoch = 0, size = 0;
    ps::position operator()(std::uint64_t index) const { return {epoch, size - 1 - index}; }
  };
  ps::order_input in;
  std::uint64_t size() const { return in.size; }
  ps::order_input output() const { return {in.size, nullptr}; }
  bound bind(std::uint64_t epoch) const { return {epoch, in.size}; }
  std::optional<ps::position> position_of(ps::position upstream) const {
    if (upstream.index >= in.size) return std::nullopt;
    return ps::position{upstream.epoch, in.size - 1 - upstream.index};
  }
};
struct backwards {
  using penstock_part = ps::order_tag;
  static constexpr std::string_view stage_name = "backwards";
  backwards_order make(ps::order_input in) const { return {in}; }
  std::string describe() const { return "backwards"; }
};
struct without_inverse : backwards {
  struct made : backwards_order {
    void position_of(ps::position) const {}
  };
  made make(ps::order_input in) const { return {{in}}; }
};
struct without_tag {
  backwards_order make(ps::order_input in) const { return {in}; }
};

static_assert(ps::order<backwards_order> && ps::order_stage<backwards>, "a user's order meets the concepts");
static_assert(!ps::order_stage<without_inverse>, "an order needs an inverse");
static_assert(!ps::order_stage<without_tag>, "an order stage has its tag");
static_assert(!ps::order_stage<int> && !ps::order<int>, "a number is not an order");

}  // namespace

TEST_CASE("order/concepts: an order that a user writes") {
  const ps::order_of<backwards> made = backwards{}.make({5, nullptr});
  CHECK(made.bind(2)(0) == ps::position{2, 4});
  CHECK(made.position_of({2, 4}) == ps::position{2, 0});
}

TEST_CASE("order/concepts: take, skip and repeat declare how they change counts") {
  static_assert(ps::counting_stage<ps::take_stage>);
  static_assert(ps::counting_stage<ps::skip_stage>);
  static_assert(!ps::counting_stage<ps::repeat_stage>);
  static_assert(ps::repeating_stage<ps::repeat_stage>);
  static_assert(!ps::repeating_stage<ps::take_stage>);
  CHECK(ps::take(3).kept().first == 0);
  CHECK(ps::take(3).kept().end == 3);
  CHECK(ps::skip(3).kept().first == 3);
}
