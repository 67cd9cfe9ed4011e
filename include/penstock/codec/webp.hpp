// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<webp/decode.h>)
#error "penstock/codec/webp.hpp needs libwebp: link penstock::webp"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/detail/stored_image.hpp>
#include <penstock/core/error.hpp>
#include <penstock/image/orientation.hpp>

#include <webp/decode.h>

#include <algorithm>
#include <memory>
#include <new>

namespace penstock::inline v0_1 {

namespace detail {

[[nodiscard]] inline bool begins_as_webp(bytes_view bytes) noexcept {
  const std::string_view text = text_of(bytes);
  return text.size() >= 12 && text.starts_with("RIFF") && text.substr(8, 4) == "WEBP";
}

/// Goes through the chunks of a file. `see(type, data, cut)` gets what there is of a chunk, and whether that
/// is less than all of it; the walk ends when it returns true, and at a chunk that is cut. Source: RFC 9649.
template <class See>
void walk_webp(bytes_view encoded, const See& see) {
  constexpr std::size_t file_header = 12, chunk_header = 8;
  bytes_view rest = encoded.subspan(std::min(encoded.size(), file_header));
  while (rest.size() >= chunk_header) {
    const std::string_view type = text_of(rest.first(4));
    const std::size_t length = load_little<std::uint32_t>(rest.data() + 4);
    rest = rest.subspan(chunk_header);
    const bool cut = length > rest.size();
    if (see(type, rest.first(std::min(length, rest.size())), cut) || cut) return;
    rest = rest.subspan(std::min(rest.size(), length + length % 2));
  }
}

/// The orientation in the EXIF chunk, or otherwise in the XMP chunk; `upright` without one.
[[nodiscard]] inline orientation webp_orientation(bytes_view encoded) noexcept {
  metadata_orientation turn;
  walk_webp(encoded, [&](std::string_view type, bytes_view data, bool cut) {
    if (type == "EXIF" && !cut) turn.exif(data);
    if (type == "XMP " && !cut && !data.empty()) turn.xmp(text_of(data));
    return false;
  });
  return turn.found();
}

struct webp_frame {
  bytes_view data;  ///< its chunks of pixels, which libwebp decodes as an image
  image_part at;    ///< its place on the canvas
};
/// Throws `errc::format` if there is no frame, or it is cut off or not within the canvas. With `recover`,
/// what is left of the last chunk counts.
[[nodiscard]] inline webp_frame first_webp_frame(bytes_view encoded, const image_size& canvas, bool recover) {
  constexpr std::size_t frame_header = 16;
  const auto number = [](bytes_view bytes, std::size_t at) {
    return std::to_integer<std::uint32_t>(bytes[at]) | std::to_integer<std::uint32_t>(bytes[at + 1]) << 8 |
           std::to_integer<std::uint32_t>(bytes[at + 2]) << 16;
  };
  webp_frame found;
  walk_webp(encoded, [&](std::string_view type, bytes_view data, bool cut) {
    if (type != "ANMF" || data.size() < frame_header || (cut && !recover)) return false;
    found = {data.subspan(frame_header),
             {number(data, 0) * 2, number(data, 3) * 2, number(data, 6) + 1, number(data, 9) + 1}};
    return true;
  });
  if (found.at.width == 0)
    throw error(errc::format, "the webp image is truncated: it ends before its first frame does");
  if (!found.at.within(canvas))
    throw error(errc::format, "the webp image is damaged: its first frame is not within its canvas");
  return found;
}

}  // namespace detail

/// The per-worker memory of `webp`: pixels. libwebp's own memory cannot be kept.
class webp_scratch : public detail::decoder_scratch<"webp"> {
 public:
  /// The stored image is the canvas.
  struct job_type : detail::image_job {
    detail::webp_frame frame;
  };

  /// Decodes a part of the canvas, with a margin of two pixels.
  template <pixel_format Format>
  [[nodiscard]] auto decode(const job_type& what, const image_part& part) {
    if constexpr (Format::channels != 1) {
      return on_canvas<Format::channels>(what, part);
    } else {
      const auto colours = on_canvas<3>(what, part);
      auto* to = room_for<std::uint8_t>(image.pixels, std::size_t{part.width} * part.height);
      const pixel_view<std::uint8_t, 1> gray(to, part.size());
      for (std::size_t y = 0; y < part.height; ++y)
        for (std::size_t x = 0; x < part.width; ++x, ++to) {
          const std::uint8_t* const pixel = colours.at(x, y);
          detail::put_pixel<1>(pixel[0], pixel[1], pixel[2], std::uint8_t{255}, to);
        }
      return gray;
    }
  }

