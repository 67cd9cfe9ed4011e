// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/codec_test.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// The bytes of token files.
namespace penstock_test {

using codec_test::byte_vector;

/// Numbers as the bytes of a file.
template <class T>
void put(byte_vector& bytes, std::uint64_t value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}
/// The index of documents given by the lengths of their sequences.
inline byte_vector megatron(const std::vector<std::vector<std::uint32_t>>& documents, unsigned code = 8,
                            std::size_t width = 2) {
  byte_vector bytes = codec_test::to_vector(std::string_view("MMIDIDX\0\0", 9)), offsets, bounds;
  std::uint64_t sequences = 0, at = 0;
  byte_vector lengths;
  put<std::uint64_t>(bounds, 0);
  for (const auto& document : documents) {
    for (const std::uint32_t length : document) {
      put<std::uint32_t>(lengths, length);
      put<std::uint64_t>(offsets, at);
      at += length * width;
      ++sequences;
    }
    put<std::uint64_t>(bounds, sequences);
  }
  put<std::uint64_t>(bytes, 1);
  put<std::uint8_t>(bytes, code);
  put<std::uint64_t>(bytes, sequences);
  put<std::uint64_t>(bytes, documents.size() + 1);
  for (const byte_vector* part : {&lengths, &offsets, &bounds}) bytes = codec_test::joined(bytes, *part);
  return bytes;
}

}  // namespace penstock_test
