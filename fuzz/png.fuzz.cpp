// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec png: [1 recover, 2 as stored, 4 checksums put right, then the format: 8 bits][a part, 16
// bytes][file]

#include <penstock/codec/png.hpp>

#include "support/fuzz.hpp"
#include "support/image.hpp"

#include <string>

using namespace penstock_fuzz;

namespace {

/// Puts the checksums of all chunks right, if that is asked for.
void seal(unsigned how, std::string& file) {
  if ((how & 4) == 0) return;
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
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return decode_as_one_of<ps::gray8, ps::rgb8, ps::rgba8, ps::gray16, ps::rgb16, ps::rgba16>(
      data, size,
      []<class Format>(Format, unsigned how) {
        return ps::png_as<Format>{.limits = {.width = 2000, .height = 2000, .bytes = 4 << 20},
                                  .orient = (how & 2) == 0,
                                  .recover = (how & 1) != 0};
      },
      &seal);
}
