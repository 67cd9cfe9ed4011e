// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec avif: [1 a first frame, 2 as stored][the format: 8 bits][a part, 16 bytes][file]

#include <penstock/codec/avif.hpp>

#include "support/fuzz.hpp"
#include "support/image.hpp"

using namespace penstock_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return decode_as_one_of<ps::gray8, ps::rgb8, ps::rgba8>(data, size, []<class Format>(Format, unsigned how) {
    return ps::avif_as<Format>{.limits = {.width = 1000, .height = 1000, .bytes = 1 << 20},
                               .orient = (how & 2) == 0,
                               .first_frame = (how & 1) != 0};
  });
}
