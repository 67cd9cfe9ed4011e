// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/slot_layout.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slot_layout_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

using stacked = ps::detail::slot_layout<ps::stack_policy>;
using channels = ps::detail::slot_layout<ps::channels_first_policy>;
template <std::size_t Alignment>
using pitched = ps::detail::slot_layout<ps::pitched_policy<Alignment>>;

static_assert(stacked::elements(ps::extents(2, 3), 4) == 6);
static_assert(stacked::strides(ps::extents(2, 3), 4) == ps::element_strides{3, 1});

static_assert(channels::shown(ps::extents(5, 7, 3)) == ps::extents(3, 5, 7));
static_assert(channels::elements(ps::extents(5, 7, 3), 1) == 105);
static_assert(channels::strides(ps::extents(5, 7, 3), 1) == ps::element_strides{7, 1, 35});
static_assert(channels::shown(ps::extents(0)) == ps::extents(0), "the shape of a batch without samples");

static_assert(pitched<64>::strides(ps::extents(5, 7), 4) == ps::element_strides{16, 1});
static_assert(pitched<64>::strides(ps::extents(5, 16), 4) == ps::element_strides{16, 1});
static_assert(pitched<64>::strides(ps::extents(2, 5, 17), 4) == ps::element_strides{160, 32, 1});
static_assert(pitched<64>::elements(ps::extents(2, 5, 17), 4) == 320);
static_assert(pitched<64>::elements(ps::extents(3), 4) == 16, "the values of a list are one row");
static_assert(pitched<64>::elements(ps::extents(1), 12) == 16, "192 bytes: rows begin at whole elements");
static_assert(pitched<1>::elements(ps::extents(2, 3), 4) == 6 &&
              pitched<4>::elements(ps::extents(2, 3), 8) == 6);
static_assert(pitched<64>::elements(ps::extents(3, 0), 4) == 0 &&
              pitched<64>::elements(ps::extents(0, 3), 4) == 0);
static_assert(ps::detail::column_strides<ps::pitched_policy<64>>(ps::extents(2, 5, 17), 4) ==
              ps::element_strides{320, 160, 32, 1});

}  // namespace

TEST_CASE("run/slot_layout: zeros are written after rows, and nowhere else") {
  std::vector<std::byte> slot(2 * 3 * 8, std::byte{7});
  const ps::extents shape(2, 3, 5);
  pitched<8>::clear_gaps(slot.data(), shape, 1);
  for (std::size_t i = 0; i < slot.size(); ++i) CHECK(slot[i] == std::byte(i % 8 < 5 ? 7 : 0));
  pitched<8>::clear_gaps(slot.data(), ps::extents(6, 8), 1);
  pitched<8>::clear_gaps(slot.data(), ps::extents(0, 3), 1);
  pitched<8>::clear_gaps(slot.data(), ps::extents(), 1);
  CHECK(slot[0] == std::byte{7});
}

TEST_CASE("run/slot_layout: shapes that a policy cannot place are refused with an explanation") {
  CHECK_NOTHROW(stacked::check(ps::extents(), 4));
  CHECK_NOTHROW(channels::check(ps::extents(2, 3, 1), 4));
  CHECK_THAT(error_of([] { channels::check(ps::extents(28, 28), 1); }),
             contains("channels_first takes (height, width, channels)") && contains("(28, 28)"));
  CHECK_NOTHROW(pitched<64>::check(ps::extents(0), 4));
  CHECK_THAT(error_of([] { pitched<64>::check(ps::extents(), 4); }), contains("at least one dimension"));
  CHECK_THAT(error_of([] { pitched<4096>::check(ps::extents(std::uint64_t{1} << 52, 1), 1); }),
             contains("rows of 4096 bytes"));
  CHECK_THAT(error_of([] { pitched<64>::check(ps::extents(~std::uint64_t{0} / 8), 8); }), contains("memory"));
  const std::uint64_t half = std::uint64_t{1} << 32, maximum = ~std::uint64_t{0};
  for (const ps::extents& shape :
       {ps::extents(half, half, 1), ps::extents(maximum), ps::extents(2, maximum - 3),
        ps::extents(half, half, 0), ps::extents(0, half, half, 1), ps::extents(half, half, half, half, 1),
        ps::extents(maximum / 2, 3)})
    CHECK_THAT(error_of([&] { pitched<64>::check(shape, 4); }), contains("rows of 64 bytes"));
  CHECK_NOTHROW(pitched<64>::check(ps::extents(half, half / 512, 1), 4));
  CHECK_NOTHROW(pitched<64>::check(ps::extents(1, 0, 3), 4));
  CHECK_NOTHROW(ps::detail::check_rank(ps::extents(1, 1, 1, 1, 1, 2, 3)));
  CHECK_THAT(error_of([] { ps::detail::check_rank(ps::extents(1, 1, 1, 1, 1, 1, 2, 3)); }),
             contains("batch cannot add a dimension in front") && contains("(1, 1, 1, 1, 1, 1, 2, 3)"));
}

}  // namespace slot_layout_test
