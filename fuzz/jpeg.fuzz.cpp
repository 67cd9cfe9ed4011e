// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec jpeg: [how] [x] [y] [width] [height] file. The part of the image is read, drawn densely and drawn
// as planes, and all three agree with the same part of the whole.

#include <penstock/codec/jpeg.hpp>

#include "support/fuzz.hpp"

#include <algorithm>
#include <vector>

namespace {

namespace ps = penstock;
using penstock_fuzz::must;
using penstock_fuzz::outcome;

template <class Format>
void read_all_ways(ps::bytes_view file, unsigned how, const std::uint8_t (&numbers)[4]) {
  constexpr std::size_t channels = Format::channels;
  static ps::jpeg_scratch scratch;
  const ps::jpeg_as<Format> codec{.limits = {.width = 4096, .height = 4096, .bytes = 1 << 22},
                                  .orient = (how & 4) != 0,
                                  .recover = (how & 8) != 0,
                                  .scans = 20};
  std::vector<std::uint8_t> read, dense, planes, whole;
  ps::image_part part;
  const std::string first = outcome([&] {
    const auto image = codec.decode(file, scratch);
    const ps::image_size size = image.size();
    must(std::uint64_t{size.width} * size.height * channels <= codec.limits.bytes, "the limit holds");
    part.x = numbers[0] * (size.width - 1) / 255;
    part.y = numbers[1] * (size.height - 1) / 255;
    part.width = 1 + numbers[2] * (size.width - part.x - 1) / 255;
    part.height = 1 + numbers[3] * (size.height - part.y - 1) / 255;
    const auto pixels = image.read(part);
    must(pixels.size() == part.size(), "the part has its size");
    for (std::size_t y = 0; y < pixels.height(); ++y)
      read.insert(read.end(), pixels.row(y), pixels.row(y) + pixels.row_values());
  });
  if (part.width == 0) return;
  const std::size_t w = part.width, h = part.height;
  const ps::extents shape(h, w, channels);
  const std::string second = outcome([&] {
    dense.resize(w * h * channels);
    codec.decode(file, scratch).draw(part, ps::destination<std::uint8_t>(dense.data(), shape));
  });
  const std::string third = outcome([&] {
    planes.resize(w * h * channels);
    const ps::element_strides strides{static_cast<std::int64_t>(w), 1, static_cast<std::int64_t>(w * h)};
    codec.decode(file, scratch).draw(part, ps::destination<std::uint8_t>(planes.data(), shape, strides));
  });
  must(first == second && first == third, "all ways give the same error");
  if (!first.empty()) return;
  must(read == dense, "read and draw give the same pixels");
  for (std::size_t i = 0; i < w * h; ++i)
    for (std::size_t c = 0; c < channels; ++c)
      must(planes[c * w * h + i] == dense[i * channels + c], "planes hold the same pixels");
  const std::string fourth = outcome([&] {
    const auto image = codec.decode(file, scratch);
    const auto pixels =
        ps::pixel_view<std::uint8_t, channels>(image.finish().data(), image.size()).part(part);
    for (std::size_t y = 0; y < h; ++y)
      must(std::equal(pixels.row(y), pixels.row(y) + w * channels,
                      read.begin() + static_cast<std::ptrdiff_t>(y * w * channels)),
           "a part is the same part of the whole");
  });
  must(fourth.empty() || !codec.recover, "a file that is recovered in part is recovered");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  penstock_fuzz::input in(data, size);
  const unsigned how = in.number();
  std::uint8_t numbers[4];
  for (std::uint8_t& number : numbers) number = in.number();
  const ps::bytes_view file = in.rest();
  switch (how & 3) {
    case 0:
      read_all_ways<ps::gray8>(file, how, numbers);
      break;
    case 1:
      read_all_ways<ps::rgba8>(file, how, numbers);
      break;
    default:
      read_all_ways<ps::rgb8>(file, how, numbers);
  }
  return 0;
}
