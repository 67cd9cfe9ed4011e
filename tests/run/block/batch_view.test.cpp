// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/uneven_views.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <ranges>
#include <type_traits>

namespace batch_view_test {

namespace ps = penstock;
using namespace penstock_test;

static_assert(std::ranges::random_access_range<ps::ragged_view<int>> &&
                  std::ranges::borrowed_range<ps::ragged_view<int>> &&
                  std::ranges::view<ps::ragged_view<int>> &&
                  std::ranges::random_access_range<ps::padded_view<int>> &&
                  std::ranges::borrowed_range<ps::padded_view<int>> &&
                  std::ranges::view<ps::padded_view<int>>,
              "what a batch shows of uneven values is a range");
static_assert(std::is_convertible_v<ps::basic_ragged_view<int>, ps::ragged_view<int>> &&
                  std::is_convertible_v<ps::basic_padded_view<int>, ps::padded_view<int>>,
              "a function that reads takes the view of a batch that can be written");

TEST_CASE("run/batch_view: ragged values by sample") {
  const int values[] = {1, 2, 3, 4};
  const std::uint64_t offsets[] = {0, 1, 1, 4};
  const ps::extents shapes[] = {ps::extents(1), ps::extents(0), ps::extents(3, 1)};
  const ps::ragged_view<int> view(values, offsets, shapes, 3);
  CHECK(view.size() == 3);
  CHECK(view.values().size() == 4);
  CHECK(view[1].empty());
  CHECK(view[2][2] == 4);
  CHECK(view.shape(2) == ps::extents(3, 1));
  CHECK(ps::ragged_view<int>().values().empty());
}

TEST_CASE("run/batch_view: padded values by sample, with their mask") {
  const int values[] = {1, 2, 0, 0, 3, 4, 5, 6};
  const std::uint64_t lengths[] = {1, 2};
  const std::uint8_t mask[] = {1, 0, 1, 1};
  const ps::padded_view<int> view(ps::tensor_view<const int>(values, ps::extents(2, 2, 2)), lengths, mask);
  CHECK(view.size() == 2);
  CHECK(view[0].size() == 2);
  CHECK(view[1].size() == 4);
  CHECK(view[1][3] == 6);
  CHECK(view.mask().shape() == ps::extents(2, 2));
  CHECK(view.mask().data()[1] == 0);
}

}  // namespace batch_view_test
