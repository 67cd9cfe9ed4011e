// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec webp: [1 recover, 2 as stored][the format: 8 bits][a part, 16 bytes][file]

#include <penstock/codec/webp.hpp>

#include "support/fuzz.hpp"
#include "support/image.hpp"

using namespace penstock_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return decode_as_one_of<ps::gray8, ps::rgb8, ps::rgba8>(data, size, []<class Format>(Format, unsigned how) {
    return ps::webp_as<Format>{.limits = {.width = 1000, .height = 1000, .bytes = 1 << 20},
                               .orient = (how & 2) == 0,
                               .recover = (how & 1) != 0};
  });
}
