// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/detail/lazy_codec.hpp>
#include <penstock/image/image_limits.hpp>
#include <penstock/image/lazy_image.hpp>
#include <penstock/image/orientation.hpp>

namespace penstock::inline v0_1::detail {

/// Begins another image, and refuses bytes that are none of the codec's.
template <class Codec>
void begin_image(bytes_view file, damage_count& counts) {
  counts.next();
  if (file.empty())
    throw error(errc::format, {"the ", Codec::codec_name, " image is empty: it has no bytes"});
  if (!Codec::recognises(file))
    throw error(errc::format, {"this is no ", Codec::codec_name, " image: it does not begin as one"})
        .at_offset(0);
}
[[noreturn, gnu::cold]] inline void refuse_animation(std::string_view codec) {
  throw error(errc::format,
              {"the ", codec, " image is animated; write {.first_frame = true} for its first frame"});
}
[[noreturn, gnu::cold]] inline void refuse_truncated(std::string_view codec) {
  throw error(errc::format, {"the ", codec, " image is truncated: it ends before its last pixel"});
}

[[noreturn, gnu::cold]] inline void refuse_part(const image_part& part, const image_size& size) {
  throw error(errc::argument, {"the part ", part.width, " x ", part.height, " at (", part.x, ", ", part.y,
                               ") does not lie within the image of ", size.width, " x ", size.height});
}

/// The luma of a colour of 8 or 16 bits a channel: ITU-R BT.601's weights of 0.299, 0.587 and 0.114 in 16
/// bits, rounded. Source: Pillow 9.4, src/libImaging/Convert.c, L24.
[[nodiscard]] constexpr std::uint32_t luma(std::uint32_t red, std::uint32_t green,
                                           std::uint32_t blue) noexcept {
  return (red * 19'595u + green * 38'470u + blue * 7'471u + 0x8000u) >> 16;
}
template <std::size_t Channels, class T>
constexpr void put_pixel(T red, T green, T blue, T alpha, T* to) noexcept {
  if constexpr (Channels == 1) {
    to[0] = static_cast<T>(luma(red, green, blue));
  } else {
    to[0] = red, to[1] = green, to[2] = blue;
    if constexpr (Channels == 4) to[3] = alpha;
  }
}

struct image_job {
  bytes_view file;
  image_size stored;
  orientation turn = orientation::upright;
  bool recover = false;
};

/// What the scratch of each codec has. A job is an `image_job`, or what is derived from one.
template <fixed_string Codec, class Job = image_job>
class decoder_scratch : public damage_count {
 public:
  static constexpr std::string_view codec = name_of<Codec>::value;
  using job_type = Job;

  image_scratch image;  ///< room for pixels
};

/// A lazy image of stored pixels that are turned when they are shown. `Scratch` is a codec's:
///   codec                          the codec's name
///   image                          an `image_scratch`
///   job_type                       an `image_job`, or what is derived from one; if it has `max_halvings()` and
///                                  `halved(times, where)`, the image is a `halvable_image`
///   decode<Format>(job, part)      a view of a part of the stored image, valid until the next call, which may lie in
///                                  `image.pixels`
///   draw<Format>(job, part, into)  optional: decodes a part straight to its place, or returns false
template <class Scratch, pixel_format Format>
class stored_image
    : public image_expression<stored_image<Scratch, Format>, typename Format::value_type, Format::channels> {
  using base = image_expression<stored_image, typename Format::value_type, Format::channels>;
  using job = typename Scratch::job_type;

 public:
  using typename base::value_type;
  using typename base::view_type;

  stored_image(Scratch& scratch, const job& what) noexcept : scratch_(&scratch), job_(what) {}

  /// As shown: after the orientation.
  [[nodiscard]] image_size size() const noexcept { return oriented(job_.stored, job_.turn); }
  [[nodiscard]] image_scratch& memory() const noexcept { return scratch_->image; }

  [[nodiscard]] unsigned max_halvings() const noexcept
    requires requires(const job& what) { what.max_halvings(); }
  {
    return job_.max_halvings();
  }
  [[nodiscard]] stored_image halved(unsigned times, real_part& where) const noexcept
    requires requires(const job& what) { what.halved(times, where); }
  {
    return {*scratch_, job_.halved(times, where)};
  }

  [[nodiscard]] view_type read(const image_part& part) const {
    check(part);
    if (part.width == 0 || part.height == 0) return {};
    const view_type view = decode(part);
    if (job_.turn == orientation::upright) return view;
    const extents shape(std::size_t{part.height}, std::size_t{part.width}, Format::channels);
    value_type* const turned =
        room_for<value_type>(memory().work, std::size_t{part.width} * part.height * Format::channels);
    orient_pixels(view, job_.turn, destination<value_type>(turned, shape));
    return {turned, part.size()};
  }
  void draw(const image_part& part, const destination<value_type>& into) const {
    check(part);
    if (part.width == 0 || part.height == 0) return;
    if (job_.turn != orientation::upright) return orient_pixels(decode(part), job_.turn, into);
    if constexpr (requires { scratch_->template draw<Format>(job_, part, into); })
      if (naming_codec(Scratch::codec, [&] { return scratch_->template draw<Format>(job_, part, into); }))
        return;
    copy_pixels(decode(part), into);
  }

 private:
  void check(const image_part& part) const {
    if (!part.within(size())) [[unlikely]]
      refuse_part(part, size());
  }
  [[nodiscard]] view_type decode(const image_part& shown) const {
    const image_part part = stored_part(shown, job_.stored, job_.turn);
    return naming_codec(Scratch::codec, [&] { return scratch_->template decode<Format>(job_, part); });
  }

  Scratch* scratch_;
  job job_;
};

}  // namespace penstock::inline v0_1::detail
