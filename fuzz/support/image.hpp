// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/tensor.hpp>
#include <penstock/image/lazy_image.hpp>

#include "support/fuzz.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock_fuzz {

namespace ps = penstock;

/// A part of an image from the input's numbers.
inline ps::image_part some_part(const ps::image_size& size, input& in) {
  ps::image_part part;
  part.x = in.number<std::uint32_t>() % size.width;
  part.y = in.number<std::uint32_t>() % size.height;
  part.width = 1 + in.number<std::uint32_t>() % (size.width - part.x);
  part.height = 1 + in.number<std::uint32_t>() % (size.height - part.y);
  return part;
}

/// Decodes a whole image and a part of it in all ways, which must agree.
template <class Codec>
void decode_parts(const Codec& codec, ps::bytes_view bytes, input& numbers) {
  static typename Codec::scratch scratch, other;
  ps::image_size size;
  std::vector<typename ps::decoded<Codec, ps::bytes_view>::value_type> whole;
  constexpr std::size_t channels = ps::decoded<Codec, ps::bytes_view>::channels;
  using value = typename ps::decoded<Codec, ps::bytes_view>::value_type;
  const std::string first = outcome([&] {
    const auto image = codec.decode(bytes, scratch);
    size = image.size();
    const auto all = image.finish();
    must(all.shape() == image.shape(), "an image has its shape");
    whole.assign(all.data(), all.data() + all.size());
  });
  if (size.width == 0) return;
  const ps::image_part part = some_part(size, numbers);
  const std::size_t count = std::size_t{part.width} * part.height * channels;
  std::vector<value> into(count);
  const std::string second = outcome([&] {
    const auto image = codec.decode(bytes, other);
    const auto view = image.read(part);
    must(view.size() == part.size(), "a part has its size");
    std::vector<value> kept;
    for (std::size_t y = 0; y < part.height; ++y)
      kept.insert(kept.end(), view.row(y), view.row(y) + view.row_values());
    const ps::extents shape(std::size_t{part.height}, std::size_t{part.width}, channels);
    image.draw(part, ps::destination<value>(into.data(), shape));
    must(kept == into, "a part is read as it is drawn");
  });
  if (!first.empty()) return;  // damage below the part need not be noticed
  must(second.empty(), "a part of a good image is good");
  for (std::size_t y = 0, i = 0; y < part.height; ++y)
    for (std::size_t x = 0; x < part.width * channels; ++x, ++i)
      must(into[i] == whole[((part.y + y) * size.width + part.x) * channels + x],
           "a part is that of the whole");
}

/// Decodes an image in all ways. What is recovered of a part and of the whole may differ, because a part is
/// not looked at to its end: then they need only come to an end.
template <class Codec>
void decode_or_recover(const Codec& codec, ps::bytes_view bytes, input& numbers) {
  if (!codec.recover) return decode_parts(codec, bytes, numbers);
  typename Codec::scratch scratch;
  outcome([&] {
    const auto image = codec.decode(bytes, scratch);
    const auto all = image.finish();
    must(all.shape() == image.shape(), "an image has its shape");
    touch(ps::bytes_view(std::as_bytes(all.flat())));
    static_cast<void>(image.read(some_part(image.size(), numbers)));
  });
}

}  // namespace penstock_fuzz
