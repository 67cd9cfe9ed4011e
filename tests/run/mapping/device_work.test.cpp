// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/mapping/device_works.hpp>

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

namespace device_work_test {

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

TEST_CASE("run/device_work: what the operations make lies behind the columns and the table") {
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

}  // namespace device_work_test
