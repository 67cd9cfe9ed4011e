// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/detail/layout_stride.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>

namespace ps = penstock;

namespace {

constexpr bool fits(const ps::extents& shape, ps::element_strides strides) {
  return ps::detail::fit_layout_stride(shape, strides);
}
static_assert(fits(ps::extents(), {}));
static_assert(fits(ps::extents(2, 3, 4), {12, 4, 1}) && fits(ps::extents(2, 3, 4), {15, 5, 1}));
static_assert(fits(ps::extents(3, 2), {1, 3}), "columns first");
static_assert(!fits(ps::extents(6), {-1}), "backwards");
static_assert(!fits(ps::extents(6), {0}), "one element shown six times");
static_assert(!fits(ps::extents(4, 3), {1, 1}), "windows that overlap");
static_assert(!fits(ps::extents(2, 3), {2, 1}), "rows that overlap by one element");
static_assert(fits(ps::extents(1, 3), {2, 1}) && fits(ps::extents(1, 3), {-7, 1}) &&
                  fits(ps::extents(1, 1), {0, 0}),
              "the stride of one element is not used");
static_assert(fits(ps::extents(0, 3), {8, -1}) && fits(ps::extents(3, 0, 4), {0, 0, 0}),
              "nor is any of an empty array");

/// The standard's precondition, word by word: some order of the dimensions in which each stride is at least
/// the one before it times that one's length.
bool allowed(const ps::extents& shape, const ps::element_strides& strides) {
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (strides[i] <= 0) return false;
  std::array<std::size_t, 3> p{0, 1, 2};
  do {
    bool holds = true;
    for (std::size_t i = 1; i < shape.rank(); ++i)
      holds = holds && strides[p[i]] >= strides[p[i - 1]] * static_cast<std::int64_t>(shape[p[i - 1]]);
    if (holds) return true;
  } while (std::next_permutation(p.begin(), p.end()));
  return false;
}

/// Whether each index reaches an element of its own, at or after the first.
bool unique(const ps::extents& shape, const ps::element_strides& strides) {
  std::set<std::int64_t> seen;
  for (std::uint64_t i = 0; i < shape.elements(); ++i) {
    std::uint64_t rest = i;
    std::int64_t at = 0;
    for (std::size_t k = shape.rank(); k-- > 0; rest /= shape[k])
      at += static_cast<std::int64_t>(rest % shape[k]) * strides[k];
    if (at < 0 || !seen.insert(at).second) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("core/detail/layout_stride: all small arrays, against the standard's precondition") {
  std::size_t taken = 0, refused = 0;
  for (std::uint64_t shapes = 0; shapes < 64; ++shapes)
    for (std::int64_t steps = 0; steps < 1000; ++steps) {
      const ps::extents shape(shapes / 16, shapes / 4 % 4, shapes % 4);
      const ps::element_strides given{steps / 100 - 1, steps / 10 % 10 - 1, steps % 10 - 1};
      ps::element_strides fitted = given;
      if (ps::detail::fit_layout_stride(shape, fitted)) {
        ++taken;
        if (!(allowed(shape, fitted))) FAIL("allowed(shape, fitted)");
        if (!(unique(shape, fitted))) FAIL("unique(shape, fitted)");
        for (std::size_t k = 0; k < 3; ++k)
          if (!(shape.elements() == 0 || shape[k] == 1 || fitted[k] == given[k]))
            FAIL("shape.elements() == 0 || shape[k] == 1 || fitted[k] == given[k]");
      } else {
        ++refused;
        if (!(!allowed(shape, given))) FAIL("!allowed(shape, given)");
      }
    }
  CHECK(taken > 1000);
  CHECK(refused > 1000);
}
