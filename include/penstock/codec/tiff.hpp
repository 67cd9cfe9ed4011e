// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<tiffio.h>)
#error "penstock/codec/tiff.hpp needs libtiff: link penstock::tiff"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/detail/stored_image.hpp>
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

namespace penstock::inline v0_1 {

namespace detail {

/// Reads the first image of a TIFF with libtiff. Source: TIFF, revision 6.0 (Adobe, 1992).
class tiff_reader : unmovable {  // libtiff has a pointer to it
 public:
  /// Reads the first directory. Throws `errc::format` if there is none, or it lacks what is needed.
  explicit tiff_reader(bytes_view file) : file_(file) {
    const std::unique_ptr<TIFFOpenOptions, freed_by<TIFFOpenOptionsFree>> options(TIFFOpenOptionsAlloc());
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
          const image_part here = common_part({x, y, one.width, one.height}, part);
          const auto sample = static_cast<std::uint16_t>(plane);
          const tmsize_t got = tiled ? TIFFReadEncodedTile(t, TIFFComputeTile(t, x, y, 0, sample), memory,
                                                           static_cast<tmsize_t>(bytes))
                                     : TIFFReadEncodedStrip(t, TIFFComputeStrip(t, y, sample), memory,
                                                            static_cast<tmsize_t>(bytes));
          const std::size_t needed =
              (std::size_t{here.y + here.height - 1 - y} * one.width + (here.x + here.width - x)) * in_block *
              sizeof(T);
          if (got < 0 || static_cast<std::size_t>(got) < needed) {
            good = false;
            continue;
          }
          const T* const stored = reinterpret_cast<const T*>(memory);
          for (std::uint32_t row = here.y; row < here.y + here.height; ++row) {
            const T* pixel = stored + (std::size_t{row - y} * one.width + (here.x - x)) * in_block;
            T* into = to + (std::size_t{row - part.y} * part.width + (here.x - part.x)) * wanted + plane;
            for (std::uint32_t i = 0; i < here.width; ++i, pixel += in_block, into += wanted)
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
  std::unique_ptr<TIFF, freed_by<TIFFClose>> tiff_;
  image_size size_;
  unsigned bits_ = 0, samples_ = 0, photometric_ = 0, colours_ = 0;
  bool planes_ = false, plain_ = false, alpha_ = false, multiplied_ = false;
};

}  // namespace detail

/// The per-worker memory of `tiff`: samples and pixels. libtiff's own memory cannot be kept.
class tiff_scratch : public detail::decoder_scratch<"tiff"> {
 public:
  /// Decodes a part of the stored image.
  template <pixel_format Format>
  [[nodiscard]] auto decode(const job_type& what, const image_part& part) {
    using value = typename Format::value_type;
    detail::tiff_reader reader(what.file);
    const std::size_t count = std::size_t{part.width} * part.height;
    value* const pixels = room_for<value>(image.pixels, count * Format::channels);
    if (!reader.plain())
      converted<Format>(reader, part, pixels, what.recover);
    else if (reader.bits() == 8)
      plain<Format, std::uint8_t>(reader, part, pixels, what.recover);
    else
      plain<Format, std::uint16_t>(reader, part, pixels, what.recover);
    return pixel_view<value, Format::channels>(pixels, part.size());
  }

 private:
  /// 16 bits become 8 without the lower 8, 8 become 16 times 257.
  template <class To, class From>
  [[nodiscard]] static To in_depth(From sample) noexcept {
    if constexpr (sizeof(To) == sizeof(From))
      return sample;
    else if constexpr (sizeof(To) < sizeof(From))
      return static_cast<To>(sample >> 8);
    else
      return static_cast<To>(sample * 257u);
  }
  template <pixel_format Format, class Sample>
  void plain(detail::tiff_reader& reader, const image_part& part, typename Format::value_type* to,
             bool recover) {
    using value = typename Format::value_type;
    constexpr std::uint32_t largest = sizeof(Sample) == 1 ? 255 : 65'535;
    const std::size_t count = std::size_t{part.width} * part.height;
    const std::size_t colours = reader.colours(), each = colours + (reader.alpha() ? 1 : 0);
    Sample* const samples = room_for<Sample>(samples_, count * each);
    if (recover) std::memset(samples, 0, count * each * sizeof(Sample));
    if (!reader.read(part, samples, block_)) spoilt(reader, recover);
    const Sample* pixel = samples;
    for (std::size_t i = 0; i < count; ++i, pixel += each, to += Format::channels) {
      std::uint32_t colour[3] = {pixel[0], colours == 3 ? pixel[1] : pixel[0],
                                 colours == 3 ? pixel[2] : pixel[0]};
      const std::uint32_t alpha = reader.alpha() ? pixel[colours] : largest;
      for (std::uint32_t& one : colour) {
        if (reader.inverted()) one = largest - one;
        if (reader.multiplied()) one = alpha == 0 ? 0 : std::min(one * largest / alpha, largest);
      }
      std::uint32_t made[Format::channels];
      detail::put_pixel<Format::channels>(colour[0], colour[1], colour[2], alpha, made);
      for (std::size_t c = 0; c < Format::channels; ++c)
        to[c] = in_depth<value>(static_cast<Sample>(made[c]));
    }
  }
  /// Everything else, as libtiff converts it: palettes, few bits, CMYK, YCbCr, Lab, ...
  template <pixel_format Format>
  void converted(detail::tiff_reader& reader, const image_part& part, typename Format::value_type* to,
                 bool recover) {
    using value = typename Format::value_type;
    const image_size size = reader.size();
    const std::size_t count = std::size_t{size.width} * size.height;
    auto* const all = room_for<std::uint32_t>(samples_, count);
    std::memset(all, 0, count * sizeof(std::uint32_t));
    if (!reader.read_rgba(all)) spoilt(reader, recover);
    for (std::uint32_t y = part.y; y < part.y + part.height; ++y)
      for (std::uint32_t x = part.x; x < part.x + part.width; ++x, to += Format::channels) {
        const std::uint32_t pixel = all[std::size_t{y} * size.width + x];
        const auto byte = [&](unsigned i) { return static_cast<std::uint8_t>(pixel >> (8 * i)); };
        std::uint8_t made[Format::channels];
        detail::put_pixel<Format::channels>(byte(0), byte(1), byte(2), byte(3), made);
        for (unsigned c = 0; c < Format::channels; ++c) to[c] = in_depth<value>(made[c]);
      }
  }
  void spoilt(const detail::tiff_reader& reader, bool recover) {
    if (!recover) reader.refuse();
    damage();
  }

