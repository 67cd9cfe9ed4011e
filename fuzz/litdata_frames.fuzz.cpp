// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The head of a LitData chunk that is compressed inside, in pieces: [bytes of input at once, 8 bits][bytes of
// output at once, 8 bits][chunk]

#include <penstock/source/records/litdata_chunks.hpp>

#include "support/fuzz.hpp"
#include "support/unpacked.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

using namespace penstock_fuzz;
namespace ps = penstock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using stream = ps::detail::litdata_frames<as_it_is>::stream;
  input in(data, size);
  const std::size_t taken = std::size_t{1} + in.number(), given = std::size_t{1} + in.number();
  const ps::bytes_view chunk = in.rest();
  const std::string whole = unpacked<stream>(chunk, chunk.size() + 1, chunk.size() + 64, 24);
  must(whole == unpacked<stream>(chunk, taken, given, 24), "pieces of any size make the same chunk");
  return 0;
}
