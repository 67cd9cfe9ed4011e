// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/detail/index_range.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <ranges>

namespace ps = penstock;

namespace {

/// Three squares, computed on access.
struct squares {
  using iterator = ps::detail::index_iterator<squares>;
  [[nodiscard]] constexpr int operator[](std::size_t i) const noexcept { return static_cast<int>(i * i); }
  [[nodiscard]] constexpr iterator begin() const noexcept { return {*this, 1}; }
  [[nodiscard]] constexpr iterator end() const noexcept { return {*this, 4}; }
};
using range = ps::detail::index_range<squares>;

static_assert(std::random_access_iterator<squares::iterator>);
static_assert(std::ranges::random_access_range<range> && std::ranges::sized_range<range> &&
              std::ranges::view<range> && std::ranges::borrowed_range<range>);
static_assert(std::ranges::equal(range(squares{}) | std::views::reverse, std::array{9, 4, 1}),
              "it works in constant expressions");

}  // namespace

TEST_CASE("core/index_range: an iterator can move anywhere in the range") {
  const range all{squares{}};
  auto at = all.begin();
  CHECK(*at == 1);
  CHECK(*at++ == 1);
  CHECK(*at == 4);
  CHECK(*++at == 9);
  CHECK(*at-- == 9);
  CHECK(*--at == 1);
  CHECK(at[2] == 9);
  CHECK(*(1 + at) == 4);
  CHECK(*((at + 2) - 1) == 4);
  at += 3;
  CHECK(at == all.end());
  CHECK(at - all.begin() == 3);
  CHECK(all.begin() < at);
  at -= 3;
  CHECK(at == all.begin());
  CHECK(all.size() == 3);
  CHECK(all[3] == 9);
}
