// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/block/plan_blocks.hpp>

#include "support/catch.hpp"

#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map_batch.hpp>

#include <type_traits>
#include <vector>

namespace plan_blocks_test {

namespace ps = penstock;

TEST_CASE("run/plan_blocks: a plan whose stages leave batches alone keeps nothing for them") {
  const auto plan = ps::from(std::vector<int>(4)) | ps::batch(2);
  using type = std::remove_cv_t<decltype(plan)>;
  using layout = ps::device_layout_of<type>;
  static_assert(layout::operations == 0 && !layout::changes<0> && layout::place<2> == 2);
  static_assert(std::is_empty_v<layout::work> && std::is_empty_v<ps::batch_maps<type>>);
  static_assert(std::is_same_v<ps::block_columns_of<type>, ps::columns_of<type>>);
  static_assert(std::is_same_v<ps::batch_element_of<type>, int>);
  CHECK(ps::batch_maps<type>::count == 0);
  CHECK_FALSE(ps::device_works<type>::any);
}

TEST_CASE("run/plan_blocks: map_batch brings its own") {
  const auto plan = ps::from(std::vector<int>(4)) | ps::batch(2) | ps::map_batch([](auto&) {});
  CHECK(ps::batch_maps<std::remove_cv_t<decltype(plan)>>::count == 1);
}

}  // namespace plan_blocks_test
