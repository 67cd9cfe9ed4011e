// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Containers of Avro, made by hand.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock_test {

inline std::string avro_number(std::int64_t value) {
  auto left = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  std::string made;
  for (; left > 127; left >>= 7) made += static_cast<char>(left | 128);
  return made + static_cast<char>(left);
}
inline std::string avro_text(std::string_view text) {
  return avro_number(static_cast<std::int64_t>(text.size())) + std::string(text);
}
inline std::string avro_block(std::int64_t count, const std::string& records) {
  return avro_number(count) + avro_text(records) + "0123456789abcdef";
}
/// What stands in front of the blocks.
inline std::string avro_head(const std::string& schema, const std::string& codec = "",
                             const std::vector<std::pair<std::string, std::string>>& more = {}) {
  std::string made("Obj\1", 4);
  made += avro_number(static_cast<std::int64_t>(more.size()) + (codec.empty() ? 1 : 2));
  made += avro_text("avro.schema") + avro_text(schema);
  if (!codec.empty()) made += avro_text("avro.codec") + avro_text(codec);
  for (const auto& [key, value] : more) made += avro_text(key) + avro_text(value);
  return made + avro_number(0) + "0123456789abcdef";
}

}  // namespace penstock_test
