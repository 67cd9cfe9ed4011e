// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/tensor.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstdint>
#include <numeric>
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

TEST_CASE("core/tensor: extents grow to eight lengths") {
  ps::extents shape;
  for (std::uint64_t i = 1; i <= ps::extents::max_rank; ++i) CHECK(shape.push_back(i));
  CHECK(!shape.push_back(9));
  CHECK(shape.rank() == 8);
  CHECK(shape[7] == 8);
  CHECK(std::vector<std::uint64_t>(shape.begin(), shape.end()) ==
        std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("core/tensor: a batch has one length more in front, a row one less") {
  const ps::extents image(3, 8, 8);
  CHECK(image.prepend(5) == ps::extents(5, 3, 8, 8));
  CHECK(image.prepend(5).drop_front() == image);
  CHECK(ps::extents().prepend(4) == ps::extents(4));
  CHECK(ps::extents(4).drop_front() == ps::extents());
  CHECK(ps::extents().drop_front() == ps::extents());
}

TEST_CASE("core/tensor: shapes are spelled as numpy does") {
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
  CHECK(*view[0][1].begin() == 4);
  CHECK(view[0][1].end() - view[0][1].begin() == 4);
  view[1][0].values()[0] = 100;
  CHECK(values[12] == 100);
  const ps::tensor_view<const int> fixed = view;
  CHECK(fixed.data() == values.data());
  int sum = 0;
  for (const int x : fixed[0]) sum += x;
  CHECK(sum == 66);
}

TEST_CASE("core/tensor: an empty view has no elements to walk over") {
  const ps::tensor_view<float> view(nullptr, ps::extents(0, 3));
  CHECK(view.size() == 0);
  CHECK(view.begin() == view.end());
}
