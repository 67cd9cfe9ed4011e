// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<spng.h>)
#error "penstock/codec/png.hpp needs libspng: link penstock::png"
#endif

#include <penstock/codec/detail/png_header.hpp>
#include <penstock/codec/detail/spng_memory.hpp>
#include <penstock/codec/detail/stored_image.hpp>

#include <spng.h>

#include <algorithm>

namespace penstock::inline v0_1 {

namespace detail {

struct png_job : image_job {
  png_header header;
  image_limits limits;
};

/// The bytes of a pixel in one of libspng's formats.
[[nodiscard]] constexpr std::size_t spng_pixel_bytes(int format) noexcept {
  switch (format) {
    case SPNG_FMT_G8:
      return 1;
    case SPNG_FMT_RGB8:
      return 3;
    case SPNG_FMT_RGBA8:
      return 4;
    default:
      return 8;
  }
}

/// The format to have libspng decode to for pixels of `Format`: what it can do exactly for every file.
template <pixel_format Format>
[[nodiscard]] constexpr int spng_format_for(const png_header& header) noexcept {
  if constexpr (sizeof(typename Format::value_type) == 2)
    return header.depth == 16 ? SPNG_FMT_RGBA16 : SPNG_FMT_RGBA8;
  else if constexpr (Format::channels == 4)
    return SPNG_FMT_RGBA8;
  else if (Format::channels == 1 && header.colour == 0 && header.depth <= 8)
    return SPNG_FMT_G8;
  else
    return SPNG_FMT_RGB8;
}

/// Writes pixels of one of libspng's formats as pixels of `Format`.
template <pixel_format Format>
void convert_png_row(const std::byte* input, int format, typename Format::value_type* to,
                     std::size_t count) noexcept {
  using value = typename Format::value_type;
  constexpr std::size_t channels = Format::channels;
  const std::size_t from_channels = spng_pixel_bytes(format) / (format == SPNG_FMT_RGBA16 ? 2 : 1);
  const auto run = [&]<class From>(const From* pixel, std::uint32_t scale) {
    if constexpr (channels == 1) {
      for (std::size_t i = 0; i < count; ++i, pixel += from_channels)
        to[i] = static_cast<value>(luma(pixel[0] * scale, pixel[1] * scale, pixel[2] * scale));
    } else {
      for (std::size_t i = 0; i < count; ++i, pixel += from_channels, to += channels)
        for (std::size_t c = 0; c < channels; ++c) to[c] = static_cast<value>(pixel[c] * scale);
    }
  };
  if constexpr (sizeof(value) == 1)
    run(reinterpret_cast<const std::uint8_t*>(input), 1);
  else if (format == SPNG_FMT_RGBA16)
    run(reinterpret_cast<const std::uint16_t*>(input), 1);
  else
    run(reinterpret_cast<const std::uint8_t*>(input), 257);  // 255 becomes 65,535
}

}  // namespace detail

/// The per-worker memory of `png`: pixels, and what libspng and zlib allocate, which is kept for the next
/// image.
class png_scratch : public detail::decoder_scratch<"png", detail::png_job> {
 public:
  /// Decodes the rows down to the part's last one, and keeps the part's.
  template <pixel_format Format>
  [[nodiscard]] auto decode(const job_type& what, const image_part& part) {
    using value = typename Format::value_type;
    const std::size_t row = std::size_t{part.width} * Format::channels;
    value* const to = room_for<value>(image.pixels, row * part.height);
    decode_to<Format>(what, part, to, static_cast<std::ptrdiff_t>(row));
    return pixel_view<value, Format::channels>(to, part.size());
  }
  /// Decodes straight into destinations whose pixels are interleaved.
  template <pixel_format Format>
  [[nodiscard]] bool draw(const job_type& what, const image_part& part,
                          const destination<typename Format::value_type>& into) {
    const element_strides strides = into.strides();
    if (strides[2] != 1 || strides[1] != std::int64_t{Format::channels}) return false;
    decode_to<Format>(what, part, into.data(), static_cast<std::ptrdiff_t>(strides[0]));
    return true;
  }

