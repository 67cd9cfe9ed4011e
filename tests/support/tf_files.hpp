// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

/// The masked CRC-32C of bytes, bit by bit, so that it owes nothing to the library's.
[[nodiscard]] inline std::string masked_crc_of(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  const std::uint32_t masked = std::rotr(~crc, 15) + 0xa282ead8u;
  std::string stored;
  for (unsigned i = 0; i < 32; i += 8) stored += static_cast<char>(masked >> i & 255);
  return stored;
}

/// A record of TFRecord.
[[nodiscard]] inline std::string tf_record_of(std::string_view payload) {
  std::string size;
  for (unsigned i = 0; i < 64; i += 8) size += static_cast<char>(payload.size() >> i & 255);
  return size + masked_crc_of(size) + std::string(payload) + masked_crc_of(payload);
}
[[nodiscard]] inline std::string tf_records_of(const std::vector<std::string>& payloads) {
  std::string all;
  for (const std::string& one : payloads) all += tf_record_of(one);
  return all;
}

/// Payloads "0", "1", ... of that many records, each repeated so that sizes differ.
[[nodiscard]] inline std::vector<std::string> numbered_payloads(std::size_t first, std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = first; i < first + count; ++i)
    all.push_back(std::to_string(i) + std::string(i % 7, ' '));
  return all;
}

}  // namespace penstock_test
