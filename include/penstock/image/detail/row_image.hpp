// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/image/interpolation.hpp>
#include <penstock/image/operation.hpp>

#include <array>
#include <cstdio>

namespace penstock::inline v0_1::detail {

/// The base of images whose every pixel is computed from that pixel of another image. `Self` has
///   write_row(from, to, width)   computes a row
///   needs_all()                  whether it must see all pixels first, which then are read even for a part
///   look_at(pixels)              sees them
/// With `changes` false it is the other image.
template <class Self, byte_image I, std::size_t Out = I::channels>
class row_image : public image_over<Self, I, std::uint8_t, Out> {
 public:
  using typename row_image::image_expression::view_type;

  row_image(const I& image, image_scratch& scratch, bool changes)
      : row_image::image_over(image, scratch), changes_(changes) {}

  [[nodiscard]] view_type read(const image_part& part) const {
    if constexpr (Out == I::channels) {
      if (!changes_) return this->image_.read(part);
    }
    return this->drawn(part);
  }
  void draw(const image_part& part, const destination<std::uint8_t>& into) const {
    if constexpr (Out == I::channels) {
      if (!changes_) return this->image_.draw(part, into);
    }
    const auto pixels = seen(part);
    write_rows<Out>(
        into, part, [&] { return room_for<std::uint8_t>(this->scratch_->pixels, part.width * Out); },
        [&](std::uint32_t y, std::uint8_t* row) { self().write_row(pixels.row(y), row, part.width); });
  }
  [[nodiscard]] bool needs_all() const { return false; }
  template <class Pixels>
  void look_at(const Pixels&) const {}

 private:
  [[nodiscard]] const Self& self() const { return static_cast<const Self&>(*this); }
  [[nodiscard]] auto seen(const image_part& part) const {
    if (!self().needs_all()) return this->image_.read(part);
    const auto all = this->image_.read(whole_of(this->image_.size()));
    self().look_at(all);
    return all.part(part);
  }

  bool changes_;
};

/// How many channels of so many have colours; the last of four is alpha.
template <std::size_t Channels>
inline constexpr std::size_t colours_of = Channels == 4 ? 3 : Channels;

/// Each byte times a factor, rounded to `float`.
constexpr void fill_products(float* table, float factor) noexcept {
  for (std::size_t v = 0; v < 256; ++v) table[v] = factor * static_cast<float>(v);
}
constexpr std::array<std::array<float, 256>, 3> luma_products() noexcept {
  std::array<std::array<float, 256>, 3> all{};
  fill_products(all[0].data(), 0.2989f);
  fill_products(all[1].data(), 0.587f);
  fill_products(all[2].data(), 0.114f);
  return all;
}
/// Products from a table are never contracted with a sum: the same bytes on every processor.
inline constexpr std::array<std::array<float, 256>, 3> luma_table = luma_products();

/// The gray value of a pixel. Source: torchvision 0.14, functional_tensor.py, `rgb_to_grayscale`.
inline std::uint8_t luma(const std::uint8_t* rgb) noexcept {
  return static_cast<std::uint8_t>(luma_table[0][rgb[0]] + luma_table[1][rgb[1]] + luma_table[2][rgb[2]]);
}

/// A number of less than 2^31 as a byte: without its fraction, within 0 and 255. Without a branch.
inline std::uint8_t to_byte(float value) noexcept {
  const int whole = static_cast<int>(value);
  const int low = whole & ~(whole >> 31);
  return static_cast<std::uint8_t>(low | ((255 - low) >> 31));
}

/// Two tables of products: of the image's values, and of those it is blended with.
struct blend_tables {
  const float *own, *other;
  [[nodiscard]] std::uint8_t operator()(std::uint8_t value, std::uint8_t with) const noexcept {
    return to_byte(own[value] + other[with]);
  }
};
/// Source: torchvision 0.14, functional_tensor.py, `_blend`.
[[nodiscard]] inline blend_tables make_blend(image_scratch& scratch, double factor) {
  float* const products = room_for<float>(scratch.tables, 512);
  fill_products(products, static_cast<float>(factor));
  fill_products(products + 256, static_cast<float>(1.0 - factor));
  return {products, products + 256};
}

/// Throws `errc::argument` unless `value` is a number from `low` to `high`.
inline void check_range(std::string_view operation, std::string_view what, double value, double low,
                        double high) {
  if (value >= low && value <= high) return;
  char given[40], from[40], to[40];
  std::snprintf(given, sizeof given, "%g", value);
  std::snprintf(from, sizeof from, "%g", low);
  std::snprintf(to, sizeof to, "%g", high);
  throw error(errc::argument,
              {operation, ": ", what, " is ", given, "; pass a number from ", from, " to ", to});
}

}  // namespace penstock::inline v0_1::detail
