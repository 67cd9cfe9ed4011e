// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/mapping/device_work.hpp>

#include "support/catch.hpp"

#include <penstock/core/half.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace run_block_device_work_test {

namespace ps = penstock;

namespace {

template <class T>
struct makes {
  template <class View>
  using output = T;
  template <class View>
  ps::extents shape(const View&, const ps::device_batch& batch) const {
    return ps::extents(batch.slots(), 2);
  }
  template <class Stream, class View>
  void launch(Stream, const View&, const ps::device_batch&, const ps::device_places&) const {}
};

using sample = ps::record<ps::field<"a", int>, ps::field<"b", std::array<float, 3>>, ps::field<"c", char>>;

auto batches() { return ps::from(std::vector<sample>(4)) | ps::batch(2) | ps::pin_and_copy(ps::simulated()); }

}  // namespace

TEST_CASE("run/block/device_work: what the operations make lies behind the columns and the table") {
  const auto plan = batches() | ps::on_device<"c">(makes<short>{}) |
                    ps::on_device<"a">(makes<float>{}, makes<double>{}, makes<ps::half>{});
  using layout = ps::device_layout_of<std::remove_cv_t<decltype(plan)>>;
  static_assert(layout::operations == 4 && layout::column_count == 3);
  static_assert(layout::changes<0> && !layout::changes<1> && layout::changes<2>);
  static_assert(layout::last<2> == 0 && layout::last<0> == 3);
  static_assert(layout::place<0> == 3 + 1 + 3 && layout::place<1> == 1 && layout::place<2> == 3 + 1 + 0);
  static_assert(std::is_same_v<layout::made<0>, ps::half> && std::is_same_v<layout::made<2>, short>);
  CHECK(sizeof(layout::work::rooms) == 8 * sizeof(std::size_t));
}

TEST_CASE("run/block/device_work: a plan without operations keeps nothing") {
  using layout = ps::device_layout_of<decltype(batches())>;
  static_assert(layout::operations == 0 && !layout::changes<0> && layout::place<2> == 2);
  CHECK(std::is_empty_v<layout::work>);
}

TEST_CASE("run/block/device_work: every column has a view on the device") {
  auto run = batches().open();
  auto b = run.next();
  CHECK(b->device_view<1>().shape() == ps::extents(2, 3));
  CHECK(b->device_view<1>().dense());
  CHECK(b->device_view<1>().data() == b->device_data<1>());
  const auto copies = [](auto policy, auto shape, auto strides) {
    const std::vector<std::vector<int>> rows{{1, 2, 3}, {4, 5, 6}};
    auto one = (ps::from(rows) | ps::batch(2, policy) | ps::pin_and_copy(ps::simulated())).open();
    auto batch = one.next();
    const auto view = batch->device_view();
    CHECK(view.shape() == shape);
    CHECK(view.strides()[0] == strides);
    CHECK(view.data()[1] == 2);
  };
  copies(ps::ragged, ps::extents(6), 1);
  copies(ps::pad_to_longest, ps::extents(2, 3), 3);
  copies(ps::pad_to_largest, ps::extents(2, 3), 3);
  copies(ps::pitched<64>, ps::extents(2, 3), 16);
  copies(ps::stack, ps::extents(2, 3), 3);
}

}  // namespace run_block_device_work_test
