// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/error.hpp>
#include <penstock/core/strided_view.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <set>
#include <type_traits>
#include <vector>

namespace ps = penstock;

namespace {

static_assert(ps::dense_strides(ps::extents(2, 3, 4)) == ps::element_strides{12, 4, 1});
static_assert(ps::dense_strides(ps::extents()) == ps::element_strides{});
static_assert(ps::is_dense(ps::extents(2, 3), {3, 1}) && !ps::is_dense(ps::extents(2, 3), {4, 1}) &&
              !ps::is_dense(ps::extents(2, 3), {1, 2}));
static_assert(ps::is_dense(ps::extents(1, 3), {77, 1}), "the stride of one element is not used");
static_assert(ps::is_dense(ps::extents(0, 3), {77, 5}), "an empty view has no gaps");
static_assert(ps::is_dense(ps::extents(), {}), "a scalar has no gaps either");

template <class V>
concept shows_all_values = requires(const V& v) { v.values(); } || requires(const V& v) { v.begin(); } ||
                           requires(const V& v) { v.size(); };
static_assert(shows_all_values<ps::tensor_view<int>> && !shows_all_values<ps::strided_view<int>>,
              "nobody reads gaps by mistake");
static_assert(!std::ranges::range<ps::strided_view<int>>);

}  // namespace

TEST_CASE("core/strided_view: elements, parts and rows of pitched rows") {
  std::vector<int> memory(2 * 3 * 5, -1);
  const ps::strided_view<int> view(memory.data(), ps::extents(2, 3, 4), {15, 5, 1});
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) view(i, j, k) = 100 * i + 10 * j + k;
  CHECK(memory[15 + 5 + 3] == 113);
  CHECK(memory[4] == -1);
  CHECK_FALSE(view.dense());
  CHECK(view.rank() == 3);
  CHECK(view.rows() == 6);
  CHECK(view.row_pitch() == 20);
  const auto row = view.row(5);
  CHECK(row.size() == 4);
  CHECK(row[3] == 123);
  CHECK(view.row(1)[0] == 10);
  const ps::strided_view<const int> part = view[1];
  CHECK(part.shape() == ps::extents(3, 4));
  CHECK(part(2, 1) == 121);
  CHECK(part.row_pitch() == 20);
  CHECK(part[2].row(0)[1] == 121);
  CHECK(part[2][1]() == 121);
  CHECK(part[2].row_pitch() == 0);
  CHECK(part[2].rows() == 1);
}

TEST_CASE("core/strided_view: orders that are not row-major, also backwards, and empty ones") {
  std::vector<int> memory{0, 1, 2, 3, 4, 5};
  const ps::strided_view<const int> turned(memory.data(), ps::extents(3, 2), {1, 3});
  CHECK(turned(2, 1) == 5);
  CHECK(turned[1](1) == 4);
  const ps::strided_view<const int> backwards(memory.data() + 5, ps::extents(6), {-1});
  CHECK(backwards(0) == 5);
  CHECK(backwards[4]() == 1);
  CHECK(ps::strided_view<int>().shape() == ps::extents());
  const ps::strided_view<int> empty(nullptr, ps::extents(0, 3), {8, 1});
  CHECK(empty.rows() == 0);
  CHECK(empty.dense());
}

TEST_CASE("core/strided_view: dense views convert to strided ones, and mutable views to const ones") {
  int values[] = {1, 2, 3, 4};
  const ps::tensor_view<int> dense(values, ps::extents(2, 2));
  const ps::strided_view<int> writes = dense;
  const ps::strided_view<const int> reads = dense, also = writes;
  CHECK(reads.dense());
  CHECK(reads(1, 0) == 3);
  CHECK(&also(1, 1) == values + 3);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<ps::strided_view<const int>, ps::strided_view<int>>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<ps::strided_view<int>, ps::tensor_view<int>>);
}

TEST_CASE("core/strided_view: a view becomes a std::mdspan with its strides") {
#ifdef __cpp_lib_mdspan
  std::vector<int> memory(2 * 3 * 5);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int>(i);
  const ps::strided_view<int> view(memory.data(), ps::extents(2, 3, 4), {15, 5, 1});
  const auto pitched = view.mdspan<3>();
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 4; ++k) CHECK(&pitched[i, j, k] == &view(i, j, k));
  CHECK(pitched.stride(1) == 5);
  CHECK_FALSE(pitched.is_exhaustive());
  const auto turned = ps::strided_view<const int>(memory.data(), ps::extents(3, 2), {1, 3}).mdspan<2>();
  CHECK(turned[2, 1] == 5);
  const auto one = ps::strided_view<int>(memory.data(), ps::extents(1, 3), {-7, 1}).mdspan<2>();
  CHECK(one[0, 2] == 2);
  CHECK(ps::strided_view<int>(nullptr, ps::extents(0, 3), {0, 0}).mdspan<2>().empty());
  CHECK_THROWS_AS(view.mdspan<2>(), ps::error);
  CHECK_THROWS_AS(ps::strided_view<int>(memory.data() + 5, ps::extents(6), {-1}).mdspan<1>(), ps::error);
  CHECK_THROWS_AS(ps::strided_view<int>(memory.data(), ps::extents(4, 3), {1, 1}).mdspan<2>(), ps::error);
#else
  WARN("not run: this standard library has no std::mdspan");
#endif
}

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

TEST_CASE("core/strided_view: all small arrays, against the standard's precondition") {
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
