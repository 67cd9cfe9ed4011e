// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/name.hpp>
#include <penstock/image/pixels.hpp>

/// Declares the codecs of optional components. A program that names one without its header has an incomplete
/// type, and its compiler shows the line from here.
namespace penstock::inline v0_1 {

struct zstd;  // penstock: write #include <penstock/codec/zstd.hpp>, and link penstock::zstd
struct gzip;  // penstock: write #include <penstock/codec/gzip.hpp>, and link penstock::gzip
struct lz4;   // penstock: write #include <penstock/codec/lz4.hpp>, and link penstock::lz4
struct json;  // penstock: write #include <penstock/codec/json.hpp>, and link penstock::json
template <fixed_string Name, class T>
struct json_field;  // penstock: write #include <penstock/codec/json_field.hpp>, and link penstock::simdjson
template <class T>
struct npz;  // penstock: write #include <penstock/codec/npz.hpp>, and link penstock::gzip
template <pixel_format Format>
struct jpeg_as;  // penstock: write #include <penstock/codec/jpeg.hpp>, and link penstock::jpeg
template <pixel_format Format>
struct png_as;  // penstock: write #include <penstock/codec/png.hpp>, and link penstock::png
template <pixel_format Format>
struct webp_as;  // penstock: write #include <penstock/codec/webp.hpp>, and link penstock::webp
template <pixel_format Format>
struct gif_as;  // penstock: write #include <penstock/codec/gif.hpp>, and link penstock::gif
template <pixel_format Format>
struct avif_as;  // penstock: write #include <penstock/codec/avif.hpp>, and link penstock::avif
template <pixel_format Format>
struct tiff_as;  // penstock: write #include <penstock/codec/tiff.hpp>, and link penstock::tiff
struct audio;    // penstock: write #include <penstock/codec/audio.hpp>, and link penstock::audio
struct video;    // penstock: write #include <penstock/codec/video.hpp>, and link penstock::video
template <class Token>
class bpe_as;  // penstock: write #include <penstock/codec/bpe.hpp>, and link penstock::pcre2
template <class Token>
class spm_as;  // penstock: write #include <penstock/codec/sentencepiece.hpp>, and link it
using jpeg = jpeg_as<rgb8>;
using png = png_as<rgb8>;
using webp = webp_as<rgb8>;
using gif = gif_as<rgb8>;
using avif = avif_as<rgb8>;
using tiff = tiff_as<rgb8>;
using bpe = bpe_as<std::uint32_t>;
using spm = spm_as<std::uint32_t>;

}  // namespace penstock::inline v0_1
