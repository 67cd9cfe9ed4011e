// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/image/pixels.hpp>

namespace penstock::inline v0_1 {

/// What a codec accepts of an image's header, before it allocates anything: a header of 20 bytes can claim
/// gigabytes. The defaults admit what cameras make.
struct image_limits {
  std::uint32_t width = 32'768;                  ///< in pixels
  std::uint32_t height = 32'768;                 ///< in pixels
  std::uint64_t bytes = std::uint64_t{1} << 30;  ///< of all decoded pixels, in the format asked for
};

namespace detail {

/// Throws `errc::limit` for an image beyond the limits, and `errc::format` for one without pixels; `codec` is
/// the codec's name.
inline void check_image_size(const image_size& size, std::size_t pixel_bytes, const image_limits& limits,
                             std::string_view codec) {
  if (size.width == 0 || size.height == 0)
    throw error(errc::format,
                {"the ", codec, " image has no pixels: it is ", size.width, " x ", size.height});
  if (size.width > limits.width || size.height > limits.height)
    throw error(errc::limit, {"the ", codec, " image is ", size.width, " x ", size.height,
                              " pixels, and the limit is ", limits.width, " x ", limits.height,
                              "; to allow it, set .limits = {.width = ..., .height = ...} of the codec"});
  const std::uint64_t pixels = std::uint64_t{size.width} * size.height;  // their bytes may need more bits
  if (pixels > limits.bytes / pixel_bytes)
    throw error(errc::limit, {"the ", codec, " image consists of ", size.width, " x ", size.height,
                              " pixels of ", pixel_bytes, " bytes, and the limit is ", limits.bytes,
                              " bytes; to allow it, set .limits = {.bytes = ...} of the codec"});
}

}  // namespace detail

}  // namespace penstock::inline v0_1