  /// Whether libwebp got no memory. An abort by its user, of whom it has none here, is what it calls a lack
  /// of memory for the rows of interpolated chroma. Source: libwebp 1.2.4, io_dec.c, CustomSetup.
  static bool lacked_memory(VP8StatusCode fault) noexcept {
    return fault == VP8_STATUS_OUT_OF_MEMORY || fault == VP8_STATUS_USER_ABORT;
  }
  /// Throws for an error of libwebp.
  [[noreturn, gnu::cold]] static void refuse(VP8StatusCode fault) {
    switch (fault) {
      case VP8_STATUS_OUT_OF_MEMORY:
      case VP8_STATUS_USER_ABORT:
        throw std::bad_alloc();
      case VP8_STATUS_NOT_ENOUGH_DATA:
      case VP8_STATUS_SUSPENDED:
        detail::refuse_truncated("webp");
      case VP8_STATUS_UNSUPPORTED_FEATURE:
        throw error(errc::format, "the webp image uses a feature that libwebp does not have");
      default:
        throw error(errc::format, "the webp image is damaged");
    }
  }
  /// The size of an encoded image and what it has.
  [[nodiscard]] static WebPBitstreamFeatures features_of(bytes_view encoded) {
    WebPBitstreamFeatures found;
    const VP8StatusCode fault =
        WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(encoded.data()), encoded.size(), &found);
    if (fault != VP8_STATUS_OK) refuse(fault);
    return found;
  }

 private:
  /// Decodes a part of a canvas, on which the frame is and zeros (transparent, black) are around it.
  template <std::size_t Channels>
  [[nodiscard]] pixel_view<std::uint8_t, Channels> on_canvas(const job_type& what, const image_part& part) {
    const image_part& at = what.frame.at;
    if (at.size() == what.stored) return in_frame<Channels>(what, part);
    const std::size_t pitch = part.width * Channels;
    auto* const pixels = room_for<std::uint8_t>(canvas_, pitch * part.height);
    std::memset(pixels, 0, pitch * part.height);
    if (const image_part hit = detail::common_part(part, at); hit.width != 0) {
      const auto shown = in_frame<Channels>(what, {hit.x - at.x, hit.y - at.y, hit.width, hit.height});
      for (std::uint32_t y = 0; y < hit.height; ++y)
        std::memcpy(pixels + (hit.y - part.y + y) * pitch + (hit.x - part.x) * Channels, shown.row(y),
                    hit.width * Channels);
    }
    return {pixels, part.size()};
  }
  /// Decodes a part of the frame to RGB or RGBA. Returns a view of it, valid until the next call.
  /// With `recover` it decodes the whole frame, so that what is left of it does not depend on the part.
  template <std::size_t Channels>
  [[nodiscard]] pixel_view<std::uint8_t, Channels> in_frame(const job_type& what, const image_part& part) {
    const bytes_view encoded = what.frame.data;
    const image_size stored = what.frame.at.size();
    image_part wider = what.recover ? whole_of(stored) : with_margin(part, stored);
    if constexpr (Channels == 4) {
      // libwebp 1.2 gets rows of filtered alpha wrong if those above are cropped.
      wider.height += wider.y;
      wider.y = 0;
    }
    const std::size_t pitch = wider.width * Channels;
    auto* const pixels = room_for<std::uint8_t>(decoded_, pitch * wider.height);
    WebPDecoderConfig config = into(pixels, pitch, pitch * wider.height, Channels);
    if (wider.size() != stored) {
      config.options.use_cropping = 1;
      config.options.crop_left = static_cast<int>(wider.x);
      config.options.crop_top = static_cast<int>(wider.y);
      config.options.crop_width = static_cast<int>(wider.width);
      config.options.crop_height = static_cast<int>(wider.height);
    }
    const VP8StatusCode fault =
        WebPDecode(reinterpret_cast<const std::uint8_t*>(encoded.data()), encoded.size(), &config);
    const pixel_view<std::uint8_t, Channels> view(pixels, wider.size(), pitch);
    if (fault == VP8_STATUS_OK)
      return view.part({part.x - wider.x, part.y - wider.y, part.width, part.height});
    if (lacked_memory(fault) || !what.recover) refuse(fault);
    return decode_what_is_left<Channels>(encoded, stored, fault).part(part);
  }

