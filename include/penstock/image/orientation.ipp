// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/orientation.hpp>

namespace penstock::inline v0_1 {

namespace detail {

[[nodiscard]] constexpr orientation orientation_of_number(std::uint32_t value) noexcept {
  return value >= 1 && value <= 8 ? static_cast<orientation>(value) : orientation::upright;
}

/// The value of the tag in the first directory of a TIFF header; false if there is none.
[[nodiscard]] PENSTOCK_INLINE bool find_exif_orientation(bytes_view exif, orientation& found) noexcept {
  constexpr std::size_t header_bytes = 8, entry_bytes = 12;
  if (exif.size() < header_bytes) return false;
  const bool little = exif[0] == std::byte{'I'} && exif[1] == std::byte{'I'};
  if (!little && !(exif[0] == std::byte{'M'} && exif[1] == std::byte{'M'})) return false;
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value = value << 8 | std::to_integer<std::uint32_t>(exif[little ? at + bytes - 1 - i : at + i]);
    return value;
  };
  if (number(2, 2) != 42) return false;
  const std::size_t directory = number(4, 4);
  if (directory > exif.size() - 2) return false;
  const std::size_t entries = number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + i * entry_bytes;
    if (at > exif.size() || exif.size() - at < entry_bytes) break;
    if (number(at, 2) != 0x0112) continue;
    constexpr std::uint32_t short_type = 3, long_type = 4;
    const std::uint32_t type = number(at + 2, 2);
    const std::uint32_t value = type == short_type  ? number(at + 8, 2)
                                : type == long_type ? number(at + 8, 4)
                                                    : 0;
    found = orientation_of_number(value);
    return true;
  }
  return false;
}
/// The value behind the first `tiff:Orientation` that has one; false if there is none.
[[nodiscard]] PENSTOCK_INLINE bool find_xmp_orientation(std::string_view packet,
                                                        orientation& found) noexcept {
  constexpr std::string_view property = "tiff:Orientation";
  while (true) {
    const std::size_t at = packet.find(property);
    if (at == packet.npos) return false;
    packet.remove_prefix(at + property.size());
    std::string_view value = packet;
    if (value.starts_with("=\"") || value.starts_with("='"))
      value.remove_prefix(2);
    else if (value.starts_with(">"))
      value.remove_prefix(1);
    else
      continue;
    if (value.empty() || value.front() < '0' || value.front() > '9') continue;
    found = orientation_of_number(static_cast<std::uint32_t>(value.front() - '0'));
    return true;
  }
}

}  // namespace detail

PENSTOCK_INLINE orientation exif_orientation(bytes_view exif) noexcept {
  orientation found = orientation::upright;
  return detail::find_exif_orientation(exif, found) ? found : orientation::upright;
}

PENSTOCK_INLINE orientation xmp_orientation(std::string_view packet) noexcept {
  orientation found = orientation::upright;
  return detail::find_xmp_orientation(packet, found) ? found : orientation::upright;
}

PENSTOCK_INLINE void metadata_orientation::exif(bytes_view block) noexcept {
  constexpr std::string_view prefix("Exif\0\0", 6);
  if (tagged_ || block.empty()) return;
  if (text_of(block).starts_with(prefix)) block = block.subspan(prefix.size());
  tagged_ = detail::find_exif_orientation(block, exif_);
}

PENSTOCK_INLINE void metadata_orientation::xmp(std::string_view packet) noexcept {
  if (xmp_ == orientation::upright) xmp_ = xmp_orientation(packet);
}

}  // namespace penstock::inline v0_1
