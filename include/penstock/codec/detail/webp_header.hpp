// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/image/orientation.hpp>
#include <penstock/image/pixels.hpp>

/// The facts in a WebP's chunks that do not need a decoder. Source: RFC 9649.
namespace penstock::inline v0_1::detail {

/// Whether the bytes begin as a RIFF file of the kind WEBP.
[[nodiscard]] bool begins_as_webp(bytes_view bytes) noexcept;

/// The orientation in the EXIF chunk, or otherwise in the XMP chunk; `upright` without one.
[[nodiscard]] orientation webp_orientation(bytes_view webp) noexcept;

/// The first frame of an animation.
struct webp_frame {
  bytes_view data;  ///< its chunks of pixels, which libwebp decodes as an image
  image_part at;    ///< its place on the canvas
};
/// Throws `errc::format` if there is no frame, or it is cut off or not within the canvas. With `recover`,
/// what is left of the last chunk counts.
[[nodiscard]] webp_frame first_webp_frame(bytes_view webp, const image_size& canvas, bool recover);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/webp_header.ipp>
#endif
