// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/fuzz.hpp"

#include <vector>

namespace penstock_fuzz {

/// Unpacks a payload in both of a codec's ways, with scratch that was used for other payloads.
template <class Codec>
int unpack_within(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t limit = 1 << 20;
  static typename Codec::scratch scratch;
  const penstock::bytes_view packed = input(data, size).rest();
  const Codec codec{.limit = limit};
  std::vector<std::byte> into;
  const std::string first = outcome([&] {
    const auto blob = codec.decode(packed, scratch);
    must(blob.size() <= limit, "content keeps to its limit");
    into.resize(static_cast<std::size_t>(blob.size()));
    blob.read_into(into);
    touch(into);
  });
  const std::string second = outcome([&] {
    const auto found = codec.decode(packed, scratch).finish();
    must(first.empty() && std::equal(found.begin(), found.end(), into.begin(), into.end()),
         "both ways give the same bytes");
  });
  must(first == second, "both ways give the same error");
  return 0;
}

}  // namespace penstock_fuzz
