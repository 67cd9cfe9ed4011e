// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<jpeglib.h>)
#error "penstock/codec/jpeg.hpp needs libjpeg-turbo: link penstock::jpeg"
#endif

#include <penstock/codec/detail/jpeg_reader.hpp>
#include <penstock/codec/detail/stored_image.hpp>

namespace penstock::inline v0_1::detail {

/// Four channels as the file has them, which is inverted, to a pixel. Source: Pillow 9.4, JpegImagePlugin.py
/// ("assume adobe conventions"), Convert.c: cmyk2rgb and rgb2l.
template <std::size_t Channels>
void convert_cmyk(const std::uint8_t* from, std::size_t pixels, std::uint8_t* to) noexcept {
  for (std::size_t i = 0; i < pixels; ++i, from += 4, to += Channels) {
    std::array<std::uint8_t, 3> rgb{};
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint32_t product = (255u - from[c]) * from[3] + 128;
      rgb[c] = static_cast<std::uint8_t>(from[3] - (((product >> 8) + product) >> 8));
    }
    put_pixel<Channels>(rgb[0], rgb[1], rgb[2], std::uint8_t{255}, to);
  }
}

/// A lazy image of a file whose header was read. `Scratch` is the worker's: it has `reader()`, `image` and
/// `damage()`.
template <pixel_format Format, class Scratch>
class jpeg_pixels : public image_expression<jpeg_pixels<Format, Scratch>, std::uint8_t, Format::channels> {
  using base = image_expression<jpeg_pixels<Format, Scratch>, std::uint8_t, Format::channels>;

 public:
  using base::channels;
  using typename base::view_type;

  jpeg_pixels(Scratch& scratch, bytes_view file, const image_size& stored, orientation o, bool four,
              bool scales) noexcept
      : scratch_(&scratch), file_(file), stored_(stored), orientation_(o), four_(four), scales_(scales) {}

  /// As it is shown.
  [[nodiscard]] image_size size() const noexcept { return oriented(stored_, orientation_); }
  [[nodiscard]] image_scratch& memory() const noexcept { return scratch_->image; }

  /// By the DCT: 8 x 8 coefficients are decoded as 4 x 4, 2 x 2 or 1 pixel.
  [[nodiscard]] unsigned max_halvings() const noexcept { return scales_ ? 3 - halvings_ : 0; }
  [[nodiscard]] jpeg_pixels halved(unsigned times, real_part& where) const noexcept {
    jpeg_pixels smaller = *this;
    const std::uint32_t side = 1u << times;
    const auto up = [&](std::uint32_t n) { return n / side + (n % side != 0 ? 1 : 0); };
    smaller.halvings_ += times;
    smaller.stored_ = {up(stored_.width), up(stored_.height)};
    // The blocks begin at the upper left corner of the stored image, wherever that is shown.
    const orientation_steps o = steps_of(orientation_);
    const bool from_right = o.transpose ? o.flip_y : o.flip_x;
    const bool from_bottom = o.transpose ? o.flip_x : o.flip_y;
    const image_size shown = size(), now = smaller.size();
    const double scale = 1.0 / side;
    if (from_right) where.x += static_cast<double>(std::uint64_t{now.width} * side - shown.width);
    if (from_bottom) where.y += static_cast<double>(std::uint64_t{now.height} * side - shown.height);
    where = {where.x * scale, where.y * scale, where.width * scale, where.height * scale};
    return smaller;
  }

  [[nodiscard]] view_type read(const image_part& part) const {
    check(part);
    if (part.width == 0 || part.height == 0) return {};
    image_scratch& memory = scratch_->image;
    const view_type pixels = naming_codec("jpeg", [&] {
      return read_stored(stored_part(part, stored_, orientation_),
                         orientation_ == orientation::upright ? memory.pixels : memory.work);
    });
    if (orientation_ == orientation::upright) return pixels;
    auto* const turned =
        room_for<std::uint8_t>(memory.pixels, std::size_t{part.width} * part.height * channels);
    orient_pixels(pixels, orientation_,
                  destination<std::uint8_t>(
                      turned, extents(std::size_t{part.height}, std::size_t{part.width}, channels)));
    return {turned, part.size()};
  }

  void draw(const image_part& part, const destination<std::uint8_t>& into) const {
    check(part);
    if (part.width == 0 || part.height == 0) return;
    naming_codec("jpeg", [&] {
      if (orientation_ == orientation::upright)
        draw_upright(part, into);
      else
        orient_pixels(read_stored(stored_part(part, stored_, orientation_), scratch_->image.work),
                      orientation_, into);
    });
  }

 private:
  static constexpr unsigned rows_per_read = jpeg_reader::rows_per_read;
  using row_list = std::array<std::uint8_t*, rows_per_read>;

