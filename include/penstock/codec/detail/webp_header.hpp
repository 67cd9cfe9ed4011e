// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/image/orientation.hpp>

/// The facts in a WebP's chunks that do not need a decoder. Source: RFC 9649.
namespace penstock::inline v0_1::detail {

/// Whether the bytes begin as a RIFF file of the kind WEBP.
[[nodiscard]] bool begins_as_webp(bytes_view bytes) noexcept;

/// The orientation in the first EXIF chunk, with or without the `Exif\0\0` that some programs put before the
/// TIFF header; `upright` without one.
[[nodiscard]] orientation webp_orientation(bytes_view encoded) noexcept;

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/webp_header.ipp>
#endif
