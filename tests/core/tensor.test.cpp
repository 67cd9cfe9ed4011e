// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/tensor.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

namespace ps = penstock;

static_assert(std::is_trivially_copyable_v<ps::extents>, "shapes are cheap to copy");
static_assert(ps::extents().rank() == 0 && ps::extents().elements() == 1, "no length means a scalar");
static_assert(ps::extents(2, 3, 4).elements() == 24, "elements multiply");
static_assert(ps::extents(2, 0).elements() == 0, "a length of zero means no elements");
static_assert(ps::extents(2, 3) != ps::extents(3, 2) && ps::extents(2) != ps::extents(2, 1),
              "shapes are equal when all lengths are");
static_assert(std::is_convertible_v<ps::tensor_view<int>, ps::tensor_view<const int>> &&
                  !std::is_convertible_v<ps::tensor_view<const int>, ps::tensor_view<int>>,
              "views gain const and never lose it");
static_assert(std::ranges::random_access_range<ps::tensor_view<int>> &&
                  std::ranges::borrowed_range<ps::tensor_view<int>> &&
                  std::ranges::view<ps::tensor_part<const int>> &&
                  std::ranges::sized_range<decltype(ps::tensor_view<int>().rows())>,
              "a view is a range of rows");
static_assert(!std::is_convertible_v<ps::tensor_view<int>, int> &&
                  std::is_convertible_v<ps::tensor_part<int>, int&> &&
                  std::is_assignable_v<ps::tensor_part<int>, int> &&
                  !std::is_assignable_v<ps::tensor_part<const int>, int> &&
                  !std::is_assignable_v<ps::tensor_part<int>&, int>,
              "what v[i] gives stands for an element; no other view does");
static_assert(std::is_trivially_copyable_v<ps::tensor_view<int>> &&
              std::is_trivially_copyable_v<ps::tensor_part<int>>);

