// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Tar archives block by block, valid and invalid ones; written independently of the library, so that it does
// not test itself.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

namespace penstock_test {

class raw_tar {
 public:
  enum class dialect { v7, ustar, gnu };

  raw_tar& member(std::string_view name, std::string_view content, char type = '0',
                  dialect kind = dialect::ustar) {
    header(name, content.size(), type, kind);
    return body(content);
  }
  raw_tar& header(std::string_view name, std::uint64_t size, char type = '0', dialect kind = dialect::ustar,
                  std::string_view prefix = {}) {
    char block[512] = {};
    name.copy(block, 100);
    std::snprintf(block + 100, 8, "%07o", 0644);
    std::snprintf(block + 124, 12, "%011llo", size & 077777777777ull);
    std::snprintf(block + 136, 12, "%011o", 0);
    block[156] = type;
    if (kind == dialect::ustar) std::memcpy(block + 257, "ustar\00000", 8);
    if (kind == dialect::gnu) std::memcpy(block + 257, "ustar  \0", 8);
    prefix.copy(block + 345, 155);
    last_ = bytes.size();
    bytes.append(block, sizeof(block));
    seal();
    return *this;
  }
  raw_tar& body(std::string_view content) {
    bytes += content;
    bytes.resize((bytes.size() + 511) / 512 * 512);
    return *this;
  }
  raw_tar& pax(char type, std::string_view records) { return member("././@PaxHeader", records, type); }
  raw_tar& end(std::size_t zero_blocks = 2) {
    bytes.append(zero_blocks * 512, '\0');
    return *this;
  }
  /// Changes bytes of the last header and corrects its checksum.
  raw_tar& patch(std::size_t offset, std::string_view with) {
    bytes.replace(last_ + offset, with.size(), with);
    seal();
    return *this;
  }
  /// Sets the checksum as old writers computed it: over signed bytes.
  raw_tar& seal_signed() {
    int sum = 0;
    std::memset(&bytes[last_ + 148], ' ', 8);
    for (std::size_t i = 0; i < 512; ++i) sum += static_cast<signed char>(bytes[last_ + i]);
    std::snprintf(&bytes[last_ + 148], 8, "%06o", static_cast<unsigned>(sum));
    return *this;
  }
  void save(const std::string& path) const {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  std::string bytes;

 private:
  void seal() {
    unsigned sum = 0;
    std::memset(&bytes[last_ + 148], ' ', 8);
    for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[last_ + i]);
    std::snprintf(&bytes[last_ + 148], 8, "%06o", sum);
  }
  std::size_t last_ = 0;
};

}  // namespace penstock_test
