// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/image/pixels.hpp>

#include <optional>

namespace penstock::inline v0_1 {

/// How a stored image is turned to be shown, as EXIF numbers it.
/// Source: Exif 2.32, 4.6.4, tag 274 (CIPA DC-008-2019).
enum class orientation : std::uint8_t {
  upright = 1,
  mirrored = 2,     ///< left and right change places
  rotated_180 = 3,  ///< shown after half a turn
  flipped = 4,      ///< top and bottom change places
  transposed = 5,   ///< rows become columns
  rotated_90 = 6,   ///< shown after a quarter turn clockwise
  transversed = 7,  ///< transposed, and half a turn
  rotated_270 = 8,  ///< shown after a quarter turn counter-clockwise
};

/// Whether width and height change places.
[[nodiscard]] constexpr bool turns_sideways(orientation o) noexcept { return o >= orientation::transposed; }

/// The size of a shown image whose stored size this is; and the other way round.
[[nodiscard]] constexpr image_size oriented(const image_size& stored, orientation o) noexcept {
  return turns_sideways(o) ? image_size{stored.height, stored.width} : stored;
}

namespace detail {

/// What leads from a shown pixel to its stored one: first rows and columns change places, then the axes turn.
struct orientation_steps {
  bool flip_x, flip_y, transpose;
};
[[nodiscard]] constexpr orientation_steps steps_of(orientation o) noexcept {
  const auto is_one_of = [o](auto... these) { return ((o == these) || ...); };
  using enum orientation;
  return {is_one_of(mirrored, rotated_180, transversed, rotated_270),
          is_one_of(rotated_180, flipped, rotated_90, transversed), turns_sideways(o)};
}

}  // namespace detail

/// The rectangle of the stored image that holds a rectangle of the shown one. `stored`: the stored size.
[[nodiscard]] constexpr image_part stored_part(const image_part& shown, const image_size& stored,
                                               orientation o) noexcept {
  const detail::orientation_steps s = detail::steps_of(o);
  image_part part = s.transpose ? image_part{shown.y, shown.x, shown.height, shown.width} : shown;
  if (s.flip_x) part.x = stored.width - part.x - part.width;
  if (s.flip_y) part.y = stored.height - part.y - part.height;
  return part;
}

/// Writes stored pixels to a destination of the shown shape, (height, width, channels) with any strides.
template <class T, std::size_t Channels>
void orient_pixels(const pixel_view<T, Channels>& stored, orientation o, const destination<T>& into) {
  const detail::orientation_steps s = detail::steps_of(o);
  const element_strides strides = into.strides();
  // The distances in the destination from one stored pixel, and row, to the next.
  std::int64_t step_x = s.transpose ? strides[0] : strides[1];
  std::int64_t step_y = s.transpose ? strides[1] : strides[0];
  T* first = into.data();
  if (s.flip_x && stored.width() != 0) {
    first += static_cast<std::int64_t>(stored.width() - 1) * step_x;
    step_x = -step_x;
  }
  if (s.flip_y && stored.height() != 0) {
    first += static_cast<std::int64_t>(stored.height() - 1) * step_y;
    step_y = -step_y;
  }
  for (std::size_t y = 0; y < stored.height(); ++y) {
    const T* pixel = stored.row(y);
    T* to = first + static_cast<std::int64_t>(y) * step_y;
    for (std::size_t x = 0; x < stored.width(); ++x, pixel += Channels, to += step_x)
      for (std::size_t c = 0; c < Channels; ++c) to[static_cast<std::int64_t>(c) * strides[2]] = pixel[c];
  }
}

namespace detail {

[[nodiscard]] constexpr orientation orientation_of_number(std::uint32_t value) noexcept {
  return value >= 1 && value <= 8 ? static_cast<orientation>(value) : orientation::upright;
}

/// The value of the tag in the first directory of a TIFF header, if there is one.
[[nodiscard]] inline std::optional<orientation> find_exif_orientation(bytes_view exif) noexcept {
  constexpr std::size_t header_bytes = 8, entry_bytes = 12;
  if (exif.size() < header_bytes) return std::nullopt;
  const bool little = exif[0] == std::byte{'I'} && exif[1] == std::byte{'I'};
  if (!little && !(exif[0] == std::byte{'M'} && exif[1] == std::byte{'M'})) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value = value << 8 | std::to_integer<std::uint32_t>(exif[little ? at + bytes - 1 - i : at + i]);
    return value;
  };
  if (number(2, 2) != 42) return std::nullopt;
  const std::size_t directory = number(4, 4);
  if (directory > exif.size() - 2) return std::nullopt;
  const std::size_t entries = number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + i * entry_bytes;
    if (at > exif.size() || exif.size() - at < entry_bytes) break;
    if (number(at, 2) != 0x0112) continue;
    constexpr std::uint32_t short_type = 3, long_type = 4;
    const std::uint32_t type = number(at + 2, 2);
    return orientation_of_number(type == short_type  ? number(at + 8, 2)
                                 : type == long_type ? number(at + 8, 4)
                                                     : 0);
  }
  return std::nullopt;
}

}  // namespace detail

/// The orientation in a TIFF header: in JPEG the EXIF block after `Exif\0\0`, in PNG the eXIf chunk, in WebP
/// the EXIF chunk. `upright` if there is none, if it is no number from 1 to 8, or if the block is damaged: an
/// orientation that cannot be read is not worth an image. Reads the first directory only.
[[nodiscard]] inline orientation exif_orientation(bytes_view exif) noexcept {
  return detail::find_exif_orientation(exif).value_or(orientation::upright);
}

/// The orientation in a packet of XMP: the number behind the first `tiff:Orientation` that has one, as an
/// attribute or an element. `upright` without one.
[[nodiscard]] inline orientation xmp_orientation(std::string_view packet) noexcept {
  constexpr std::string_view property = "tiff:Orientation";
  for (std::size_t at = 0; (at = packet.find(property)) != packet.npos;) {
    packet.remove_prefix(at + property.size());
    std::string_view value = packet;
    if (value.starts_with("=\"") || value.starts_with("='"))
      value.remove_prefix(2);
    else if (value.starts_with(">"))
      value.remove_prefix(1);
    else
      continue;
    if (value.empty() || value.front() < '0' || value.front() > '9') continue;
    return detail::orientation_of_number(static_cast<std::uint32_t>(value.front() - '0'));
  }
  return orientation::upright;
}

/// What the metadata in a file say of its orientation: EXIF's tag, if EXIF has one, even if its value is none
/// of the eight; otherwise XMP's. Source: Pillow 13, `Image.getexif` and `ImageOps.exif_transpose`.
class metadata_orientation {
 public:
  /// A block of EXIF, with or without the `Exif\0\0` in front of the TIFF header. The first one that has the
  /// tag counts.
  void exif(bytes_view block) noexcept {
    constexpr std::string_view prefix("Exif\0\0", 6);
    if (tagged() || block.empty()) return;
    if (text_of(block).starts_with(prefix)) block = block.subspan(prefix.size());
    exif_ = detail::find_exif_orientation(block);
  }
  /// A packet of XMP. The first one that turns the image counts.
  void xmp(std::string_view packet) noexcept {
    if (xmp_ == orientation::upright) xmp_ = xmp_orientation(packet);
  }

  /// Whether EXIF has said it, so that XMP does not count.
  [[nodiscard]] bool tagged() const noexcept { return exif_.has_value(); }
  [[nodiscard]] orientation found() const noexcept { return exif_.value_or(xmp_); }

 private:
  std::optional<orientation> exif_;
  orientation xmp_ = orientation::upright;
};

}  // namespace penstock::inline v0_1
