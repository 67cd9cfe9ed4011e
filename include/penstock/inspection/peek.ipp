// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/peek.hpp>

#include <algorithm>
#include <cstdio>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string first_bytes(bytes_view bytes) {
  constexpr std::size_t most = 24;
  const bytes_view head = bytes.first(std::min(most, bytes.size()));
  const bool printable = std::all_of(head.begin(), head.end(), [](std::byte b) {
    const auto c = std::to_integer<unsigned char>(b);
    return c >= 0x20 && c < 0x7f;
  });
  std::string text;
  if (printable) {
    text = "\"" + std::string(text_of(head)) + "\"";
  } else {
    for (const std::byte b : head) {
      char hex[4];
      std::snprintf(hex, sizeof hex, "%02x ", std::to_integer<unsigned>(b));
      text += hex;
    }
    if (!text.empty()) text.pop_back();
  }
  return text + (bytes.size() > most ? " ..." : "");
}

}  // namespace penstock::inline v0_1::detail
