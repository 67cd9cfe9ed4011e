// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/image/to_chw.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/test_image.hpp"

#include <penstock/stage/functions.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace to_chw_test {

namespace ps = penstock;

namespace {

template <class T, std::size_t Channels>
std::vector<T> planes_of(const penstock_test::test_image<T, Channels>& image) {
  std::vector<T> all;
  for (std::size_t c = 0; c < Channels; ++c)
    for (std::size_t y = 0; y < image.size().height; ++y)
      for (std::size_t x = 0; x < image.size().width; ++x) all.push_back(image.at(x, y, c));
  return all;
}

template <class T, std::size_t Channels>
void check(ps::image_size size) {
  const penstock_test::test_image<T, Channels> image(size, 5, 3);
  ps::image_scratch scratch;
  const auto array = ps::to_chw()(image, ps::call<ps::image_scratch>{{}, 0, 0, 0, scratch});
  static_assert(ps::placed_expression<decltype(array)> && !ps::lazy_image<decltype(array)>);
  const ps::extents shape(Channels, size.height, size.width);
  CHECK(array.shape() == shape);
  const std::vector<T> expected = planes_of(image);
  const auto finished = array.finish();
  CHECK(finished.shape() == shape);
  CHECK(std::vector<T>(finished.flat().begin(), finished.flat().end()) == expected);
  std::vector<T> dense(expected.size());
  array.write_to(ps::destination<T>(dense.data(), shape));
  CHECK(dense == expected);
  // a slot whose elements lie as (height, width, channels)
  std::vector<T> last(expected.size());
  const std::int64_t row = static_cast<std::int64_t>(size.width * Channels);
  array.write_to(ps::destination<T>(last.data(), shape,
                                    ps::element_strides{1, row, static_cast<std::int64_t>(Channels)}));
  CHECK(last == image.values());
}

}  // namespace

TEST_CASE("image/to_chw: planes of all types and sizes") {
  check<std::uint8_t, 1>({7, 5});
  check<std::uint8_t, 3>({33, 9});
  check<std::uint8_t, 4>({1, 9});
  check<std::uint16_t, 3>({9, 1});
  check<float, 3>({1, 1});
  check<float, 3>({0, 0});
}

TEST_CASE("image/to_chw: an operation after it has a sentence of its own") {
  using image = penstock_test::test_image<std::uint8_t, 3>;
  using array = ps::chw_array<image>;
  using check = ps::detail::function_check<ps::to_chw_operation, array>;
  CHECK(std::is_same_v<check::wrong, ps::mistakes::operation_after_to_chw>);
  CHECK(std::is_same_v<ps::detail::function_check<ps::to_chw_operation, int>::wrong,
                       ps::mistakes::operation_wants_image>);
  CHECK(std::is_same_v<ps::detail::function_check<ps::to_chw_operation, const image&>::wrong,
                       ps::mistakes::none>);
}

TEST_CASE("image/to_chw: no allocation once the scratch has grown") {
  const penstock_test::test_image<std::uint8_t, 3> image({40, 30}, 1);
  ps::image_scratch scratch;
  const auto once = [&] {
    (void)ps::to_chw()(image, ps::call<ps::image_scratch>{{}, 0, 0, 0, scratch}).finish();
  };
  once();
  CHECK(penstock_test::allocations_of(once) == 0);
}

}  // namespace to_chw_test
