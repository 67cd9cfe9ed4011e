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

/// Decodes an image that may be recovered. What is recovered of a part and of the whole may differ, because a
/// part is not looked at to its end: they need only come to an end.
template <class Codec>
void decode_recovering(const Codec& codec, ps::bytes_view bytes, input& numbers) {
  typename Codec::scratch scratch;
  outcome([&] {
    const auto image = codec.decode(bytes, scratch);
    const auto all = image.finish();
    must(all.shape() == image.shape(), "an image has its shape");
    touch(ps::bytes_view(std::as_bytes(all.flat())));
    static_cast<void>(image.read(some_part(image.size(), numbers)));
  });
}

template <class Codec>
void decode_or_recover(const Codec& codec, ps::bytes_view bytes, input& numbers) {
  if constexpr (requires { codec.recover; })
    if (codec.recover) return decode_recovering(codec, bytes, numbers);
  decode_parts(codec, bytes, numbers);
}

/// An input of a codec: [how][the format][a part, 16 bytes][file]. `codec_of<Format>(how)` makes the codec;
/// `change` may change the file before.
template <class... Formats, class CodecOf>
int decode_as_one_of(const std::uint8_t* data, std::size_t size, const CodecOf& codec_of,
                     void (*change)(unsigned how, std::string& file) = nullptr) {
  input in(data, size);
  const unsigned how = in.number();
  const unsigned format = in.number() % sizeof...(Formats);
  const ps::bytes_view part = in.take(16);
  std::string file(ps::text_of(in.rest()));
  if (change != nullptr) change(how, file);
  unsigned i = 0;
  const auto decode = [&]<class Format>(Format) {
    if (i++ != format) return;
    input numbers(reinterpret_cast<const std::uint8_t*>(part.data()), part.size());
    decode_or_recover(codec_of(Format(), how), ps::bytes_of(file), numbers);
  };
  (decode(Formats()), ...);
  return 0;
}

}  // namespace penstock_fuzz
