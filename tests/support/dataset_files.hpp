// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/ffcv_files.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"
#include "support/zip_writer.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

/// A folder to put files of all formats into.
struct dataset_folder {
  temp_dir dir;

  /// Writes a file, and returns its path.
  std::string write(std::string_view name, std::string_view bytes) const {
    const std::filesystem::path path = dir / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  [[nodiscard]] std::string operator()(std::string_view name = {}) const {
    return name.empty() ? dir.path().string() : (dir / name).string();
  }
};

template <class T>
[[nodiscard]] std::string little_bytes(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i) & 255);
  return bytes;
}

/// A shard of `samples` samples with the members "txt" and "cls".
[[nodiscard]] inline std::string shard_bytes(int samples) {
  raw_tar tar;
  for (int i = 0; i < samples; ++i)
    tar.member(std::to_string(i) + ".txt", "text").member(std::to_string(i) + ".cls", std::to_string(i));
  return tar.end().bytes;
}
template <class T>
[[nodiscard]] std::string npy_text(const penstock::extents& shape) {
  const std::vector<T> values(static_cast<std::size_t>(shape.elements()));
  const auto bytes = penstock::npy_bytes<T>(shape, values);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
/// An IDX file of bytes.
[[nodiscard]] inline std::string idx_bytes(const std::vector<unsigned>& shape, std::size_t size) {
  std::string bytes{"\0\0\x08", 3};
  bytes += static_cast<char>(shape.size());
  for (const unsigned length : shape)
    for (const unsigned shift : {24u, 16u, 8u, 0u}) bytes += static_cast<char>(length >> shift & 255);
  return bytes + std::string(size, 'x');
}
/// A file of llm.c, and the index of a Megatron dataset of one document.
[[nodiscard]] inline std::string llmc_bytes(std::uint32_t tokens) {
  std::string bytes =
      little_bytes(std::uint32_t{20240520}) + little_bytes(std::uint32_t{1}) + little_bytes(tokens);
  bytes.resize(1024);
  return bytes + std::string(2 * std::size_t{tokens}, '\1');
}
[[nodiscard]] inline std::string megatron_index(std::uint32_t tokens, unsigned code) {
  return std::string("MMIDIDX\0\0", 9) + little_bytes(std::uint64_t{1}) + static_cast<char>(code) +
         little_bytes(std::uint64_t{1}) + little_bytes(std::uint64_t{2}) + little_bytes(tokens) +
         little_bytes(std::uint64_t{0}) + little_bytes(std::uint64_t{0}) + little_bytes(std::uint64_t{1});
}
/// A file of FFCV of three numbers.
[[nodiscard]] inline std::string ffcv_bytes() {
  return ffcv_writer({{1, "label"}})
      .file({{ffcv_writer::number(std::uint64_t{1})},
             {ffcv_writer::number(std::uint64_t{2})},
             {ffcv_writer::number(std::uint64_t{3})}},
            true);
}
/// The beginnings of images, which are enough to be recognised.
inline constexpr std::string_view jpeg_beginning = "\xff\xd8\xff\xe0", png_beginning = "\x89PNG\r\n\x1a\n";

}  // namespace penstock_test
