// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/npy_image.hpp>

#include <penstock/codec/layouts/npy_header.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>

#include <algorithm>
#include <bit>
#include <limits>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE bool begins_as_npy(bytes_view bytes) noexcept {
  return text_of(bytes).starts_with("\x93NUMPY");
}

PENSTOCK_INLINE npy_pixels read_npy_pixels(bytes_view file, std::size_t item_size, std::size_t channels,
                                           const image_limits& limits) {
  const npy_header header = whole_npy(file, 'u', item_size);
  constexpr char foreign = std::endian::native == std::endian::little ? '>' : '<';
  if (item_size > 1 && header.order == foreign)
    throw error(errc::format, {"the npy image has dtype '", header.descr,
                               "', which is not the order of bytes of this machine: save it with "
                               "array.astype('u",
                               item_size, "')"})
        .at_offset(8);
  const extents& shape = header.shape;
  const bool flat = channels == 1 && shape.rank() == 2;
  if (!flat && (shape.rank() != 3 || shape[2] != channels))
    throw error(errc::shape,
                {"the npy file has shape ", to_string(shape), ", and an image has (height, width, ", channels,
                 channels == 1 ? ") or (height, width)" : ")"});
  constexpr std::uint64_t maximum = std::numeric_limits<std::uint32_t>::max();
  if (std::max(shape[0], shape[1]) > maximum)
    throw error(errc::limit,
                {"the npy image has shape ", to_string(shape), ", and no side may exceed ", maximum});
  const image_size size{static_cast<std::uint32_t>(shape[1]), static_cast<std::uint32_t>(shape[0])};
  check_image_size(size, item_size * channels, limits, "npy");
  return {size, header.data_offset};
}

}  // namespace penstock::inline v0_1::detail
