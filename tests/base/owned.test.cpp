// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/base/owned.hpp>

#include "support/catch.hpp"

#include <type_traits>
#include <utility>

namespace ps = penstock;

namespace {

struct watched {
  explicit watched(int& alive) : alive_(alive) { ++alive_; }
  watched(const watched&) = delete;
  watched& operator=(const watched&) = delete;
  ~watched() { --alive_; }
  int& alive_;
};

}  // namespace

TEST_CASE("base/owned: the object lives as long as its last owner") {
  int alive = 0;
  {
    ps::detail::owned<watched> first(new watched(alive));
    CHECK(alive == 1);
    watched* const there = first.get();
    ps::detail::owned<watched> second(std::move(first));
    CHECK(!first);  // NOLINT: what a move leaves
    CHECK(second.get() == there);
    CHECK(&*second == there);

    second = ps::detail::owned<watched>(new watched(alive));
    CHECK(alive == 1);
    CHECK(second->alive_ == 1);
  }
  CHECK(alive == 0);
}

TEST_CASE("base/owned: an owner that is moved onto itself keeps its object") {
  int alive = 0;
  ps::detail::owned<watched> one(new watched(alive));
  auto& same = one;
  one = std::move(same);
  CHECK(one);
  CHECK(alive == 1);
}

TEST_CASE("base/owned: there is one owner, and an empty one owns nothing") {
  static_assert(!std::is_copy_constructible_v<ps::detail::owned<int>>);
  static_assert(std::is_nothrow_move_constructible_v<ps::detail::owned<int>>);
  CHECK(!ps::detail::owned<int>());
}
