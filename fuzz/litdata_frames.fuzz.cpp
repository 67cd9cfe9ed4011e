// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The head of a LitData chunk that is compressed inside, in pieces: [bytes of input at once, 8 bits][bytes of
// output at once, 8 bits][chunk]

#include <penstock/source/detail/litdata_frames.hpp>

#include "support/fuzz.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

/// Frames that are not compressed.
struct as_it_is {
  static constexpr std::string_view unpacker_format = "zstd";
  struct stream {
    void begin() {}
    ps::unpack_step step(ps::bytes_view in, ps::mutable_bytes out, bool) {
      const std::size_t some = std::min(in.size(), out.size());
      if (some != 0) std::memcpy(out.data(), in.data(), some);
      return {some, some, true};
    }
  };
};

/// What the unpacker makes of a chunk, or its error.
std::string unpacked(ps::bytes_view chunk, std::size_t taken, std::size_t given) {
  std::string made, out(given, '\0');
  ps::detail::litdata_frames<as_it_is>::stream stream;
  stream.begin();
  const std::string failed = outcome([&] {
    for (std::size_t at = 0;;) {
      const std::size_t least = at == 0 ? 24 : 0;  // the first piece has the beginning
      const std::size_t some = std::min(std::max(taken, least), chunk.size() - at);
      const auto done = stream.step(chunk.subspan(at, some), std::as_writable_bytes(std::span(out)),
                                    at + some == chunk.size());
      must(done.taken <= some && done.made <= out.size(), "a step stays within what it is given");
      at += done.taken;
      made.append(out, 0, done.made);
      if (some == 0 && done.made == 0) break;
      must(some == 0 || done.taken != 0 || done.made != 0, "a step with input gets on");
    }
  });
  return failed.empty() ? made : failed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const std::size_t taken = std::size_t{1} + in.number(), given = std::size_t{1} + in.number();
  const ps::bytes_view chunk = in.rest();
  const std::string whole = unpacked(chunk, chunk.size() + 1, chunk.size() + 64);
  must(whole == unpacked(chunk, taken, given), "pieces of any size make the same chunk");
  return 0;
}
