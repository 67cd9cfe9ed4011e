// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/png_encoder.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/image/pixels.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <stdexcept>
#include <string>
#include <vector>

/// A white sheet of paper, RGB, for pictures with numbers below them.
class contact_sheet {
 public:
  static constexpr std::uint32_t gap = 4, label_height = 14;

  explicit contact_sheet(penstock::image_size size)
      : size_(size), values_(std::size_t{size.width} * size.height * 3, 255) {}

  void put(std::uint32_t x, std::uint32_t y, penstock::tensor_view<const std::uint8_t> image) {
    const std::size_t row_bytes = image.shape()[1] * 3;
    for (std::size_t r = 0; r < image.shape()[0]; ++r)
      std::copy_n(image.data() + r * row_bytes, row_bytes, at(x, y + static_cast<std::uint32_t>(r)));
  }
  void put(std::uint32_t x, std::uint32_t y, const std::string& number) {
    for (const char c : number) {
      if (c < '0' || c > '9') continue;
      for (std::uint32_t dy = 0; dy < 10; ++dy)  // each dot is 2 x 2 pixels
        for (std::uint32_t dx = 0; dx < 6; ++dx)
          if ((digits[static_cast<std::size_t>(c - '0')][dy / 2] >> (2 - dx / 2) & 1) != 0)
            std::fill_n(at(x + dx, y + dy), 3, std::uint8_t{0});
      x += 8;
    }
  }
  /// Writes a PNG file.
  void save(const std::string& path) const {
    penstock::png_encoder encoder;
    const penstock::bytes_view file =
        encoder.encode(penstock::pixel_view<std::uint8_t, 3>(values_.data(), size_));
    std::ofstream stream(path, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    if (!stream.flush()) throw std::runtime_error("cannot write " + path);
  }

 private:
  /// Digits of 3 x 5 dots, a row in three bits.
  static constexpr std::array<std::array<std::uint8_t, 5>, 10> digits{{{7, 5, 5, 5, 7},
                                                                       {2, 6, 2, 2, 7},
                                                                       {7, 1, 7, 4, 7},
                                                                       {7, 1, 7, 1, 7},
                                                                       {5, 5, 7, 1, 1},
                                                                       {7, 4, 7, 1, 7},
                                                                       {7, 4, 7, 5, 7},
                                                                       {7, 1, 1, 1, 1},
                                                                       {7, 5, 7, 5, 7},
                                                                       {7, 5, 7, 1, 7}}};

  [[nodiscard]] std::uint8_t* at(std::uint32_t x, std::uint32_t y) {
    return values_.data() + (std::size_t{y} * size_.width + x) * 3;
  }

  penstock::image_size size_;
  std::vector<std::uint8_t> values_;
};