  void check(const image_part& part) const {
    if (!part.within(size()))
      throw error(errc::argument,
                  {"the part ", part.width, " x ", part.height, " at (", part.x, ", ", part.y,
                   ") does not lie within the image of ", size().width, " x ", size().height});
  }

  /// Decodes the stored part: `place(y, n, list)` says where n rows from row y of the part go, and
  /// `done(y, n, list)` follows. The lists' rows have `reader.width()` pixels.
  template <class Start, class Place, class Done>
  void rows(const image_part& part, Start&& start, Place&& place, Done&& done) const {
    jpeg_reader& reader = scratch_->reader();
    if (!reader.at_header_of(file_)) reader.open(file_);
    reader.start(part, colours(), halvings_);
    start(reader);
    const std::size_t row_bytes = std::size_t{reader.width()} * (four_ ? 4 : channels);
    row_list list{};
    if (const std::uint32_t before = reader.before(); before != 0) {
      std::uint8_t* const spare = room_for<std::uint8_t>(scratch_->image.tables, row_bytes);
      list.fill(spare);
      for (std::uint32_t left = before; left != 0;)
        left -= reader.read(std::span<std::uint8_t* const>(list).first(std::min(left, rows_per_read)));
    }
    for (std::uint32_t y = 0; y < part.height;) {
      const unsigned n = std::min(part.height - y, rows_per_read);
      place(y, n, list);
      const unsigned got = reader.read(std::span<std::uint8_t* const>(list).first(n));
      done(y, got, list);
      y += got;
    }
    if (reader.damages != 0) scratch_->damage();
    reader.close();
  }

  [[nodiscard]] view_type read_stored(const image_part& part, buffer& room) const {
    std::uint8_t* pixels = nullptr;
    std::uint8_t* four = nullptr;
    std::size_t width = 0, first = 0;
    rows(
        part,
        [&](const jpeg_reader& reader) {
          width = reader.width();
          first = part.x - reader.first();
          pixels = room_for<std::uint8_t>(room, width * part.height * channels);
          if (four_) four = room_for<std::uint8_t>(scratch_->image.dense, width * 4 * rows_per_read);
        },
        [&](std::uint32_t y, unsigned n, row_list& list) {
          for (unsigned i = 0; i < n; ++i)
            list[i] = four_ ? four + i * width * 4 : pixels + (y + i) * width * channels;
        },
        [&](std::uint32_t y, unsigned n, row_list& list) {
          if (!four_) return;
          for (unsigned i = 0; i < n; ++i)
            convert_cmyk<channels>(list[i], width, pixels + (y + i) * width * channels);
        });
    return {pixels + first * channels, part.size(), width * channels};
  }

  /// Straight into the destination if its pixels lie side by side and no margin is decoded; otherwise a few
  /// rows at a time.
  void draw_upright(const image_part& part, const destination<std::uint8_t>& into) const {
    const element_strides strides = into.strides();
    const bool beside = strides[2] == 1 && strides[1] == std::int64_t{channels};
    bool straight = false;
    std::uint8_t* some = nullptr;
    std::uint8_t* four = nullptr;
    std::size_t width = 0, first = 0;
    const auto destination_row = [&](std::uint32_t y) {
      return into.data() + static_cast<std::int64_t>(y) * strides[0];
    };
    rows(
        part,
        [&](const jpeg_reader& reader) {
          width = reader.width();
          first = part.x - reader.first();
          straight = beside && width == part.width && !four_;
          if (!straight)
            some = room_for<std::uint8_t>(scratch_->image.work, width * channels * rows_per_read);
          if (four_) four = room_for<std::uint8_t>(scratch_->image.dense, width * 4 * rows_per_read);
        },
        [&](std::uint32_t y, unsigned n, row_list& list) {
          for (unsigned i = 0; i < n; ++i)
            list[i] = four_      ? four + i * width * 4
                      : straight ? destination_row(y + i)
                                 : some + i * width * channels;
        },
        [&](std::uint32_t y, unsigned n, row_list& list) {
          if (straight) return;
          if (four_)
            for (unsigned i = 0; i < n; ++i)
              convert_cmyk<channels>(list[i], width, some + i * width * channels);
          copy_pixels(
              view_type(some + first * channels, {part.width, n}, width * channels),
              destination<std::uint8_t>(destination_row(y),
                                        extents(std::size_t{n}, std::size_t{part.width}, channels), strides));
        });
  }

  [[nodiscard]] J_COLOR_SPACE colours() const noexcept {
    if (four_) return JCS_CMYK;
    return channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_EXT_RGBA;
  }

  Scratch* scratch_;
  bytes_view file_;
  image_size stored_;
  orientation orientation_;
  bool four_;    // the file has four channels
  bool scales_;  // it may be decoded smaller
  unsigned halvings_ = 0;
};

}  // namespace penstock::inline v0_1::detail