  static WebPDecoderConfig into(std::uint8_t* pixels, std::size_t pitch, std::size_t bytes,
                                std::size_t channels) {
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0)
      throw error(errc::argument, "webp: the program runs with another libwebp than it was built with");
    config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = pixels;
    config.output.u.RGBA.stride = static_cast<int>(pitch);
    config.output.u.RGBA.size = bytes;
    return config;
  }

  /// The part that must be decoded for its pixels to be those of the whole image: lossy images have a chroma
  /// for two pixels in each direction, and the colour of a pixel takes those of its neighbours into account.
  [[nodiscard]] static image_part with_margin(const image_part& part, const image_size& stored) noexcept {
    const auto begin = [](std::uint32_t at) { return (at < 2 ? 0 : at - 2) & ~1u; };
    const auto end = [](std::uint32_t at, std::uint32_t limit) {
      return std::min(limit, ((at + 1) & ~1u) + 2);
    };
    image_part wider;
    wider.x = begin(part.x);
    wider.y = begin(part.y);
    wider.width = end(part.x + part.width, stored.width) - wider.x;
    wider.height = end(part.y + part.height, stored.height) - wider.y;
    return wider;
  }

  /// All of the image, as far as it can be decoded; zeros below. Throws for `why` if there is no row.
  template <std::size_t Channels>
  [[nodiscard, gnu::cold]] pixel_view<std::uint8_t, Channels> decode_what_is_left(bytes_view encoded,
                                                                                  const image_size& stored,
                                                                                  VP8StatusCode why) {
    const std::size_t pitch = stored.width * Channels, bytes = pitch * stored.height;
    auto* const pixels = room_for<std::uint8_t>(decoded_, bytes);
    std::memset(pixels, 0, bytes);
    WebPDecoderConfig config = into(pixels, pitch, bytes, Channels);
    const std::unique_ptr<WebPIDecoder, detail::freed_by<WebPIDelete>> decoder(
        WebPINewDecoder(&config.output));
    if (!decoder) throw std::bad_alloc();
    // Here an abort by the user can be damaged alpha, too.
    const VP8StatusCode fault =
        WebPIUpdate(decoder.get(), reinterpret_cast<const std::uint8_t*>(encoded.data()), encoded.size());
    if (fault == VP8_STATUS_OUT_OF_MEMORY) throw std::bad_alloc();
    int rows = 0;
    if (WebPIDecGetRGB(decoder.get(), &rows, nullptr, nullptr, nullptr) == nullptr || rows <= 0) refuse(why);
    damage();
    return {pixels, stored};
  }

  buffer decoded_, canvas_;
};

/// A WebP that is not decoded yet: a `lazy_image` over bytes that are valid as long as the codec's input.
template <pixel_format Format>
using webp_image = detail::stored_image<webp_scratch, Format>;

/// WebP, lossy and lossless, decoded with libwebp to pixels of `Format`: gray8, rgb8 or rgba8.
///
/// In: any byte element. Out: a `lazy_image` of the size at which the image is shown: the orientation of its
/// EXIF chunk, or otherwise of its XMP chunk, is applied, unless `orient` is false. Nothing is decoded until
/// the image is read, and then only the part that is needed and two pixels around it, with which the part
/// equals that of the whole image; of lossless images and with alpha, the rows above it too. Alpha is dropped
/// for rgb8 and gray8, and the colours under it stay as they are, as with Pillow's `convert("RGB")`; gray is
/// Pillow's luma of the colours. Profiles are ignored.
/// Kind: pointwise, keeps all guarantees. Cost: libwebp's, which allocates memory for each image, with
/// malloc: it has no way to be given any. Penstock itself allocates nothing once the scratch has grown.
/// Thread-safe, with a scratch per thread.
/// Throws `errc::limit` for sizes beyond `limits`, before anything is allocated; `errc::format` for what is
/// no WebP, animated (unless `first_frame`), damaged or truncated. With `recover`, images are decoded whole,
/// also for a part; rows that are missing become zero (black, transparent); each such image that is read is a
/// warning in the run's counters; and one of which no row can be decoded is still an error.
///
///     auto gray = directory("pictures") | decode<webp_as<gray8>>(webp_as<gray8>{.orient = false});
template <pixel_format Format>
struct webp_as {
  static_assert(std::same_as<typename Format::value_type, std::uint8_t>,
                "penstock: webp images have 8 bits a channel; write webp_as<gray8>, <rgb8> or <rgba8>");

  image_limits limits{};  ///< of the stored image, and of the bytes of its pixels in `Format`
  bool orient = true;     ///< whether the orientation is applied
  bool recover = false;   ///< whether a damaged image becomes what is left of it
  /// Whether an animation becomes its first frame, on a canvas that is transparent (black) around it;
  /// otherwise it is an error.
  bool first_frame = false;

  static constexpr std::string_view codec_name = "webp";
  static constexpr std::string_view extensions[] = {"webp"};
  static constexpr bool one_at_a_time = true;
  using scratch = webp_scratch;

  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept { return detail::begins_as_webp(bytes); }

  template <byte_element Bytes>
  [[nodiscard]] webp_image<Format> decode(const Bytes& in, scratch& s) const {
    const bytes_view bytes = as_bytes(in);
    detail::begin_image<webp_as>(bytes, s);
    const WebPBitstreamFeatures features = s.features_of(bytes);
    const image_size size{static_cast<std::uint32_t>(features.width),
                          static_cast<std::uint32_t>(features.height)};
    detail::check_image_size(size, Format::channels, limits, codec_name);
    detail::webp_frame frame{bytes, whole_of(size)};
    if (features.has_animation != 0) {
      if (!first_frame) detail::refuse_animation(codec_name);
      frame = detail::first_webp_frame(bytes, size, recover);
      const WebPBitstreamFeatures of_frame = s.features_of(frame.data);
      if (static_cast<std::uint32_t>(of_frame.width) != frame.at.width ||
          static_cast<std::uint32_t>(of_frame.height) != frame.at.height)
        throw error(errc::format, "the webp image is damaged: its first frame has another size than it says");
    }
    const orientation turn = orient ? detail::webp_orientation(bytes) : orientation::upright;
    return {s, {{bytes, size, turn, recover}, frame}};
  }
};

/// WebP to RGB, 8 bits each.
using webp = webp_as<rgb8>;

}  // namespace penstock::inline v0_1
