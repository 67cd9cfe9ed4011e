// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/png_header.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

/// Builds PNGs chunk by chunk, without compression: what encoders do not write.
struct raw_png {
  std::uint32_t width = 1, height = 1;
  unsigned depth = 8, colour = 0;
  bool interlaced = false;
  std::string before{};  ///< chunks between header and pixels
  std::string after{};   ///< chunks between pixels and end
  std::size_t idat_bytes = 1 << 20;

  static std::string number(std::uint32_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
    return text;
  }
  static std::string chunk(std::string_view type, std::string_view data) {
    const std::string named = std::string(type).append(data);
    return number(static_cast<std::uint32_t>(data.size())) + named +
           number(penstock::detail::png_checksum(penstock::bytes_of(named)));
  }
  [[nodiscard]] std::string header() const {
    std::string data = number(width) + number(height);
    data += static_cast<char>(depth);
    data += static_cast<char>(colour);
    data += std::string(2, '\0');
    data += interlaced ? '\1' : '\0';
    return "\x89PNG\r\n\x1a\n" + chunk("IHDR", data);
  }
  /// A zlib stream of stored blocks.
  static std::string stored(std::string_view content) {
    std::uint32_t a = 1, b = 0;
    for (const char c : content) {
      a = (a + static_cast<unsigned char>(c)) % 65521;
      b = (b + a) % 65521;
    }
    std::string out = "\x78\x01";
    do {
      const std::string_view block = content.substr(0, 65535);
      content.remove_prefix(block.size());
      const auto size = static_cast<unsigned>(block.size());
      out += content.empty() ? '\1' : '\0';
      out += static_cast<char>(size);
      out += static_cast<char>(size >> 8);
      out += static_cast<char>(~size);
      out += static_cast<char>(~size >> 8);
      out += block;
    } while (!content.empty());
    return out + number(b << 16 | a);
  }
  /// `rows`: each a filter's number and packed samples, as the file has them.
  [[nodiscard]] std::string of_rows(std::string_view rows) const {
    std::string file = header() + before;
    const std::string all = stored(rows);
    for (std::size_t at = 0; at < all.size(); at += idat_bytes)
      file += chunk("IDAT", std::string_view(all).substr(at, idat_bytes));
    return file + after + chunk("IEND", {});
  }
  /// Samples in their order, `channels` a pixel, each of `depth` bits.
  [[nodiscard]] std::string of_samples(const std::vector<unsigned>& samples) const {
    const unsigned channels = colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1;
    std::string rows;
    const auto pass = [&](std::uint32_t x0, std::uint32_t y0, std::uint32_t dx, std::uint32_t dy) {
      if (x0 >= width) return;
      for (std::uint32_t y = y0; y < height; y += dy) {
        rows += '\0';
        unsigned bits = 0, value = 0;
        for (std::uint32_t x = x0; x < width; x += dx)
          for (unsigned c = 0; c < channels; ++c) {
            value = value << depth | samples[(std::size_t{y} * width + x) * channels + c];
            bits += depth;
            if (bits == 16) rows += static_cast<char>(value >> 8);
            if (bits % 8 == 0) {
              rows += static_cast<char>(value);
              bits = value = 0;
            }
          }
        if (bits != 0) rows += static_cast<char>(value << (8 - bits));
      }
    };
    if (!interlaced) {
      pass(0, 0, 1, 1);
    } else {
      pass(0, 0, 8, 8);
      pass(4, 0, 8, 8);
      pass(0, 4, 4, 8);
      pass(2, 0, 4, 4);
      pass(0, 2, 2, 4);
      pass(1, 0, 2, 2);
      pass(0, 1, 1, 2);
    }
    return of_rows(rows);
  }
};

}  // namespace penstock_test
