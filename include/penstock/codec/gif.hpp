// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<gif_lib.h>)
#error "penstock/codec/gif.hpp needs giflib: link penstock::gif"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/detail/stored_image.hpp>

#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>

namespace penstock::inline v0_1 {

namespace detail {

/// Reads the first image of a GIF. Source: GIF89a (CompuServe, 1990).
class gif_reader : unmovable {  // giflib has a pointer into it
 public:
  /// Reads up to the first image. Throws `errc::format` if there is none.
  explicit gif_reader(bytes_view file) : rest_(file) {
    int fault = 0;
    gif_.reset(DGifOpen(&rest_, next_bytes, &fault));
    if (!gif_) refuse(fault);
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    while (type != IMAGE_DESC_RECORD_TYPE) {
      check(DGifGetRecordType(gif_.get(), &type));
      if (type == TERMINATE_RECORD_TYPE) throw error(errc::format, "the gif image has no pixels");
      if (type == EXTENSION_RECORD_TYPE) extension();
    }
    check(DGifGetImageDesc(gif_.get()));
    const GifImageDesc& image = gif_->Image;
    at_ = {static_cast<std::uint32_t>(image.Left), static_cast<std::uint32_t>(image.Top),
           static_cast<std::uint32_t>(image.Width), static_cast<std::uint32_t>(image.Height)};
    // A canvas that is too small for its first image grows, as in Pillow.
    canvas_ = {std::max(static_cast<std::uint32_t>(gif_->SWidth), at_.x + at_.width),
               std::max(static_cast<std::uint32_t>(gif_->SHeight), at_.y + at_.height)};
  }

  [[nodiscard]] const image_size& canvas() const noexcept { return canvas_; }
  [[nodiscard]] const image_part& at() const noexcept { return at_; }
  [[nodiscard]] bool interlaced() const noexcept { return gif_->Image.Interlace; }
  /// The number of the colour that is transparent; -1: none is.
  [[nodiscard]] int transparent() const noexcept { return transparent_; }
  /// Whether another image follows. Looks at the lengths of blocks only.
  [[nodiscard]] bool animated() const noexcept {
    bytes_view rest = rest_;
    const auto skip_blocks = [&rest] {
      while (!rest.empty()) {
        const std::size_t length = std::to_integer<std::size_t>(rest.front());
        rest = rest.subspan(std::min(rest.size(), length + 1));
        if (length == 0) return;
      }
    };
    for (skip_blocks(); rest.size() >= 2; skip_blocks()) {
      if (rest.front() == std::byte{0x2c}) return true;
      if (rest.front() != std::byte{0x21}) return false;
      rest = rest.subspan(2);
    }
    return false;
  }
  /// Red, green, blue and alpha of each number; without a palette, gray.
  [[nodiscard]] std::array<std::array<std::uint8_t, 4>, 256> colours() const noexcept {
    std::array<std::array<std::uint8_t, 4>, 256> all{};
    const ColorMapObject* const map =
        gif_->Image.ColorMap != nullptr ? gif_->Image.ColorMap : gif_->SColorMap;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto gray = static_cast<std::uint8_t>(i);
      all[i] = {gray, gray, gray, 255};
      if (map == nullptr) continue;
      all[i] = {0, 0, 0, 255};
      if (i >= static_cast<std::size_t>(map->ColorCount)) continue;
      const GifColorType& one = map->Colors[i];
      all[i] = {one.Red, one.Green, one.Blue, 255};
    }
    if (transparent_ >= 0) all[static_cast<std::size_t>(transparent_)][3] = 0;
    return all;
  }
  /// Decodes the next row of numbers; false if it is damaged or missing.
  [[nodiscard]] bool row(std::uint8_t* into) {
    if (DGifGetLine(gif_.get(), into, static_cast<int>(at_.width)) == GIF_OK) return true;
    if (gif_->Error == D_GIF_ERR_NOT_ENOUGH_MEM) throw std::bad_alloc();
    return false;
  }
  [[noreturn, gnu::cold]] void refuse_row() const { refuse(gif_->Error); }

 private:
  struct close {
    void operator()(GifFileType* file) const noexcept { DGifCloseFile(file, nullptr); }
  };

  static int next_bytes(GifFileType* file, GifByteType* into, int count) {
    auto& rest = *static_cast<bytes_view*>(file->UserData);
    const std::size_t some = std::min(rest.size(), static_cast<std::size_t>(std::max(count, 0)));
    if (some != 0) std::memcpy(into, rest.data(), some);
    rest = rest.subspan(some);
    return static_cast<int>(some);
  }
  [[noreturn, gnu::cold]] static void refuse(int fault) {
    switch (fault) {
      case D_GIF_ERR_NOT_ENOUGH_MEM:
        throw std::bad_alloc();
      case D_GIF_ERR_READ_FAILED:
      case D_GIF_ERR_EOF_TOO_SOON:
        refuse_truncated("gif");
      default:
        throw error(errc::format, "the gif image is damaged");
    }
  }
  void check(int result) const {
    if (result != GIF_OK) refuse(gif_->Error);
  }
  void extension() {
    int code = 0;
    GifByteType* block = nullptr;
    check(DGifGetExtension(gif_.get(), &code, &block));
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr && block[0] == 4)
      transparent_ = (block[1] & 1) != 0 ? block[4] : -1;
    while (block != nullptr) check(DGifGetExtensionNext(gif_.get(), &block));
  }

  bytes_view rest_;  // what giflib has not read
  std::unique_ptr<GifFileType, close> gif_;
  image_part at_;
  image_size canvas_;
  int transparent_ = -1;
};

}  // namespace detail

