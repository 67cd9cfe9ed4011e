// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/jpeg_encoder.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/storage/memory_files.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace bench {

/// A shard in memory of made-up photos, JPEG files with gradients and some noise: `size_of(i)` is the size of
/// photo i.
template <class SizeOf>
penstock::memory_files made_photos(std::size_t count, SizeOf size_of) {
  std::vector<std::byte> bytes;
  penstock::tar_writer out(
      [&bytes](penstock::bytes_view more) { bytes.insert(bytes.end(), more.begin(), more.end()); });
  penstock::jpeg_encoder encoder;
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < count; ++i) {
    const penstock::image_size size = size_of(i);
    pixels.resize(std::size_t{3} * size.width * size.height);
    penstock::rng random(1, 0, i);
    for (std::size_t y = 0, at = 0; y < size.height; ++y)
      for (std::size_t x = 0; x < size.width; ++x) {
        const std::uint64_t noise = random();
        for (std::size_t c = 0; c < 3; ++c, ++at)
          pixels[at] =
              static_cast<std::uint8_t>(((c + 1) * x + (3 - c) * y + i) / 8 % 224 + (noise >> 8 * c) % 32);
      }
    char key[32];
    std::snprintf(key, sizeof key, "%06zu", i);
    out.write(key, {{"jpg", encoder.encode(penstock::pixel_view<std::uint8_t, 3>(pixels.data(), size))}});
  }
  out.close();
  return penstock::memory_files().add("photos.tar", penstock::bytes_view(bytes));
}

}  // namespace bench
