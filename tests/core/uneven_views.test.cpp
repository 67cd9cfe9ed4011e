// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/uneven_views.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

namespace ps = penstock;

static_assert(
    std::ranges::random_access_range<ps::basic_ragged_view<int>> &&
        std::ranges::sized_range<ps::basic_ragged_view<int>> &&
        std::ranges::borrowed_range<ps::basic_ragged_view<int>> &&
        std::is_same_v<std::ranges::range_value_t<ps::basic_ragged_view<const int>>, std::span<const int>>,
    "ragged values are a range of spans");
static_assert(std::ranges::random_access_range<ps::basic_padded_view<int>> &&
                  std::ranges::sized_range<ps::basic_padded_view<int>> &&
                  std::ranges::borrowed_range<ps::basic_padded_view<int>>,
              "padded values too");
static_assert(std::is_convertible_v<ps::basic_ragged_view<int>, ps::basic_ragged_view<const int>> &&
                  !std::is_convertible_v<ps::basic_ragged_view<const int>, ps::basic_ragged_view<int>> &&
                  std::is_convertible_v<ps::basic_padded_view<int>, ps::basic_padded_view<const int>> &&
                  !std::is_convertible_v<ps::basic_padded_view<const int>, ps::basic_padded_view<int>>,
              "views gain const and never lose it");
static_assert(
    std::ranges::random_access_range<ps::basic_padded_arrays_view<int>> &&
        std::ranges::sized_range<ps::basic_padded_arrays_view<int>> &&
        std::ranges::borrowed_range<ps::basic_padded_arrays_view<int>> &&
        std::is_same_v<std::ranges::range_value_t<ps::basic_padded_arrays_view<const int>>,
                       ps::strided_view<const int>> &&
        !std::is_convertible_v<ps::basic_padded_arrays_view<const int>, ps::basic_padded_arrays_view<int>>,
    "padded arrays are a range of strided views");

TEST_CASE("core/uneven_views: a loop over samples of different lengths") {
  int values[] = {1, 2, 3, 4, 0, 0};
  const std::uint64_t offsets[] = {0, 1, 1, 4};
  const ps::extents shapes[] = {ps::extents(1), ps::extents(0), ps::extents(3)};
  const ps::basic_ragged_view<int> ragged(values, offsets, shapes, 3);
  std::vector<std::size_t> lengths;
  for (const std::span<const int> sample : ragged) lengths.push_back(sample.size());
  CHECK(lengths == std::vector<std::size_t>{1, 0, 3});
  CHECK(std::ranges::max_element(ragged, {}, &std::span<int>::size) - ragged.begin() == 2);
  for (const auto sample : ragged | std::views::reverse | std::views::take(1)) sample[0] = 9;
  CHECK(values[1] == 9);
  CHECK(std::ranges::empty(ps::basic_ragged_view<int>()));

  const std::uint64_t rows[] = {2, 1};
  const std::uint8_t mask[] = {1, 1, 1, 0};
  const ps::basic_padded_view<int> padded(ps::tensor_view<int>(values, ps::extents(2, 2)), rows, mask);
  std::vector<int> all;
  for (const std::span<const int> sample : padded) all.insert(all.end(), sample.begin(), sample.end());
  CHECK(all == std::vector<int>{1, 9, 3});
}

TEST_CASE("core/uneven_views: ragged values can be written, or only read") {
  int values[] = {1, 2, 3, 4};
  const std::uint64_t offsets[] = {0, 1, 1, 4};
  const ps::extents shapes[] = {ps::extents(1), ps::extents(0), ps::extents(3)};
  const ps::basic_ragged_view<int> view(values, offsets, shapes, 3);
  for (int& x : view[2]) x *= 10;
  CHECK(view.values()[3] == 40);
  CHECK(view.shape(2) == ps::extents(3));
  CHECK(view.offsets()[3] == 4);
  const ps::basic_ragged_view<const int> reads(values, offsets, shapes, 3);
  STATIC_REQUIRE(std::is_same_v<decltype(reads[0]), std::span<const int>>);
  CHECK(reads[2][0] == 20);
  CHECK(ps::basic_ragged_view<int>().values().empty());
}

TEST_CASE("core/uneven_views: padded values can be written, or only read") {
  int values[] = {1, 2, 0, 0, 3, 4, 5, 6};
  const std::uint64_t lengths[] = {1, 2};
  const std::uint8_t mask[] = {1, 0, 1, 1};
  const ps::basic_padded_view<int> view(ps::tensor_view<int>(values, ps::extents(2, 2, 2)), lengths, mask);
  for (int& x : view[0]) x = -x;
  CHECK(values[1] == -2);
  CHECK(values[2] == 0);
  CHECK(view[1].size() == 4);
  CHECK(view.lengths()[0] == 1);
  CHECK(view.mask().data()[1] == 0);
  CHECK(view.shape() == ps::extents(2, 2, 2));
}

TEST_CASE("core/uneven_views: arrays of unequal shapes in one block") {
  int values[] = {1, 2, 3, 4, 5, 6, 7, 0, 0, 8, 0, 0};
  const ps::extents sizes[] = {ps::extents(2, 3), ps::extents(2, 1)};
  const ps::basic_padded_arrays_view<int> view(ps::tensor_view<int>(values, ps::extents(2, 2, 3)), sizes);
  const ps::basic_padded_arrays_view<const int> reads = view;
  CHECK(reads.size() == 2);
  CHECK(reads.shape() == ps::extents(2, 2, 3));
  CHECK(reads.sizes()[1] == ps::extents(2, 1));
  CHECK(reads[0].dense());
  CHECK(reads[1].shape() == ps::extents(2, 1));
  CHECK(reads[1](1, 0) == 8);
  for (const auto one : view) one(1, 0) = 9;
  CHECK((values[3] == 9 && values[9] == 9 && values[10] == 0));
  CHECK(reads.values()(1, 1, 0) == 9);
  CHECK(std::ranges::empty(ps::basic_padded_arrays_view<int>()));
}
