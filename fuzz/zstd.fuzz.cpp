// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec zstd: [payload]

#include <penstock/codec/zstd.hpp>

#include "support/fuzz.hpp"
#include "support/packed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return penstock_fuzz::unpack_within<penstock::zstd>(data, size);
}
