// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/image/image_work.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void run_image_work(const image_work& work) noexcept {
  const std::uint64_t groups = groups_of(work);
  with_types_of(work, [&]<image_number Number, std::uint32_t Channels, bool Planes>() {
    for (std::uint64_t slot = 0; slot < work.slots; ++slot)
      for (std::uint64_t group = 0; group < groups; ++group)
        make_pixels<Number, Channels, Planes, host_access>(work, slot, static_cast<std::uint32_t>(group));
  });
}

}  // namespace penstock::inline v0_1
