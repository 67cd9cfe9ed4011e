// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/image_limits.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void check_image_size(const image_size& size, std::size_t pixel_bytes,
                                      const image_limits& limits, std::string_view codec) {
  if (size.width == 0 || size.height == 0)
    throw error(errc::format,
                {"the ", codec, " image has no pixels: it is ", size.width, " x ", size.height});
  if (size.width > limits.width || size.height > limits.height)
    throw error(errc::limit, {"the ", codec, " image is ", size.width, " x ", size.height,
                              " pixels, and the limit is ", limits.width, " x ", limits.height,
                              "; raise it with ", codec, "{.limits = {.width = ..., .height = ...}}"});
  const std::uint64_t bytes = std::uint64_t{size.width} * size.height * pixel_bytes;
  if (bytes > limits.bytes)
    throw error(errc::limit, {"the ", codec, " image of ", size.width, " x ", size.height, " pixels takes ",
                              bytes, " bytes, and the limit is ", limits.bytes, "; raise it with ", codec,
                              "{.limits = {.bytes = ...}}"});
}

}  // namespace penstock::inline v0_1::detail
