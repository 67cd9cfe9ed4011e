// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "letters.hpp"

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
#include <string_view>
#include <vector>

/// A white sheet of paper, RGB, for pictures and lines of text.
class contact_sheet {
 public:
  using colour = std::array<std::uint8_t, 3>;
  static constexpr std::uint32_t gap = 4, label_height = 18;

  explicit contact_sheet(penstock::image_size size)
      : size_(size), values_(std::size_t{size.width} * size.height * 3, 255) {}

  void put(std::uint32_t x, std::uint32_t y, penstock::tensor_view<const std::uint8_t> image) {
    const std::size_t row_bytes = image.shape()[1] * 3;
    for (std::size_t r = 0; r < image.shape()[0]; ++r)
      std::copy_n(image.data() + r * row_bytes, row_bytes, at(x, y + static_cast<std::uint32_t>(r)));
  }
  /// Writes a line of text below (x, y), as large as the width has room for; what is beyond it is cut.
  void put(std::uint32_t x, std::uint32_t y, std::uint32_t width, std::string text) {
    const auto wide = [&](std::uint32_t dot) {
      return static_cast<std::uint32_t>(text.size()) * (letters::width + 1) * dot;
    };
    const std::uint32_t dot = wide(2) <= width + 2 ? 2 : 1;
    if (const std::uint32_t maximum = (width + dot) / ((letters::width + 1) * dot); text.size() > maximum) {
      text.resize(maximum);
      if (maximum > 4) text.replace(maximum - 2, 2, "..");
    }
    write(x, y + (label_height - letters::height * dot) / 2, dot, text);
  }
  /// Writes text of which (x, y) is the upper left corner, and `dot` the size of its dots.
  void write(std::uint32_t x, std::uint32_t y, std::uint32_t dot, std::string_view text) {
    for (const char c : text) {
      for (std::uint32_t dy = 0; dy < letters::height; ++dy)
        for (std::uint32_t dx = 0; dx < letters::width; ++dx)
          if (letters::dot(c, dx, dy)) fill(x + dx * dot, y + dy * dot, {dot, dot}, {0, 0, 0});
      x += (letters::width + 1) * dot;
    }
  }
  /// Fills a rectangle of which (x, y) is the upper left corner.
  void fill(std::uint32_t x, std::uint32_t y, penstock::image_size area, colour with) {
    for (std::uint32_t r = 0; r < area.height; ++r)
      for (std::uint32_t c = 0; c < area.width; ++c) std::copy_n(with.data(), 3, at(x + c, y + r));
  }
  /// A gray line of one pixel, downwards from (x, y).
  void line(std::uint32_t x, std::uint32_t y, std::uint32_t length) {
    fill(x, y, {1, length}, {128, 128, 128});
  }
  /// All pixels, as an image.
  [[nodiscard]] penstock::tensor_view<const std::uint8_t> image() const {
    return {values_.data(), penstock::extents(size_.height, size_.width, 3)};
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
  [[nodiscard]] std::uint8_t* at(std::uint32_t x, std::uint32_t y) {
    return values_.data() + (std::size_t{y} * size_.width + x) * 3;
  }

  penstock::image_size size_;
  std::vector<std::uint8_t> values_;
};
