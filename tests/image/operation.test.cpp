// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/operation.hpp>

#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/test_image.hpp"

#include <cstdint>
#include <type_traits>
#include <vector>

namespace operation_test {

namespace ps = penstock;
using penstock_test::test_image;

namespace {

/// A row of the image, drawn at random.
template <ps::byte_image I>
class one_row : public ps::image_expression<one_row<I>, std::uint8_t, I::channels> {
 public:
  one_row(const I& image, std::uint32_t y) : image_(image), y_(y) {}
  [[nodiscard]] ps::image_size size() const { return {image_.size().width, 1}; }
  [[nodiscard]] ps::pixel_view<std::uint8_t, I::channels> read(const ps::image_part& part) const {
    return image_.read({part.x, y_, part.width, part.height});
  }
  [[nodiscard]] ps::image_scratch& memory() const { return image_.memory(); }

 private:
  I image_;
  std::uint32_t y_;
};
struct random_row : ps::image_operation {
  template <class>
  static constexpr bool uses_random = true;
  template <ps::byte_image I>
  [[nodiscard]] auto operator()(const I& image, const ps::call<ps::image_scratch>& c) const {
    return one_row<I>(image, static_cast<std::uint32_t>(c.random().below(image.size().height)));
  }
};

using rgb = test_image<std::uint8_t, 3>;

}  // namespace

TEST_CASE("image/operation: an operation in a pipeline, alone and after another one") {
  const auto images = ps::generated(24, [](std::uint64_t i) {
    return rgb({3, 16}, [&](std::size_t, std::size_t y, std::size_t) { return i * 10 + y; });
  });
  const auto rows_of = [&](unsigned workers) {
    std::vector<int> rows;
    for (auto&& b :
         (images | ps::seed(4) | ps::map(random_row{}, random_row{}) | ps::batch(6) | ps::workers(workers))
             .epoch(0)) {
      CHECK(b.values().shape() == ps::extents(6, 1, 3, 3));
      for (std::size_t i = 0; i < b.size(); ++i) rows.push_back(b.values()(i, 0u, 2u, 1u));
    }
    return rows;
  };
  const auto alone = rows_of(0);
  REQUIRE(alone.size() == 24);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const int row = alone[i] - static_cast<int>(i) * 10;
    CHECK((row >= 0 && row < 16));
  }
  CHECK(rows_of(1) == alone);
  CHECK(rows_of(3) == alone);
}

TEST_CASE("image/operation: what is no image, or not of bytes, has a mistake of its own") {
  using of_a_number = ps::detail::function_check<random_row, int>::wrong;
  STATIC_REQUIRE_FALSE(ps::detail::is_right<of_a_number>);
  STATIC_REQUIRE(ps::mistake<of_a_number>);
  STATIC_REQUIRE(ps::detail::is_right<ps::detail::function_check<random_row, rgb>::wrong>);
  STATIC_REQUIRE(ps::byte_image<rgb>);
  STATIC_REQUIRE_FALSE(ps::byte_image<test_image<float, 3>>);
}

}  // namespace operation_test
