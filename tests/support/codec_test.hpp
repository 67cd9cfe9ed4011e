// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

/// Shared by the tests of codecs: bytes, a blob, and the error that a call throws.
namespace codec_test {

using byte_vector = std::vector<std::byte>;

inline byte_vector to_vector(penstock::bytes_view bytes) { return {bytes.begin(), bytes.end()}; }
inline byte_vector to_vector(std::string_view text) { return to_vector(penstock::bytes_of(text)); }

inline byte_vector joined(const byte_vector& a, const byte_vector& b) {
  byte_vector result = a;
  result.insert(result.end(), b.begin(), b.end());
  return result;
}

inline byte_vector file_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  return to_vector(std::string_view(all));
}

inline byte_vector from_base64(std::string_view text) {
  byte_vector out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto value = digits.find(c);
    if (value == std::string_view::npos) continue;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<std::byte>(bits >> count & 0xff));
  }
  return out;
}

/// A blob like those of storages, which counts its reads.
struct counted_blob {
  using unfinished = void;
  penstock::bytes_view bytes;
  int* reads;

  [[nodiscard]] std::uint64_t size() const { return bytes.size(); }
  void read_into(penstock::mutable_bytes into) const {
    ++*reads;
    std::memcpy(into.data(), bytes.data(), into.size());
  }
  [[nodiscard]] penstock::bytes_view finish() const {
    ++*reads;
    return bytes;
  }
};

/// The code and the line of the error that a call throws; an empty line if it throws none.
struct thrown {
  penstock::errc code{};
  std::string line;
};
template <class Call>
thrown caught(Call&& call) {
  try {
    call();
  } catch (const penstock::error& e) {
    return {e.code(), e.what()};
  }
  return {};
}

/// Calls `check(name, bytes)` for each file in the folder and below, ordered by name.
template <class Check>
void each_file(const std::filesystem::path& folder, Check&& check) {
  if (!std::filesystem::is_directory(folder)) return;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) check(path.filename().string(), file_bytes(path));
}

}  // namespace codec_test