  /// How the image is turned when it is shown, by its EXIF or its XMP.
  [[nodiscard]] orientation turn_of(bytes_view bytes) {
    const detail::png_metadata found = detail::png_metadata_of(bytes);
    metadata_orientation turn;
    if (!found.exif.empty()) {
      turn.exif(found.exif);
    } else if (!found.profile.empty()) {
      const std::string_view text = text_in(found.profile);
      std::byte* const exif = room_for<std::byte>(image.work, text.size() / 2 + 1);
      turn.exif({exif, detail::decode_png_profile(text, exif)});
    }
    if (!found.xmp.empty() && !turn.tagged()) turn.xmp(text_in(found.xmp));
    return turn.found();
  }

 private:
  template <pixel_format Format>
  void decode_to(const job_type& what, const image_part& part, typename Format::value_type* to,
                 std::ptrdiff_t pitch) {
    const int format = detail::spng_format_for<Format>(what.header);
    constexpr std::size_t pixel_bytes = sizeof(*to) * Format::channels;
    const bool same =
        detail::spng_pixel_bytes(format) == pixel_bytes && (format == SPNG_FMT_RGBA16) == (pixel_bytes == 8);
    const auto row = [&](std::uint32_t y) { return to + static_cast<std::ptrdiff_t>(y) * pitch; };
    decode_rows(
        what, format, part,
        [&](std::uint32_t y) { return same ? reinterpret_cast<std::byte*>(row(y)) : nullptr; },
        [&](std::uint32_t y, const std::byte* pixels) {
          if (same)
            std::memcpy(row(y), pixels, part.width * pixel_bytes);
          else
            detail::convert_png_row<Format>(pixels, format, row(y), part.width);
        });
  }
  /// Decodes the rows of a part of the stored image to one of libspng's formats. `straight(y)` is where row
  /// `part.y + y` may be written, or null; otherwise `put(y, pixels)` gets the row's part.
  template <class Straight, class Put>
  void decode_rows(const detail::png_job& job, int format, const image_part& part, Straight&& straight,
                   Put&& put) {
    const detail::allocation_pool::scope kept(memory_);
    memory_.forget_failure();
    std::uint32_t done = 0;
    int fault = rows(job, format, part, false, done, straight, put);
    if (fault == SPNG_OK) return;
    if (memory_.failed() || fault == SPNG_EMEM) throw std::bad_alloc();
    if (!job.recover) refuse(fault);
    if (fault == SPNG_ECHUNK_CRC || fault == SPNG_EIDAT_STREAM) {  // a wrong Adler-32 is the latter
      fault = rows(job, format, part, true, done, straight, put);
      if (memory_.failed() || fault == SPNG_EMEM) throw std::bad_alloc();
    }
    damage();
    // Rows that cannot be decoded are zero.
    const std::size_t bytes = part.width * detail::spng_pixel_bytes(format);
    std::memset(room_for<std::byte>(row_, bytes), 0, bytes);
    for (; done < part.height; ++done) {
      if (std::byte* const to = straight(done); to != nullptr)
        std::memset(to, 0, bytes);
      else
        put(done, row_.data());
    }
  }
  /// What a chunk of text says; nothing if it is damaged. Valid until the next call.
  [[nodiscard]] std::string_view text_in(bytes_view chunk) {
    bool compressed = false;
    const std::string_view plain = detail::plain_png_text(chunk, compressed);
    if (!compressed) return plain;
    // libspng inflates the texts of files, so it gets one of a single pixel, whose pixels it never reads.
    constexpr std::string_view front(
        "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\b\0\0\0\0\x3a\x7e\x9b\x55", 33);
    constexpr std::string_view back("\0\0\0\1IDAT\0\0\0\0\0", 13);
    const std::size_t size = front.size() + chunk.size() + back.size();
    std::byte* const file = room_for<std::byte>(whole_, size);
    std::memcpy(file, front.data(), front.size());
    std::memcpy(file + front.size(), chunk.data(), chunk.size());
    std::memcpy(file + front.size() + chunk.size(), back.data(), back.size());
    const detail::allocation_pool::scope kept(memory_);
    memory_.forget_failure();
    const detail::spng_context context = detail::new_spng(0);
    constexpr std::size_t largest = 1 << 20;
    spng_set_chunk_limits(context.get(), largest, 2 * largest);
    spng_text text{};
    std::uint32_t count = 1;
    if (spng_set_png_buffer(context.get(), file, size) != SPNG_OK ||
        spng_get_text(context.get(), &text, &count) != SPNG_OK || count != 1)
      return memory_.failed() ? throw std::bad_alloc() : std::string_view();
    char* const copy = room_for<char>(row_, text.length + 1);
    std::memcpy(copy, text.text, text.length);
    return {copy, text.length};
  }
  [[noreturn, gnu::cold]] static void refuse(int fault) {
    switch (fault) {
      case SPNG_ECHUNK_CRC:
        throw error(errc::checksum, "a chunk of the png image does not match its checksum");
      case SPNG_IO_EOF:
      case SPNG_IO_ERROR:
      case SPNG_EIDAT_TOO_SHORT:
        detail::refuse_truncated("png");
      default:
        throw error(errc::format, {"the png image is damaged: ", spng_strerror(fault)});
    }
  }
  static int next_bytes(spng_ctx*, void* filter, void* into, std::size_t size) {
    auto& input = *static_cast<detail::png_filter*>(filter);
    return input.read({static_cast<std::byte*>(into), size}) ? 0 : SPNG_IO_EOF;
  }