TEST_CASE("core/tensor: extents grow to eight dimensions") {
  ps::extents shape;
  for (std::uint64_t i = 1; i <= ps::extents::max_rank; ++i) CHECK(shape.push_back(i));
  CHECK(!shape.push_back(9));
  CHECK(shape.rank() == 8);
  CHECK(shape[7] == 8);
  CHECK(std::vector<std::uint64_t>(shape.begin(), shape.end()) ==
        std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("core/tensor: a batch has one more dimension in front, a row one less") {
  const ps::extents image(3, 8, 8);
  CHECK(image.prepend(5) == ps::extents(5, 3, 8, 8));
  CHECK(image.prepend(5).drop_front() == image);
  CHECK(ps::extents().prepend(4) == ps::extents(4));
  CHECK(ps::extents(4).drop_front() == ps::extents());
  CHECK(ps::extents().drop_front() == ps::extents());
}

TEST_CASE("core/tensor: shapes are printed as in numpy") {
  CHECK(ps::to_string(ps::extents()) == "()");
  CHECK(ps::to_string(ps::extents(5)) == "(5,)");
  CHECK(ps::to_string(ps::extents(3, 224, 224)) == "(3, 224, 224)");
}

TEST_CASE("core/tensor: a view reads rows of rows") {
  std::array<int, 24> values{};
  std::iota(values.begin(), values.end(), 0);
  const ps::tensor_view<int> view(values.data(), ps::extents(2, 3, 4));
  CHECK(view.rank() == 3);
  CHECK(view.size() == 24);
  CHECK(view[1].shape() == ps::extents(3, 4));
  CHECK(view[1][2][3].data() == values.data() + 23);
  CHECK(view[1][2][3].size() == 1);
  CHECK(view[1][2][3].rank() == 0);
  CHECK(*view[0][1].begin() == 4);
  CHECK(view[0][1].end() - view[0][1].begin() == 4);
  view[1][0].values()[0] = 100;
  CHECK(values[12] == 100);
  const ps::tensor_view<const int> fixed = view;
  CHECK(fixed.data() == values.data());
  int sum = 0;
  for (const int x : fixed[0].flat()) sum += x;
  CHECK(sum == 66);
}

TEST_CASE("core/tensor: elements by their indexes, and strides") {
  std::array<int, 24> values{};
  std::iota(values.begin(), values.end(), 0);
  const ps::tensor_view<int> view(values.data(), ps::extents(2, 3, 4));
  STATIC_REQUIRE(std::is_same_v<decltype(view(1, 2, 3)), int&>);
  CHECK(view(0, 0, 0) == 0);
  CHECK(view(1, 2, 3) == 23);
  CHECK(view(1U, std::size_t{0}, 2) == 14);
  view(0, 1, 2) = -6;
  CHECK(values[6] == -6);
  CHECK(view.strides() == ps::element_strides{12, 4, 1});
  CHECK(view[0].strides() == ps::element_strides{4, 1});
  const ps::tensor_view<const int> scalar(values.data() + 3, ps::extents());
  CHECK(scalar() == 3);
}

TEST_CASE("core/tensor: with one dimension, v[i] is an element") {
  std::array<int, 6> values{0, 1, 2, 3, 4, 5};
  const ps::tensor_view<int> view(values.data(), ps::extents(6)), table(values.data(), ps::extents(2, 3));
  const int second = view[1];
  CHECK(second == 1);
  CHECK(view[5] + 1 == 6);
  CHECK(view[1] < view[2]);
  view[0] = 10;
  view[1] = view[5];  // assigns the number, not the view
  view[2] += 3;
  view[3] -= 1;
  view[4] *= 2;
  view[5] /= 5;
  CHECK(values == std::array<int, 6>{10, 5, 5, 2, 8, 1});
  int& there = table[1][2];
  there = 7;
  CHECK(values[5] == 7);
  CHECK_THROWS_WITH(static_cast<int>(table[1]),
                    "penstock: a row of shape (3,) was used as an element; write v(i, j) for an element, or "
                    "loop over v.flat()");
  CHECK(values[3] == 2);
  auto row = table[0];
  row = table[1];  // a named view is made to view another part
  CHECK(row(0) == 2);
  CHECK(values[0] == 10);
}

TEST_CASE("core/tensor: a loop goes over rows, and flat() over elements") {
  std::array<int, 12> values{};
  std::iota(values.begin(), values.end(), 0);
  const ps::tensor_view<int> view(values.data(), ps::extents(3, 4));
  std::vector<int> sums;
  for (const ps::tensor_view<const int> row : view) {
    int sum = 0;
    for (const int x : row) sum += x;
    sums.push_back(sum);
  }
  CHECK(sums == std::vector<int>{6, 22, 38});
  CHECK(view.rows().size() == 3);
  CHECK(view.rows()[2](1) == 9);
  CHECK(view.end() - view.begin() == 3);
  CHECK((view.end() - 1)[-1](0) == 4);
  CHECK(std::ranges::size(view) == 3);
  CHECK(view.size() == 12);
  for (int& x : view[0]) x = 1;
  CHECK(view.flat().size() == 12);
  CHECK(std::accumulate(view.flat().begin(), view.flat().end(), 0) == 64);
  const std::span<const int> all = view;
  CHECK(all.data() == values.data());
  std::size_t empty_rows = 0;
  for (const auto row : ps::tensor_view<int>(nullptr, ps::extents(5, 0))) empty_rows += row.shape()[0] + 1;
  CHECK(empty_rows == 5);
  CHECK(ps::tensor_view<int>(values.data(), ps::extents()).begin() ==
        ps::tensor_view<int>(values.data(), ps::extents()).end());
}

TEST_CASE("core/tensor: a view becomes a std::mdspan of its rank") {
#ifdef __cpp_lib_mdspan
  std::array<int, 6> values{0, 1, 2, 3, 4, 5};
  const ps::tensor_view<int> view(values.data(), ps::extents(2, 3));
  const auto two = view.mdspan<2>();
  CHECK(two.extent(1) == 3);
  CHECK(two.data_handle() == values.data());
  const std::mdspan<const int, std::extents<int, 2, 3>> known = view;
  CHECK(known.extent(0) == 2);
  CHECK(&known[1, 2] == &view(1, 2));
  CHECK_THROWS_AS(view.mdspan<3>(), ps::error);
  CHECK_THROWS_AS((std::mdspan<int, std::extents<int, 2, 4>>(view)), ps::error);
  const ps::tensor_view<int> long_one(values.data(), ps::extents(300));
  CHECK_THROWS_AS((std::mdspan<int, std::dextents<signed char, 1>>(long_one)), ps::error);
  const ps::tensor_view<int> empty(values.data(), ps::extents(0, 300));
  CHECK_THROWS_AS((std::mdspan<int, std::dextents<signed char, 2>>(empty)), ps::error);
  int seven = 7;
  CHECK(ps::tensor_view<int>(&seven, ps::extents()).mdspan<0>()[std::array<int, 0>{}] == 7);
#else
  WARN("not run: this standard library has no std::mdspan");
#endif
}

TEST_CASE("core/tensor: the example of the header") {
  std::vector<float> memory{0, 1, 2, 3, 4, 5};
  const ps::tensor_view<float> v(memory.data(), ps::extents(2, 3));
  v(1, 2) = 7;                          // an element
  v[1][2] = 8;                          // also element (1, 2)
  for (const auto row : v) row[0] = 0;  // rows of shape (3,)
  float sum = 0;
  for (const float x : v.flat()) sum += x;  // all six
  CHECK(sum == 15.0f);
}

TEST_CASE("core/tensor: an empty view has no elements to walk over") {
  const ps::tensor_view<float> view(nullptr, ps::extents(0, 3));
  CHECK(view.size() == 0);
  CHECK(view.begin() == view.end());
}
