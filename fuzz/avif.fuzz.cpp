// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec avif: [1 a first frame, 2 as stored][the format: 8 bits][a part, 16 bytes][file]

#include <penstock/codec/avif.hpp>

#include "support/fuzz.hpp"
#include "support/image.hpp"

using namespace penstock_fuzz;

namespace {

template <class Format>
void decode_as(unsigned how, ps::bytes_view bytes, input& numbers) {
  const ps::avif_as<Format> codec{.limits = {.width = 1000, .height = 1000, .bytes = 1 << 20},
                                  .orient = (how & 2) == 0,
                                  .first_frame = (how & 1) != 0};
  decode_parts(codec, bytes, numbers);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned how = in.number();
  const unsigned format = in.number();
  const ps::bytes_view part = in.take(16);
  input numbers(reinterpret_cast<const std::uint8_t*>(part.data()), part.size());
  const ps::bytes_view bytes = in.rest();
  switch (format % 3) {
    case 0:
      decode_as<ps::gray8>(how, bytes, numbers);
      break;
    case 1:
      decode_as<ps::rgb8>(how, bytes, numbers);
      break;
    default:
      decode_as<ps::rgba8>(how, bytes, numbers);
  }
  return 0;
}