  /// Returns libspng's error; `done` is the number of the part's rows that are written.
  template <class Straight, class Put>
  int rows(const detail::png_job& job, int format, const image_part& part, bool ignore_checksums,
           std::uint32_t& done, Straight& straight, Put& put) {
    constexpr std::size_t max_of_a_chunk = 1 << 20;  // of those that libspng would keep
    done = 0;
    detail::png_filter filter(job.file);
    const detail::spng_context context = detail::new_spng(ignore_checksums ? SPNG_CTX_IGNORE_ADLER32 : 0);
    spng_ctx* const c = context.get();
    spng_set_image_limits(c, job.limits.width, job.limits.height);
    spng_set_chunk_limits(c, max_of_a_chunk, max_of_a_chunk);
    if (ignore_checksums) spng_set_crc_action(c, SPNG_CRC_USE, SPNG_CRC_USE);
    if (const int fault = spng_set_png_stream(c, next_bytes, &filter); fault != 0) return fault;
    if (const int fault = cut_transparent_colour(c, job.header); fault != 0) return fault;
    const int flags = SPNG_DECODE_PROGRESSIVE | SPNG_DECODE_TRNS;
    if (const int fault = spng_decode_image(c, nullptr, 0, format, flags); fault != 0) return fault;
    const std::size_t pixel = detail::spng_pixel_bytes(format);
    const std::size_t row_bytes = job.stored.width * pixel;
    if (job.header.interlaced) return interlaced_rows(c, job, row_bytes, pixel, part, done, put);

    std::byte* const row = room_for<std::byte>(row_, row_bytes);
    const bool whole_rows = part.width == job.stored.width;
    const std::uint32_t end = part.y + part.height;
    for (std::uint32_t y = 0; y < end; ++y) {
      std::byte* const to = whole_rows && y >= part.y ? straight(y - part.y) : nullptr;
      const int fault = spng_decode_row(c, to != nullptr ? to : row, row_bytes);
      if (fault != 0 && fault != SPNG_EOI) return fault;
      if (y >= part.y) {
        if (to == nullptr) put(y - part.y, row + part.x * pixel);
        ++done;
      }
      if (fault == SPNG_EOI) return end_of(c);
    }
    return SPNG_OK;
  }
  /// The transparent colour has 16 bits in the file, of which only as many count as samples have. libspng
  /// compares all. Source: the specification, 11.3.1.1.
  static int cut_transparent_colour(spng_ctx* c, const detail::png_header& header) {
    if ((header.colour != 0 && header.colour != 2) || header.depth == 16) return SPNG_OK;
    spng_trns transparent{};
    const int fault = spng_get_trns(c, &transparent);
    if (fault != SPNG_OK) return fault == SPNG_ECHUNKAVAIL ? SPNG_OK : fault;
    const auto cut = [&](std::uint16_t& value) {
      value = static_cast<std::uint16_t>(value & ((1u << header.depth) - 1));
    };
    cut(transparent.gray);
    cut(transparent.red);
    cut(transparent.green);
    cut(transparent.blue);
    return spng_set_trns(c, &transparent);
  }
  template <class Put>
  int interlaced_rows(spng_ctx* c, const detail::png_job& job, std::size_t row_bytes, std::size_t pixel,
                      const image_part& part, std::uint32_t& done, Put& put) {
    const std::size_t bytes = row_bytes * job.stored.height;
    std::byte* const all = room_for<std::byte>(whole_, bytes);
    if (job.recover) std::memset(all, 0, bytes);
    int fault = SPNG_OK;
    spng_row_info info{};
    while (fault == SPNG_OK && (fault = spng_get_row_info(c, &info)) == SPNG_OK)
      fault = spng_decode_row(c, all + info.row_num * row_bytes, row_bytes);
    if (fault == SPNG_EOI) fault = end_of(c);
    if (fault != SPNG_OK && !job.recover) return fault;
    for (; done < part.height; ++done) put(done, all + (part.y + done) * row_bytes + part.x * pixel);
    return fault;
  }
  /// Of what follows the last row, only the checksum of the pixels matters.
  static int end_of(spng_ctx* c) {
    return spng_decode_chunks(c) == SPNG_ECHUNK_CRC ? SPNG_ECHUNK_CRC : SPNG_OK;
  }

