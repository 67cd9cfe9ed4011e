// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec gif: [1 recover, 2 a first frame][the format: 8 bits][a part, 16 bytes][file]

#include <penstock/codec/gif.hpp>

#include "support/fuzz.hpp"
#include "support/image.hpp"

using namespace penstock_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return decode_as_one_of<ps::gray8, ps::rgb8, ps::rgba8>(data, size, []<class Format>(Format, unsigned how) {
    return ps::gif_as<Format>{.limits = {.width = 1000, .height = 1000, .bytes = 1 << 20},
                              .recover = (how & 1) != 0,
                              .first_frame = (how & 2) != 0};
  });
}