  buffer samples_, block_;
};

/// A TIFF that is not decoded yet: a `lazy_image` over bytes that are valid as long as the codec's input.
template <pixel_format Format>
using tiff_image = detail::stored_image<tiff_scratch, Format>;

/// TIFF, decoded with libtiff to pixels of `Format`: gray8, rgb8, rgba8, gray16, rgb16 or rgba16.
///
/// In: any byte element. Out: a `lazy_image` of the size at which the image is shown: the orientation of its
/// tag is applied, unless `orient` is false. Of a file with several pages, the first. Nothing is decoded
/// until the image is read, and then the strips or tiles that are needed. Gray and RGB of 8 and 16 bits, with
/// alpha and without, in any of the compressions that libtiff was built with, keep their values: 16 bits
/// become 8 by dropping the lower 8, 8 bits become 16 times 257; colours that are multiplied by alpha are
/// divided by it, as in Pillow. Everything else (palettes, fewer bits, CMYK, YCbCr, Lab) is what libtiff's
/// RGBA interface makes of the whole image, in 8 bits. Colours become gray by Pillow's luma. Alpha is dropped
/// for formats without it.
/// Kind: pointwise, keeps all guarantees. Cost: libtiff's, which allocates memory for each image. Penstock
/// itself allocates nothing once the scratch has grown. Thread-safe, with a scratch per thread.
/// Throws `errc::limit` for sizes beyond `limits`, before pixels are allocated; `errc::format` for what is no
/// TIFF, of samples that are no unsigned integers, damaged or truncated. With `recover`, strips and tiles
/// that are missing become zero, and each such image that is read is a warning in the run's counters.
///
///     auto scans = directory("scans") | decode<penstock::tiff>;  // libtiff has a struct of that name
template <pixel_format Format>
struct tiff_as {
  image_limits limits{};  ///< of the stored image, and of the bytes of its pixels in `Format`
  bool orient = true;     ///< whether the orientation is applied
  bool recover = false;   ///< whether a damaged image becomes what is left of it

  static constexpr std::string_view codec_name = "tiff";
  static constexpr std::string_view extensions[] = {"tif", "tiff"};
  static constexpr bool one_at_a_time = true;
  using scratch = tiff_scratch;

  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept {
    if (bytes.size() < 4) return false;
    const std::string_view head = text_of(bytes.first(4));
    for (const std::string_view one : {std::string_view("II*\0", 4), std::string_view("MM\0*", 4),
                                       std::string_view("II+\0", 4), std::string_view("MM\0+", 4)})
      if (head == one) return true;
    return false;
  }

  template <byte_element Bytes>
  [[nodiscard]] tiff_image<Format> decode(const Bytes& in, scratch& s) const {
    const bytes_view bytes = as_bytes(in);
    detail::begin_image<tiff_as>(bytes, s);
    const detail::tiff_reader reader(bytes);
    constexpr std::size_t pixel_bytes = sizeof(typename Format::value_type) * Format::channels;
    detail::check_image_size(reader.size(),
                             reader.plain() ? pixel_bytes : std::max<std::size_t>(pixel_bytes, 4), limits,
                             codec_name);
    if (const std::uint64_t block = reader.block_bytes(); block / 8 > limits.bytes)
      throw error(errc::limit, {"the tiff image has strips or tiles of ", block,
                                " bytes, which is beyond its limits; raise them with .limits"});
    return {s, {bytes, reader.size(), orient ? reader.turn() : orientation::upright, recover}};
  }
};

/// TIFF to RGB, 8 bits each.
using tiff = tiff_as<rgb8>;

}  // namespace penstock::inline v0_1