  detail::allocation_pool memory_;
  buffer row_;
  buffer whole_;
};

/// A PNG that is not decoded yet: a `lazy_image` over bytes that are valid as long as the codec's input.
template <pixel_format Format>
using png_image = detail::stored_image<png_scratch, Format>;

/// PNG, decoded with libspng to pixels of `Format`: gray8, rgb8, rgba8, gray16, rgb16 or rgba16.
///
/// In: any byte element. Out: a `lazy_image` of the size at which the image is shown: the orientation of its
/// EXIF is applied, from the eXIf chunk or from a text as ImageMagick writes it, or otherwise that of its
/// XMP, unless `orient` is false. Nothing but the chunks' headers is looked at until the
/// image is read, and then only the rows down to the last one that is needed; of interlaced images, all.
/// Every colour type and depth becomes every format: palettes and gray become colours; colours become gray
/// by Pillow's luma, (19595 R + 38470 G + 7471 B + 32768) >> 16; 16 bits become 8 by dropping the lower 8,
/// as libspng does; 8 bits become 16 times 257. A tRNS chunk is alpha for rgba8 and rgba16. For the other
/// formats alpha is dropped, and the colours under it stay as they are, as with Pillow's `convert("RGB")`.
/// Gamma, profiles and texts are ignored; damaged ones do no harm.
/// Kind: pointwise, keeps all guarantees. Cost: libspng's and zlib's; no allocation once the scratch has
/// grown, because their memory is kept in the scratch. Thread-safe, with a scratch per thread.
/// Throws `errc::limit` for sizes beyond `limits`, before it allocates anything; `errc::format` for what is
/// no PNG, damaged or truncated; `errc::checksum` for chunks of pixels, palettes and headers whose checksum
/// is wrong. Damage below the last row that is needed is not noticed. With `recover`, rows that are missing
/// become zero (black, transparent), wrong checksums are ignored, and each such image that is read is a
/// warning in the run's counters.
///
///     auto depths = directory("depths") | decode<png_as<gray16>>(png_as<gray16>{.limits = {.width = 4096}});
template <pixel_format Format>
struct png_as {
  image_limits limits{};  ///< of the stored image, and of the bytes of its pixels in `Format`
  bool orient = true;     ///< whether the orientation is applied
  bool recover = false;   ///< whether a damaged image becomes what is left of it

  static constexpr std::string_view codec_name = "png";
  static constexpr std::string_view extensions[] = {"png"};
  static constexpr bool one_at_a_time = true;
  using scratch = png_scratch;

  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept { return detail::begins_as_png(bytes); }

  template <byte_element Bytes>
  [[nodiscard]] png_image<Format> decode(const Bytes& in, scratch& s) const {
    const bytes_view bytes = as_bytes(in);
    s.next();
    const detail::png_header header = detail::read_png_header(bytes);
    constexpr std::size_t pixel_bytes = sizeof(typename Format::value_type) * Format::channels;
    const std::size_t kept_bytes = detail::spng_pixel_bytes(detail::spng_format_for<Format>(header));
    detail::check_image_size(header.size, header.interlaced ? std::max(pixel_bytes, kept_bytes) : pixel_bytes,
                             limits, codec_name);
    const orientation turn = orient ? s.turn_of(bytes) : orientation::upright;
    return {s, {{bytes, header.size, turn, recover}, header, limits}};
  }
};

/// PNG to RGB, 8 bits each.
using png = png_as<rgb8>;

}  // namespace penstock::inline v0_1
