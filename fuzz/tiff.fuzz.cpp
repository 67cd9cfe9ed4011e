// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec tiff: [1 recover, 2 as stored][the format][a part, 16 bytes][file]

#include <penstock/codec/tiff.hpp>

#include "support/fuzz.hpp"
#include "support/image.hpp"

using namespace penstock_fuzz;

namespace {

template <class Format>
void decode_as(unsigned how, ps::bytes_view bytes, input& numbers) {
  const ps::tiff_as<Format> codec{.limits = {.width = 1000, .height = 1000, .bytes = 1 << 20},
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
  const ps::bytes_view bytes = in.rest();
  switch (format % 5) {
    case 0:
      decode_as<ps::gray8>(how, bytes, numbers);
      break;
    case 1:
      decode_as<ps::rgb8>(how, bytes, numbers);
      break;
    case 2:
      decode_as<ps::gray16>(how, bytes, numbers);
      break;
    case 3:
      decode_as<ps::rgba16>(how, bytes, numbers);
      break;
    default:
      decode_as<ps::rgba8>(how, bytes, numbers);
  }
  return 0;
}