/// The per-worker memory of `gif`: pixels. giflib's own memory cannot be kept.
class gif_scratch : public detail::decoder_scratch<"gif"> {
 public:
  /// Decodes a part of the canvas.
  template <pixel_format Format>
  [[nodiscard]] pixel_view<std::uint8_t, Format::channels> decode(const job_type& what,
                                                                  const image_part& part) {
    detail::gif_reader reader(what.file);
    const image_part& at = reader.at();
    const auto colours = reader.colours();
    // Around the image is what Pillow has there: the transparent colour, or the first one.
    const auto around = static_cast<std::uint8_t>(std::max(reader.transparent(), 0));
    auto* const numbers = room_for<std::uint8_t>(numbers_, std::size_t{at.width} * at.height);
    const std::uint32_t wanted = std::clamp(part.y + part.height, at.y, at.y + at.height) - at.y;
    decode_rows(reader, numbers, wanted, around, what.recover);

    auto* const pixels =
        room_for<std::uint8_t>(image.pixels, std::size_t{part.width} * part.height * Format::channels);
    std::uint8_t* to = pixels;
    for (std::uint32_t y = part.y; y < part.y + part.height; ++y) {
      const std::uint8_t* const row =
          y >= at.y && y - at.y < at.height ? numbers + std::size_t{y - at.y} * at.width : nullptr;
      for (std::uint32_t x = part.x; x < part.x + part.width; ++x, to += Format::channels) {
        const bool inside = row != nullptr && x >= at.x && x - at.x < at.width;
        const auto& colour = colours[inside ? row[x - at.x] : around];
        detail::put_pixel<Format::channels>(colour[0], colour[1], colour[2], colour[3], to);
      }
    }
    return {pixels, part.size()};
  }

 private:
  void decode_rows(detail::gif_reader& reader, std::uint8_t* numbers, std::uint32_t wanted,
                   std::uint8_t filling, bool recover) {
    constexpr std::pair<std::uint32_t, std::uint32_t> passes[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
    const image_part& at = reader.at();
    const std::uint32_t rows = reader.interlaced() ? at.height : wanted;
    std::memset(numbers, filling, std::size_t{at.width} * rows);
    const auto pass = [&](std::uint32_t first, std::uint32_t step) {
      for (std::uint32_t y = first; y < rows; y += step) {
        if (reader.row(numbers + std::size_t{y} * at.width)) continue;
        if (!recover) reader.refuse_row();
        std::memset(numbers + std::size_t{y} * at.width, filling, at.width);
        damage();
        return false;
      }
      return true;
    };
    if (reader.interlaced()) {
      for (const auto& [first, step] : passes)
        if (!pass(first, step)) return;
    } else {
      (void)pass(0, 1);
    }
  }

  buffer numbers_;
};

/// A GIF that is not decoded yet: a `lazy_image` over bytes that are valid as long as the codec's input.
template <pixel_format Format>
using gif_image = detail::stored_image<gif_scratch, Format>;

/// GIF, decoded with giflib to pixels of `Format`: gray8, rgb8 or rgba8.
///
/// In: any byte element. Out: a `lazy_image` of the size of the canvas. Nothing is decoded until the image is
/// read, and then the rows down to the last one that is needed; of interlaced images, all. The colour that is
/// transparent has alpha 0 in rgba8; for rgb8 and gray8 it is the colour that the palette has, as with
/// Pillow's `convert("RGB")`. Where the first image does not cover the canvas, the transparent colour is
/// around it, or the palette's first one. Gray is Pillow's luma of the colours.
/// Kind: pointwise, keeps all guarantees. Cost: giflib's, which allocates some 30 KB for each image. Penstock
/// itself allocates nothing once the scratch has grown. Thread-safe, with a scratch per thread.
/// Throws `errc::limit` for sizes beyond `limits`, before pixels are allocated; `errc::format` for what is no
/// GIF, animated (unless `first_frame`), damaged or truncated. With `recover`, rows that are missing are as
/// what is around the image, and each such image that is read is a warning in the run's counters.
///
///     auto firsts = directory("clips") | decode<gif>(gif{.first_frame = true});
template <pixel_format Format>
struct gif_as {
  static_assert(std::same_as<typename Format::value_type, std::uint8_t>,
                "penstock: gif images have 8 bits a channel; write gif_as<gray8>, <rgb8> or <rgba8>");

  image_limits limits{};     ///< of the canvas, and of the bytes of its pixels in `Format`
  bool recover = false;      ///< whether a damaged image becomes what is left of it
  bool first_frame = false;  ///< whether an animation becomes its first image; otherwise it is an error

  static constexpr std::string_view codec_name = "gif";
  static constexpr std::string_view extensions[] = {"gif"};
  static constexpr bool one_at_a_time = true;
  using scratch = gif_scratch;

  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept {
    return bytes.size() >= 6 &&
           (text_of(bytes).starts_with("GIF87a") || text_of(bytes).starts_with("GIF89a"));
  }

  template <byte_element Bytes>
  [[nodiscard]] gif_image<Format> decode(const Bytes& in, scratch& s) const {
    const bytes_view bytes = as_bytes(in);
    detail::begin_image<gif_as>(bytes, s);
    const detail::gif_reader reader(bytes);
    detail::check_image_size(reader.canvas(), Format::channels, limits, codec_name);
    if (!first_frame && reader.animated()) detail::refuse_animation(codec_name);
    return {s, {bytes, reader.canvas(), orientation::upright, recover}};
  }
};

/// GIF to RGB, 8 bits each.
using gif = gif_as<rgb8>;

}  // namespace penstock::inline v0_1
