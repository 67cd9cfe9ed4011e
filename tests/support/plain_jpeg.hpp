// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/image/pixels.hpp>

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include <jpeglib.h>

/// libjpeg used plainly: whole images, with the library's own sources, memory and defaults.
namespace plain_jpeg {

struct trap {
  jpeg_error_mgr errors;
  std::jmp_buf jump;
};
inline jpeg_error_mgr* arm(trap& t) {
  jpeg_std_error(&t.errors);
  t.errors.error_exit = [](j_common_ptr c) { std::longjmp(reinterpret_cast<trap*>(c->err)->jump, 1); };
  t.errors.output_message = [](j_common_ptr) {};
  return &t.errors;
}

struct image {
  penstock::image_size size;
  std::vector<std::uint8_t> pixels;
  long warnings = 0;
};

/// Everything that must outlive a jump.
struct decoding {
  trap errors{};
  jpeg_decompress_struct info{};
  image made;
  bool four = false;
};
inline bool decode_into(decoding& d, penstock::bytes_view file, std::size_t channels, unsigned divisor) {
  if (setjmp(d.errors.jump) != 0) return false;
  jpeg_mem_src(&d.info, reinterpret_cast<const unsigned char*>(file.data()),
               static_cast<unsigned long>(file.size()));
  jpeg_read_header(&d.info, TRUE);
  d.info.scale_denom = divisor;
  d.four = d.info.num_components == 4;
  d.info.out_color_space = d.four          ? JCS_CMYK
                           : channels == 1 ? JCS_GRAYSCALE
                           : channels == 3 ? JCS_RGB
                                           : JCS_EXT_RGBA;
  if (std::size_t{d.info.image_width} * d.info.image_height > 100'000'000) return false;
  jpeg_start_decompress(&d.info);
  d.made.size = {d.info.output_width, d.info.output_height};
  const std::size_t row = d.info.output_width * static_cast<std::size_t>(d.info.output_components);
  d.made.pixels.resize(row * d.info.output_height);
  while (d.info.output_scanline < d.info.output_height) {
    JSAMPROW at = d.made.pixels.data() + d.info.output_scanline * row;
    jpeg_read_scanlines(&d.info, &at, 1);
  }
  d.made.warnings = d.info.err->num_warnings;
  return true;
}
/// What Pillow makes of inverted CMYK, in words of arithmetic rather than its code.
inline std::vector<std::uint8_t> from_cmyk(const std::vector<std::uint8_t>& cmyk, std::size_t channels) {
  std::vector<std::uint8_t> made;
  for (std::size_t i = 0; i < cmyk.size(); i += 4) {
    unsigned rgb[3];
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned product = (255u - cmyk[i + c]) * cmyk[i + 3];
      rgb[c] = cmyk[i + 3] - (2 * product + 255) / 510;  // rounded
    }
    if (channels == 1)
      made.push_back(
          static_cast<std::uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 32768) / 65536));
    else
      for (const unsigned value : rgb) made.push_back(static_cast<std::uint8_t>(value));
    if (channels == 4) made.push_back(255);
  }
  return made;
}

/// The whole image, as stored, with its sides divided by 1, 2, 4 or 8; nothing if the library gives up.
inline std::optional<image> decode(penstock::bytes_view file, std::size_t channels, unsigned divisor = 1) {
  if (file.empty()) return std::nullopt;
  decoding d;
  d.info.err = arm(d.errors);
  jpeg_create_decompress(&d.info);
  const bool whole = decode_into(d, file, channels, divisor);
  jpeg_destroy_decompress(&d.info);
  if (!whole) return std::nullopt;
  if (d.four) d.made.pixels = from_cmyk(d.made.pixels, channels);
  return std::move(d.made);
}

/// A picture with edges and colours everywhere.
inline std::vector<std::uint8_t> picture(const penstock::image_size& size, std::size_t channels) {
  std::vector<std::uint8_t> made;
  std::uint32_t noise = 12345;
  for (std::uint32_t y = 0; y < size.height; ++y)
    for (std::uint32_t x = 0; x < size.width; ++x)
      for (std::size_t c = 0; c < channels; ++c) {
        noise = noise * 1664525 + 1013904223;
        const bool edge = ((x / 7 + y / 5) & (c + 1)) != 0;
        made.push_back(static_cast<std::uint8_t>((edge ? 160 : 20) + (x * (c + 1) + y) % 50 + (noise >> 28)));
      }
  return made;
}

struct sampling {
  int h, v;
};
struct kind {
  std::vector<sampling> factors;  ///< one for each channel
  bool progressive = false, arithmetic = false;
  bool separate = false;  ///< a scan for each channel
  bool rgb = false;       ///< channels as they are: RGB, CMYK
  unsigned restart = 0;
};

struct encoding {
  trap errors{};
  jpeg_compress_struct info{};
  unsigned char* memory = nullptr;
  unsigned long bytes = 0;
  jpeg_scan_info scans[4]{};
};
inline bool encode_into(encoding& e, const penstock::image_size& size, const kind& k,
                        const std::uint8_t* pixels) {
  if (setjmp(e.errors.jump) != 0) return false;
  jpeg_compress_struct& c = e.info;
  const int channels = static_cast<int>(k.factors.size());
  jpeg_mem_dest(&c, &e.memory, &e.bytes);
  c.image_width = size.width;
  c.image_height = size.height;
  c.input_components = channels;
  c.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&c);
  if (channels == 4) jpeg_set_colorspace(&c, k.rgb ? JCS_CMYK : JCS_YCCK);
  if (channels == 3 && k.rgb) jpeg_set_colorspace(&c, JCS_RGB);
  for (int i = 0; i < channels; ++i) {
    c.comp_info[i].h_samp_factor = k.factors[static_cast<std::size_t>(i)].h;
    c.comp_info[i].v_samp_factor = k.factors[static_cast<std::size_t>(i)].v;
    e.scans[i] = {1, {i, 0, 0, 0}, 0, 63, 0, 0};
  }
  c.arith_code = k.arithmetic ? TRUE : FALSE;
  c.restart_interval = k.restart;
  if (k.progressive) jpeg_simple_progression(&c);
  if (k.separate) {
    c.scan_info = e.scans;
    c.num_scans = channels;
  }
  jpeg_start_compress(&c, TRUE);
  while (c.next_scanline < c.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels + std::size_t{c.next_scanline} * size.width * k.factors.size());
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  return true;
}

/// A file of this kind with `picture`; empty if the library cannot.
inline std::vector<std::byte> encode(const penstock::image_size& size, const kind& k) {
  const std::vector<std::uint8_t> pixels = picture(size, k.factors.size());
  encoding e;
  e.info.err = arm(e.errors);
  jpeg_create_compress(&e.info);
  const bool whole = encode_into(e, size, k, pixels.data());
  jpeg_destroy_compress(&e.info);
  std::vector<std::byte> file;
  if (whole) {
    file.resize(e.bytes);
    std::memcpy(file.data(), e.memory, e.bytes);
  }
  std::free(e.memory);
  return file;
}

}  // namespace plain_jpeg
