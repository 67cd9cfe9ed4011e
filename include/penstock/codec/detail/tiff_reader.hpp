// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<tiffio.h>)
#error "penstock/codec/detail/tiff_reader.hpp needs libtiff: link penstock::tiff"
#endif

#include <penstock/core/error.hpp>
#include <penstock/image/lazy_image.hpp>
#include <penstock/image/orientation.hpp>

#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <new>

namespace penstock::inline v0_1::detail {

/// Reads the first image of a TIFF with libtiff. Source: TIFF, revision 6.0 (Adobe, 1992).
class tiff_reader {
 public:
  /// Reads the first directory. Throws `errc::format` if there is none, or it lacks what is needed.
  explicit tiff_reader(bytes_view file) : file_(file) {
    const std::unique_ptr<TIFFOpenOptions, free_options> options(TIFFOpenOptionsAlloc());
    if (!options) throw std::bad_alloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), note, this);
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), ignore, nullptr);
    tiff_.reset(
        TIFFClientOpenExt("tiff", "r", this, read, write, seek, close, size_of, map, unmap, options.get()));
    if (!tiff_) refuse();
    if (TIFFGetField(tiff_.get(), TIFFTAG_IMAGEWIDTH, &size_.width) != 1 ||
        TIFFGetField(tiff_.get(), TIFFTAG_IMAGELENGTH, &size_.height) != 1)
      throw error(errc::format, "the tiff image is damaged: it does not say how large it is");
    bits_ = field(TIFFTAG_BITSPERSAMPLE);
    samples_ = field(TIFFTAG_SAMPLESPERPIXEL);
    planes_ = field(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE;
    photometric_ = field(TIFFTAG_PHOTOMETRIC);
    if (const unsigned kind = field(TIFFTAG_SAMPLEFORMAT);
        kind != SAMPLEFORMAT_UINT && kind != SAMPLEFORMAT_VOID)
      throw error(errc::format, {"the tiff image has ", bits_, "-bit samples that are ",
                                 kind == SAMPLEFORMAT_IEEEFP ? "floating-point" : "signed or complex",
                                 " numbers; this codec reads unsigned integers"});
    // libtiff converts the chroma of JPEG, and gives RGB.
    if (photometric_ == PHOTOMETRIC_YCBCR && field(TIFFTAG_COMPRESSION) == COMPRESSION_JPEG && !planes_) {
      TIFFSetField(tiff_.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
      photometric_ = PHOTOMETRIC_RGB;
    }
    const bool gray = photometric_ == PHOTOMETRIC_MINISBLACK || photometric_ == PHOTOMETRIC_MINISWHITE;
    const bool rgb = photometric_ == PHOTOMETRIC_RGB;
    colours_ = gray ? 1 : 3;
    plain_ = (bits_ == 8 || bits_ == 16) && (gray || rgb) && samples_ >= colours_;
    if (plain_ && samples_ > colours_) {
      std::uint16_t count = 0;
      std::uint16_t* kinds = nullptr;
      const bool said = TIFFGetField(tiff_.get(), TIFFTAG_EXTRASAMPLES, &count, &kinds) == 1 && count != 0;
      alpha_ = !said || kinds[0] == EXTRASAMPLE_ASSOCALPHA || kinds[0] == EXTRASAMPLE_UNASSALPHA;
      multiplied_ = said && kinds[0] == EXTRASAMPLE_ASSOCALPHA;
    }
  }
  tiff_reader(const tiff_reader&) = delete;  // libtiff has a pointer to it
  tiff_reader& operator=(const tiff_reader&) = delete;

  [[nodiscard]] const image_size& size() const noexcept { return size_; }
  [[nodiscard]] orientation turn() const noexcept {
    const unsigned value = field(TIFFTAG_ORIENTATION);
    return value >= 1 && value <= 8 ? static_cast<orientation>(value) : orientation::upright;
  }
  /// Whether the samples are numbers of gray or RGB of 8 or 16 bits, which `read` reads; otherwise
  /// `read_rgba`
  /// reads the image.
  [[nodiscard]] bool plain() const noexcept { return plain_; }
  [[nodiscard]] unsigned bits() const noexcept { return bits_; }
  [[nodiscard]] bool inverted() const noexcept { return photometric_ == PHOTOMETRIC_MINISWHITE; }
  /// 1 or 3
  [[nodiscard]] unsigned colours() const noexcept { return colours_; }
  [[nodiscard]] bool alpha() const noexcept { return alpha_; }
  /// Whether the colours are multiplied by alpha.
  [[nodiscard]] bool multiplied() const noexcept { return multiplied_; }
  /// Of a strip or a tile.
  [[nodiscard]] std::uint64_t block_bytes() const noexcept {
    return TIFFIsTiled(tiff_.get()) != 0 ? TIFFTileSize64(tiff_.get()) : TIFFStripSize64(tiff_.get());
  }

  /// Reads the colours, and alpha if there is one, of a part of an image whose samples are plain, to an array
  /// of (part.height, part.width, colours + alpha). False if a block is damaged: its samples stay as they
  /// are.
  template <class T>
  bool read(const image_part& part, T* to, buffer& block) {
    TIFF* const t = tiff_.get();
    const bool tiled = TIFFIsTiled(t) != 0;
    image_size one = size_;
    TIFFGetFieldDefaulted(t, tiled ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &one.height);
    if (tiled) TIFFGetFieldDefaulted(t, TIFFTAG_TILEWIDTH, &one.width);
    if (one.width == 0 || one.height == 0) return false;
    if (!tiled) one.height = std::min(one.height, size_.height);
    const std::size_t bytes = block_bytes();
    std::byte* const memory = room_for<std::byte>(block, bytes + 1);
    const std::size_t wanted = colours_ + (alpha_ ? 1 : 0), in_block = planes_ ? 1 : samples_;
    bool good = true;
    for (std::uint32_t y = part.y / one.height * one.height; y < part.y + part.height; y += one.height)
      for (std::uint32_t x = part.x / one.width * one.width; x < part.x + part.width; x += one.width)
        for (std::size_t plane = 0; plane < (planes_ ? wanted : 1); ++plane) {
          const std::uint32_t left = std::max(x, part.x),
                              right = std::min(x + one.width, part.x + part.width);
          const std::uint32_t top = std::max(y, part.y),
                              bottom = std::min(y + one.height, part.y + part.height);
          const auto sample = static_cast<std::uint16_t>(plane);
          const tmsize_t got = tiled ? TIFFReadEncodedTile(t, TIFFComputeTile(t, x, y, 0, sample), memory,
                                                           static_cast<tmsize_t>(bytes))
                                     : TIFFReadEncodedStrip(t, TIFFComputeStrip(t, y, sample), memory,
                                                            static_cast<tmsize_t>(bytes));
          const std::size_t needed =
              (std::size_t{bottom - 1 - y} * one.width + (right - x)) * in_block * sizeof(T);
          if (got < 0 || static_cast<std::size_t>(got) < needed) {
            good = false;
            continue;
          }
          const T* const stored = reinterpret_cast<const T*>(memory);
          for (std::uint32_t row = top; row < bottom; ++row) {
            const T* pixel = stored + (std::size_t{row - y} * one.width + (left - x)) * in_block;
            T* into = to + (std::size_t{row - part.y} * part.width + (left - part.x)) * wanted + plane;
            for (std::uint32_t i = left; i < right; ++i, pixel += in_block, into += wanted)
              std::copy_n(pixel, planes_ ? 1 : wanted, into);
          }
        }
    return good;
  }
  /// Converts the whole image to (height, width) values of red, green, blue and alpha, each in the next byte
  /// of a 32-bit number. False if it is damaged or of a kind that libtiff does not convert.
  bool read_rgba(std::uint32_t* to) {
    TIFFRGBAImage image;
    char why[1024] = "";
    if (TIFFRGBAImageOK(tiff_.get(), why) != 1 || TIFFRGBAImageBegin(&image, tiff_.get(), 1, why) != 1) {
      if (why[0] != '\0') std::snprintf(said_.data(), said_.size(), "%s", why);
      return false;
    }
    image.req_orientation = image.orientation;  // libtiff turns nothing
    const bool good = TIFFRGBAImageGet(&image, to, size_.width, size_.height) == 1;
    TIFFRGBAImageEnd(&image);
    return good;
  }
  /// Throws what libtiff said last.
  [[noreturn, gnu::cold]] void refuse() const {
    if (said_[0] == '\0') throw error(errc::format, "the tiff image is damaged or truncated");
    throw error(errc::format, {"the tiff image is damaged or truncated: ", said_.data()});
  }

 private:
  struct free_options {
    void operator()(TIFFOpenOptions* options) const noexcept { TIFFOpenOptionsFree(options); }
  };
  struct close_tiff {
    void operator()(TIFF* file) const noexcept { TIFFClose(file); }
  };

  [[nodiscard]] unsigned field(std::uint32_t tag) const noexcept {
    std::uint16_t value = 0;
    return TIFFGetFieldDefaulted(tiff_.get(), tag, &value) == 1 ? value : 0u;
  }

  static tiff_reader& self(thandle_t handle) noexcept { return *static_cast<tiff_reader*>(handle); }
  static tmsize_t read(thandle_t handle, void* into, tmsize_t count) {
    tiff_reader& r = self(handle);
    const std::size_t at = static_cast<std::size_t>(std::min<std::uint64_t>(r.at_, r.file_.size()));
    const std::size_t some =
        std::min(r.file_.size() - at, static_cast<std::size_t>(std::max<tmsize_t>(count, 0)));
    if (some != 0) std::memcpy(into, r.file_.data() + at, some);
    r.at_ += some;
    return static_cast<tmsize_t>(some);
  }
  static tmsize_t write(thandle_t, void*, tmsize_t) { return 0; }
  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    tiff_reader& r = self(handle);
    r.at_ = whence == SEEK_SET ? offset : whence == SEEK_CUR ? r.at_ + offset : r.file_.size() + offset;
    return r.at_;
  }
  static int close(thandle_t) { return 0; }
  static toff_t size_of(thandle_t handle) { return self(handle).file_.size(); }
  /// libtiff reads from the mapping, and writes nothing to it.
  static int map(thandle_t handle, void** base, toff_t* size) {
    const bytes_view file = self(handle).file_;
    *base = const_cast<std::byte*>(file.data());
    *size = file.size();
    return 1;
  }
  static void unmap(thandle_t, void*, toff_t) {}
  static int note(TIFF*, void* user, const char*, const char* format, va_list arguments) {
    auto& said = static_cast<tiff_reader*>(user)->said_;
    std::vsnprintf(said.data(), said.size(), format, arguments);
    return 1;
  }
  static int ignore(TIFF*, void*, const char*, const char*, va_list) { return 1; }

  bytes_view file_;
  std::uint64_t at_ = 0;
  std::array<char, 200> said_{};
  std::unique_ptr<TIFF, close_tiff> tiff_;
  image_size size_;
  unsigned bits_ = 0, samples_ = 0, photometric_ = 0, colours_ = 0;
  bool planes_ = false, plain_ = false, alpha_ = false, multiplied_ = false;
};

}  // namespace penstock::inline v0_1::detail
