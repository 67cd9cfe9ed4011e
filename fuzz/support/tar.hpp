// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Archives for the fuzzers: most changes of a header would fail at its checksum, and those that a fuzzer
// makes by itself seldom move whole blocks.

#include <penstock/core/bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t maximum);

namespace penstock_fuzz {

/// The bytes with the checksum of each header put right, as far as sizes lead from one to the next.
inline std::string sealed(penstock::bytes_view bytes) {
  std::string tar(penstock::text_of(bytes));
  for (std::size_t at = 0; tar.size() - at >= 512;) {
    unsigned char* const block = reinterpret_cast<unsigned char*>(tar.data()) + at;
    if (std::all_of(block, block + 512, [](unsigned char b) { return b == 0; })) break;
    std::memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (std::size_t i = 0; i < 512; ++i) sum += block[i];
    char digits[8];
    std::snprintf(digits, sizeof(digits), "%06o", sum);
    std::memcpy(block + 148, digits, 7);
    std::uint64_t size = 0;
    for (std::size_t i = 124; i < 136 && block[i] >= '0' && block[i] <= '7'; ++i)
      size = size * 8 + (block[i] - '0');
    const std::uint64_t next = at + 512 + (size + 511) / 512 * 512;
    if (next > tar.size()) break;
    at = static_cast<std::size_t>(next);
  }
  return tar;
}

/// Copies, moves or drops a block behind the first `head` bytes, or leaves the change to the fuzzer.
inline std::size_t change_blocks(std::uint8_t* data, std::size_t size, std::size_t maximum, unsigned seed,
                                 std::size_t head) {
  const std::size_t blocks = size > head ? (size - head) / 512 : 0;
  const unsigned choice = seed % 8;
  if (choice > 2 || blocks == 0) return LLVMFuzzerMutate(data, size, maximum);
  std::uint8_t* const first = data + head;
  const std::size_t from = seed / 8 % blocks, to = seed / 512 % blocks;
  if (choice == 0) {
    std::swap_ranges(first + 512 * from, first + 512 * (from + 1), first + 512 * to);
    return size;
  }
  if (choice == 1 && size + 512 <= maximum) {
    const std::vector<std::uint8_t> block(first + 512 * from, first + 512 * (from + 1));
    std::memmove(first + 512 * (to + 1), first + 512 * to, size - head - 512 * to);
    std::copy(block.begin(), block.end(), first + 512 * to);
    return size + 512;
  }
  std::memmove(first + 512 * from, first + 512 * (from + 1), size - head - 512 * (from + 1));
  return size - 512;
}

/// `key: suffix=bytes ...` of a sample, every byte of it.
template <class Sample>
std::string line_of(const Sample& s) {
  std::string line(s.key());
  line += ':';
  for (std::size_t m = 0; m < s.size(); ++m) {
    line.append(" ").append(s.name(m)).append("=");
    line.append(penstock::text_of(s.member(m).finish()));
  }
  return line;
}

/// All samples of an indexed source, as lines.
template <class Source>
std::vector<std::string> indexed_lines(const Source& data) {
  std::vector<std::string> lines;
  const auto reader = data.connect();
  typename decltype(data.connect())::worker worker;
  for (std::uint64_t i = 0; i < data.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& s) { lines.push_back(line_of(s)); });
  return lines;
}

}  // namespace penstock_fuzz
