// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/orientation.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE orientation exif_orientation(bytes_view tiff) noexcept {
  constexpr std::size_t header_bytes = 8, entry_bytes = 12;
  if (tiff.size() < header_bytes) return orientation::upright;
  const bool little = tiff[0] == std::byte{'I'} && tiff[1] == std::byte{'I'};
  if (!little && !(tiff[0] == std::byte{'M'} && tiff[1] == std::byte{'M'})) return orientation::upright;
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value = value << 8 | std::to_integer<std::uint32_t>(tiff[little ? at + bytes - 1 - i : at + i]);
    return value;
  };
  if (number(2, 2) != 42) return orientation::upright;
  const std::size_t directory = number(4, 4);
  if (directory > tiff.size() - 2) return orientation::upright;
  const std::size_t entries = number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + i * entry_bytes;
    if (at > tiff.size() || tiff.size() - at < entry_bytes) break;
    if (number(at, 2) != 0x0112) continue;
    constexpr std::uint32_t short_type = 3, long_type = 4;
    const std::uint32_t type = number(at + 2, 2);
    const std::uint32_t value = type == short_type  ? number(at + 8, 2)
                                : type == long_type ? number(at + 8, 4)
                                                    : 0;
    if (value >= 1 && value <= 8) return static_cast<orientation>(value);
    break;
  }
  return orientation::upright;
}

}  // namespace penstock::inline v0_1
