// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/bytes.hpp>

#include "support/fuzz.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace penstock_fuzz {

/// An unpacker of what is not compressed.
struct as_it_is {
  static constexpr std::string_view unpacker_format = "zstd";
  struct stream {
    void begin() {}
    penstock::unpack_step step(penstock::bytes_view in, penstock::mutable_bytes out, bool) {
      const std::size_t some = std::min(in.size(), out.size());
      if (some != 0) std::memcpy(out.data(), in.data(), some);
      return {some, some, true};
    }
  };
};

/// What an unpacker makes of a file that it gets in pieces, or its error. The first piece has at least
/// `least` bytes.
template <class Stream>
std::string unpacked(penstock::bytes_view packed, std::size_t taken, std::size_t given, std::size_t least) {
  std::string made, out(given, '\0');
  Stream stream;
  stream.begin();
  const std::string failed = outcome([&] {
    for (std::size_t at = 0;;) {
      const std::size_t some = std::min(at == 0 ? std::max(taken, least) : taken, packed.size() - at);
      const auto done = stream.step(packed.subspan(at, some), std::as_writable_bytes(std::span(out)),
                                    at + some == packed.size());
      must(done.taken <= some && done.made <= out.size(), "a step stays within what it is given");
      at += done.taken;
      made.append(out, 0, done.made);
      if (some == 0 && done.made == 0) break;
      must(some == 0 || done.taken != 0 || done.made != 0, "a step with input gets on");
    }
  });
  return failed.empty() ? made : failed;
}

}  // namespace penstock_fuzz
