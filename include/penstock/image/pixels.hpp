// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/name.hpp>

#include <concepts>
#include <string_view>

/// Pixels in memory: their formats, sizes, and views of them.
namespace penstock::inline v0_1 {

namespace detail {
template <class T, std::size_t Channels, fixed_string Name>
struct channels_of {
  using value_type = T;
  static constexpr std::size_t channels = Channels;
  static constexpr std::string_view format_name = name_of<Name>::value;
};
}  // namespace detail

/// One channel of 8 bits: luma.
struct gray8 : detail::channels_of<std::uint8_t, 1, "gray8"> {};
/// Red, green and blue, 8 bits each.
struct rgb8 : detail::channels_of<std::uint8_t, 3, "rgb8"> {};
/// Red, green, blue and alpha, 8 bits each; the colours are not multiplied by alpha.
struct rgba8 : detail::channels_of<std::uint8_t, 4, "rgba8"> {};
/// One channel of 16 bits, in the order of bytes of this machine.
struct gray16 : detail::channels_of<std::uint16_t, 1, "gray16"> {};
/// Red, green and blue, 16 bits each, in the order of bytes of this machine.
struct rgb16 : detail::channels_of<std::uint16_t, 3, "rgb16"> {};
/// Red, green, blue and alpha, 16 bits each, in the order of bytes of this machine.
struct rgba16 : detail::channels_of<std::uint16_t, 4, "rgba16"> {};

/// How the pixels of an image are stored: the type of a channel's value, and the number of channels.
template <class F>
concept pixel_format = requires {
  typename F::value_type;
  requires std::same_as<const std::size_t, decltype(F::channels)>;
  { F::format_name } -> std::convertible_to<std::string_view>;
};

/// In pixels.
struct image_size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  friend constexpr bool operator==(const image_size&, const image_size&) = default;
};

/// A rectangle of an image whose edges need not lie between pixels.
struct real_part {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  friend constexpr bool operator==(const real_part&, const real_part&) = default;
};

/// A rectangle of an image, in pixels: (x, y) is its upper left corner.
struct image_part {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  [[nodiscard]] constexpr image_size size() const noexcept { return {width, height}; }
  /// Whether it lies within an image of this size.
  [[nodiscard]] constexpr bool within(const image_size& image) const noexcept {
    return std::uint64_t{x} + width <= image.width && std::uint64_t{y} + height <= image.height;
  }
  friend constexpr bool operator==(const image_part&, const image_part&) = default;
};

/// All of an image.
[[nodiscard]] constexpr image_part whole_of(const image_size& image) noexcept {
  return {0, 0, image.width, image.height};
}

/// Interleaved pixels in memory, not owned: `height` rows of `width` pixels of `Channels` values. From one
/// row to the next it is `pitch` values, at least `width * Channels`.
template <class T, std::size_t Channels>
class pixel_view {
 public:
  using value_type = T;
  using is_view = void;
  static constexpr std::size_t channels = Channels;

  constexpr pixel_view() = default;
  /// Rows without gaps.
  constexpr pixel_view(const T* data, const image_size& size) noexcept
      : pixel_view(data, size, std::size_t{size.width} * Channels) {}
  constexpr pixel_view(const T* data, const image_size& size, std::size_t pitch) noexcept
      : data_(data), size_(size), pitch_(pitch) {}

  [[nodiscard]] constexpr const T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr const image_size& size() const noexcept { return size_; }
  [[nodiscard]] constexpr std::size_t width() const noexcept { return size_.width; }
  [[nodiscard]] constexpr std::size_t height() const noexcept { return size_.height; }
  [[nodiscard]] constexpr std::size_t pitch() const noexcept { return pitch_; }
  /// The values of a row.
  [[nodiscard]] constexpr std::size_t row_values() const noexcept { return width() * Channels; }
  [[nodiscard]] constexpr const T* row(std::size_t y) const noexcept { return data_ + y * pitch_; }
  [[nodiscard]] constexpr const T* at(std::size_t x, std::size_t y) const noexcept {
    return row(y) + x * Channels;
  }
  /// Whether row follows row without a gap.
  [[nodiscard]] constexpr bool dense() const noexcept { return pitch_ == row_values() || height() <= 1; }
  /// A rectangle of these pixels, which must lie within them.
  [[nodiscard]] constexpr pixel_view part(const image_part& p) const noexcept {
    return {data_ + p.y * pitch_ + p.x * Channels, p.size(), pitch_};
  }

 private:
  const T* data_ = nullptr;
  image_size size_;
  std::size_t pitch_ = 0;
};

}  // namespace penstock::inline v0_1
