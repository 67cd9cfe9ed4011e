// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/error.hpp>
#include <penstock/image/lazy_image.hpp>

namespace penstock::inline v0_1 {

/// Pixels without a header: a `lazy_image` over bytes that are valid as long as the codec's input.
template <pixel_format Format>
class raw_image : public image_expression<raw_image<Format>, typename Format::value_type, Format::channels> {
  using base = image_expression<raw_image, typename Format::value_type, Format::channels>;
  static constexpr std::size_t channels_ = Format::channels;

 public:
  using typename base::value_type;
  using typename base::view_type;

  raw_image(image_scratch& scratch, bytes_view bytes, const image_size& size, bool planar) noexcept
      : scratch_(&scratch), bytes_(bytes.data()), size_(size), planar_(planar && channels_ > 1) {}

  [[nodiscard]] image_size size() const noexcept { return size_; }
  [[nodiscard]] image_scratch& memory() const noexcept { return *scratch_; }

  /// The pixels where they are; copied to the scratch if they are planar, or not aligned for their type.
  [[nodiscard]] view_type read(const image_part& part) const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(bytes_) % alignof(value_type) == 0;
    if (!planar_ && aligned) return view_type(reinterpret_cast<const value_type*>(bytes_), size_).part(part);
    const std::size_t values = std::size_t{part.width} * part.height * channels_;
    value_type* const to = room_for<value_type>(scratch_->pixels, values);
    const extents shape(std::size_t{part.height}, std::size_t{part.width}, channels_);
    copy(part, destination<value_type>(to, shape));
    return {to, part.size()};
  }
  void draw(const image_part& part, const destination<value_type>& into) const { copy(part, into); }

 private:
  [[nodiscard]] std::size_t offset(std::size_t x, std::size_t y) const noexcept {
    return (y * size_.width + x) * (planar_ ? 1 : channels_) * sizeof(value_type);
  }
  // Neither side need be aligned or interleaved: a run of equal layout is one memcpy.
  void copy(const image_part& part, const destination<value_type>& into) const noexcept {
    const element_strides strides = into.strides();
    const std::size_t run_channels = planar_ ? 1 : channels_;
    const std::size_t plane = std::size_t{size_.width} * size_.height * sizeof(value_type);
    const bool runs =
        planar_ ? strides[1] == 1 : strides[1] == static_cast<std::int64_t>(channels_) && strides[2] == 1;
    for (std::size_t p = 0; p < (planar_ ? channels_ : 1); ++p)
      for (std::size_t y = 0; y < part.height; ++y) {
        const std::byte* input = bytes_ + p * plane + offset(part.x, part.y + y);
        value_type* row = into.data() + static_cast<std::int64_t>(y) * strides[0] +
                          static_cast<std::int64_t>(p) * strides[2];
        if (runs) {
          if (part.width != 0) std::memcpy(row, input, part.width * run_channels * sizeof(value_type));
          continue;
        }
        for (std::size_t x = 0; x < part.width; ++x, row += strides[1])
          for (std::size_t c = 0; c < run_channels; ++c, input += sizeof(value_type))
            std::memcpy(row + static_cast<std::int64_t>(c) * strides[2], input, sizeof(value_type));
      }
  }

  image_scratch* scratch_;
  const std::byte* bytes_;
  image_size size_;
  bool planar_;
};

/// Raw images of a known size: pixels of `Format` and nothing else, in rows from the top; 16 bits in the
/// order of bytes of this machine.
///
/// In: any byte element. Out: a `lazy_image`, without a copy.
/// Kind: pointwise, keeps all guarantees. Cost: none by itself; no allocation once the scratch has grown.
/// Thread-safe, with a scratch per thread.
/// Throws `errc::shape` for another number of bytes than the size has, and `errc::argument` if no size was
/// given.
///
///     auto digits = directory("raw") | decode<pixels<gray8>>(pixels<gray8>{.width = 28, .height = 28});
template <pixel_format Format>
struct pixels {
  std::uint32_t width = 0;   ///< in pixels
  std::uint32_t height = 0;  ///< in pixels
  bool planar = false;       ///< whether all of the first channel comes first, as in CIFAR's files

  static constexpr std::string_view codec_name = "pixels";
  using scratch = image_scratch;

  template <byte_element Bytes>
  [[nodiscard]] raw_image<Format> decode(const Bytes& in, scratch& s) const {
    const bytes_view bytes = as_bytes(in);
    if (width == 0 || height == 0)
      throw error(errc::argument, {"pixels: the size of the images is not given; write pixels<",
                                   Format::format_name, ">{.width = ..., .height = ...}"});
    // Cannot overflow by much: compares by division.
    constexpr std::size_t pixel_bytes = sizeof(typename Format::value_type) * Format::channels;
    const std::uint64_t count = std::uint64_t{width} * height;
    if (bytes.size() / pixel_bytes != count || bytes.size() % pixel_bytes != 0)
      throw error(errc::shape, {"the raw image has ", bytes.size(), " bytes, and ", width, " x ", height,
                                " pixels of ", Format::format_name, " are ", count, " times ", pixel_bytes});
    return {s, bytes, {width, height}, planar};
  }
};

}  // namespace penstock::inline v0_1
