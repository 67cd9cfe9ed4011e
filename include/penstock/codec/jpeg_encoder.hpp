// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<jpeglib.h>)
#error "penstock/codec/jpeg_encoder.hpp needs libjpeg-turbo: link penstock::jpeg"
#endif

#include <penstock/codec/detail/jpeg_session.hpp>
#include <penstock/image/pixels.hpp>

#include <memory>

namespace penstock::inline v0_1 {

/// How many colour samples there are: as many as pixels, half in each row, or half in each row of every other
/// row.
enum class jpeg_chroma : std::uint8_t { full_444, half_422, quarter_420 };

/// How `jpeg_encoder` encodes.
struct jpeg_encoding {
  int quality = 90;  ///< 1 to 100, on the library's scale, which is Pillow's
  jpeg_chroma chroma = jpeg_chroma::quarter_420;
  bool progressive = false;
};

namespace detail {

class jpeg_writer : public jpeg_session {
 public:
  jpeg_writer() { memory_limit = std::numeric_limits<std::uint64_t>::max() / 4; }
  ~jpeg_writer() {
    if (created_) jpeg_destroy_compress(&info_);
  }

  void write(const std::uint8_t* pixels, const image_size& size, std::size_t pitch, int channels,
             const jpeg_encoding& how, buffer& out) {
    create();
    pixels_ = pixels;
    size_ = size;
    pitch_ = pitch;
    channels_ = channels;
    how_ = how;
    out_ = &out;
    const bool whole = attempt(&write_all, *this);
    forget();
    if (whole) return;
    if (why() == trouble::memory) throw std::bad_alloc();
    throw error(errc::argument, {"the pixels cannot be written as a jpeg file: ", reason()});
  }

 private:
  void create() {
    if (created_) return;
    if (!make_info(info_, &make, *this)) {
      jpeg_destroy_compress(&info_);
      fail();
    }
    target_.init_destination = [](j_compress_ptr c) { self(c).begin(); };
    target_.empty_output_buffer = [](j_compress_ptr c) -> boolean {
      self(c).put(block_bytes);
      self(c).begin();
      return TRUE;
    };
    target_.term_destination = [](j_compress_ptr c) {
      self(c).put(block_bytes - self(c).target_.free_in_buffer);
    };
    info_.dest = &target_;
    created_ = true;
  }
  /// What one image set is not for the next: the library keeps, for one, Huffman tables that it optimised.
  void forget() noexcept {
    jpeg_abort_compress(&info_);
    info_.comp_info = nullptr;
    info_.script_space = nullptr;
    info_.script_space_size = 0;
    forget_tables(info_);
  }
  static jpeg_writer& self(j_compress_ptr c) noexcept { return static_cast<jpeg_writer&>(of(c)); }
  static void make(jpeg_writer& w) { jpeg_create_compress(&w.info_); }
  static void write_all(jpeg_writer& w) {
    jpeg_compress_struct& c = w.info_;
    c.image_width = w.size_.width;
    c.image_height = w.size_.height;
    c.input_components = w.channels_;
    c.in_color_space = w.channels_ == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, w.how_.quality, TRUE);
    if (w.channels_ == 3) {
      c.comp_info[0].h_samp_factor = w.how_.chroma == jpeg_chroma::full_444 ? 1 : 2;
      c.comp_info[0].v_samp_factor = w.how_.chroma == jpeg_chroma::quarter_420 ? 2 : 1;
    }
    if (w.how_.progressive) jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
      auto* row = const_cast<JSAMPROW>(w.pixels_ + std::size_t{c.next_scanline} * w.pitch_);
      (void)jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
  }

  void begin() noexcept {
    target_.next_output_byte = block_.data();
    target_.free_in_buffer = block_bytes;
  }
  void put(std::size_t n) {
    bool out_of_memory = false;
    try {
      out_->append({reinterpret_cast<const std::byte*>(block_.data()), n});
    } catch (...) {
      out_of_memory = true;
    }
    if (out_of_memory) leave(trouble::memory);
  }

  static constexpr std::size_t block_bytes = std::size_t{16} << 10;
  jpeg_compress_struct info_{};
  jpeg_destination_mgr target_{};
  std::array<JOCTET, block_bytes> block_{};
  const std::uint8_t* pixels_ = nullptr;
  image_size size_;
  std::size_t pitch_ = 0;
  int channels_ = 0;
  jpeg_encoding how_;
  buffer* out_ = nullptr;
  bool created_ = false;
};

}  // namespace detail

/// Writes JPEG files: from gray pixels, or red, green and blue, with libjpeg-turbo. For tools, tests and
/// shards that are made beforehand; a `decode` needs none.
///
/// One object per thread; it keeps its memory, so that nothing is allocated from the second image of a size
/// on.
/// Cost: the library's own, and a copy of the file. Throws `errc::argument` for pixels without a size or with
/// more than 65,500 in one direction, and a quality that is not 1 to 100. torchvision calls it `encode_jpeg`.
///
///     std::uint8_t pixels[4 * 2 * 3] = {};
///     jpeg_encoder encoder;
///     bytes_view file = encoder.encode(pixel_view<std::uint8_t, 3>(pixels, {4, 2}), {.quality = 80});
class jpeg_encoder {
 public:
  /// The file, valid until the next one.
  template <std::size_t Channels>
  bytes_view encode(const pixel_view<std::uint8_t, Channels>& pixels, const jpeg_encoding& how = {}) {
    file_.clear();
    append(pixels, file_, how);
    return file_.view();
  }
  /// Appends the file to a buffer; after an error, a part of the file may be there.
  template <std::size_t Channels>
  void append(const pixel_view<std::uint8_t, Channels>& pixels, buffer& to, const jpeg_encoding& how = {}) {
    static_assert(Channels == 1 || Channels == 3, "penstock: a jpeg file has one channel or three");
    constexpr std::uint32_t maximum = JPEG_MAX_DIMENSION;
    const image_size size = pixels.size();
    if (size.width == 0 || size.height == 0 || size.width > maximum || size.height > maximum)
      throw error(errc::argument, {"jpeg_encoder: the image is ", size.width, " x ", size.height,
                                   "; give it 1 to ", maximum, " pixels in each direction"});
    if (how.quality < 1 || how.quality > 100)
      throw error(errc::argument,
                  {"jpeg_encoder: the quality is ", how.quality, "; give a number from 1 to 100"});
    if (!writer_) writer_ = std::make_unique<detail::jpeg_writer>();
    writer_->write(pixels.data(), size, pixels.pitch(), static_cast<int>(Channels), how, to);
  }

 private:
  std::unique_ptr<detail::jpeg_writer> writer_;
  buffer file_;
};

}  // namespace penstock::inline v0_1
