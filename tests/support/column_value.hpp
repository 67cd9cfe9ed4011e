// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <cstdint>
#include <string_view>

namespace penstock_test {

/// Bytes that say how they are encoded, as those of a column do.
struct column_value {
  using unfinished = void;
  std::string_view bytes, encoded;
  [[nodiscard]] std::uint64_t size() const { return bytes.size(); }
  void read_into(penstock::mutable_bytes) const {}
  [[nodiscard]] penstock::bytes_view finish() const { return penstock::bytes_of(bytes); }
  [[nodiscard]] std::string_view encoding() const { return encoded; }
};

}  // namespace penstock_test
