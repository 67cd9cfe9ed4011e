// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec png: [1 recover, 2 as stored, 4 checksums put right, then the format: 8 bits][a part, 16
// bytes][file]

#include <penstock/codec/png.hpp>

#include "support/fuzz.hpp"
#include "support/image.hpp"

#include <string>

using namespace penstock_fuzz;

namespace {

/// Puts the checksums of all chunks right.
std::string sealed(ps::bytes_view png) {
  std::string file(ps::text_of(png));
  const auto number = [&](std::size_t at) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(file[at + i]);
    return value;
  };
  for (std::size_t at = 8; at + 12 <= file.size();) {
    const std::size_t length = number(at);
    if (length > file.size() - at - 12) break;
    const std::uint32_t sum =
        ps::detail::png_checksum(ps::bytes_of(std::string_view(file).substr(at + 4, length + 4)));
    for (std::size_t i = 0; i < 4; ++i) file[at + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    at += length + 12;
  }
  return file;
}

template <class Format>
void decode_as(unsigned how, ps::bytes_view bytes, input& numbers) {
  const ps::png_as<Format> codec{.limits = {.width = 2000, .height = 2000, .bytes = 4 << 20},
                                 .orient = (how & 2) == 0,
                                 .recover = (how & 1) != 0};
  decode_or_recover(codec, bytes, numbers);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned how = in.number();
  const unsigned format = in.number();
  const ps::bytes_view part = in.take(16);
  input numbers(reinterpret_cast<const std::uint8_t*>(part.data()), part.size());
  const ps::bytes_view given = in.rest();
  const std::string file = (how & 4) != 0 ? sealed(given) : std::string(ps::text_of(given));
  const ps::bytes_view bytes = ps::bytes_of(file);
  switch (format % 6) {
    case 0:
      decode_as<ps::gray8>(how, bytes, numbers);
      break;
    case 1:
      decode_as<ps::rgb8>(how, bytes, numbers);
      break;
    case 2:
      decode_as<ps::rgba8>(how, bytes, numbers);
      break;
    case 3:
      decode_as<ps::gray16>(how, bytes, numbers);
      break;
    case 4:
      decode_as<ps::rgb16>(how, bytes, numbers);
      break;
    default:
      decode_as<ps::rgba16>(how, bytes, numbers);
  }
  return 0;
}
