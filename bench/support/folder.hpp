// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/harness.hpp"

#include <penstock/core/bytes.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/shard_writer.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Files for benchmarks: made-up shards, and the functions that a loop by hand needs to read them.
namespace bench {

/// A folder for one program's data, removed at the end.
class folder {
 public:
  folder(const options& o, const std::string& name) : path_(o.dir / ("data_" + name)), keep_(o.keep) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    ::setenv("XDG_CACHE_HOME", file("cache").c_str(), 1);  // for the indexes that sources keep
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() {
    std::error_code ignored;
    if (!keep_) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool keep_;
};

/// Writes shards of samples with one member `bin` of `bytes` made-up bytes, and optionally a member `cls` of
/// two bytes.
inline std::vector<std::string> write_shards(const folder& where, std::uint64_t shards,
                                             std::uint64_t samples_each, std::size_t bytes, bool with_class) {
  penstock::shard_writer_options chosen;
  chosen.maxcount = samples_each;
  chosen.tar.index = true;
  penstock::shard_writer out(where.file("shard-%04d.tar"), chosen);
  std::vector<std::uint64_t> words(bytes / 8 + 1);
  for (std::uint64_t i = 0; i < shards * samples_each; ++i) {
    std::uint64_t word = penstock::mix64(i + 1);
    for (auto& w : words) w = word += 0x9e3779b97f4a7c15u;
    char key[32];
    std::snprintf(key, sizeof key, "%09llu", static_cast<unsigned long long>(i));
    const penstock::bytes_view content{reinterpret_cast<const std::byte*>(words.data()), bytes};
    if (with_class)
      out.write(key, {{"bin", content}, {"cls", "17"}});
    else
      out.write(key, {{"bin", content}});
  }
  out.close();
  std::vector<std::string> names;
  for (const auto& shard : out.shards()) names.push_back(shard.name);
  return names;
}

/// A file that is open for reading.
class descriptor {
 public:
  explicit descriptor(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number_ < 0) throw std::runtime_error("cannot open " + path);
  }
  descriptor(descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  descriptor& operator=(descriptor&&) = delete;
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] std::uint64_t size() const {
    struct stat status {};
    if (::fstat(number_, &status) != 0) throw std::runtime_error("fstat failed");
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  int number_;
};

/// Reads all of a range or throws.
inline void read_range(int from, void* into, std::size_t size, std::uint64_t offset) {
  auto* at = static_cast<std::byte*>(into);
  while (size != 0) {
    const ssize_t got = ::pread(from, at, size, static_cast<off_t>(offset));
    if (got <= 0) throw std::runtime_error("pread failed");
    at += got;
    size -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
}

/// The place of a member's payload.
struct member_place {
  int file;
  std::uint64_t offset, size;
};

/// Finds the members with a suffix in files of plain ustar headers by walking over the headers.
inline void find_members(int file, std::uint64_t file_size, std::string_view suffix,
                         std::vector<member_place>& found) {
  char header[512];
  for (std::uint64_t at = 0; at + 512 <= file_size;) {
    read_range(file, header, sizeof header, at);
    if (header[0] == 0) return;
    char size_text[13] = {};
    std::memcpy(size_text, header + 124, 12);
    const std::uint64_t size = std::strtoull(size_text, nullptr, 8);
    const std::string_view name(header, strnlen(header, 100));
    if (name.ends_with(suffix)) found.push_back({file, at + 512, size});
    at += 512 + (size + 511) / 512 * 512;
  }
}

/// A mapping of a whole file, read-only.
class mapping {
 public:
  explicit mapping(const std::string& path) {
    const descriptor file(path);
    size_ = file.size();
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
    if (data_ == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  }
  mapping(mapping&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = MAP_FAILED; }
  mapping& operator=(mapping&&) = delete;
  ~mapping() {
    if (data_ != MAP_FAILED) ::munmap(data_, size_);
  }
  [[nodiscard]] const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  /// The share of the file that is in the page cache.
  [[nodiscard]] double resident() const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages((size_ + page - 1) / page);
    if (::mincore(data_, size_, pages.data()) != 0) throw std::runtime_error("mincore failed");
    std::size_t there = 0;
    for (const unsigned char p : pages) there += p & 1u;
    return static_cast<double>(there) / static_cast<double>(pages.size());
  }

 private:
  void* data_ = MAP_FAILED;
  std::size_t size_ = 0;
};

/// The sum of the first eight bytes of each row of a batch: cheap, and it shows that every row is the right
/// one.
inline std::uint64_t first_words(const std::byte* rows, std::size_t count, std::size_t stride) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t word;
    std::memcpy(&word, rows + i * stride, sizeof word);
    sum += word;
  }
  return sum;
}
/// The sum of all words in a range of bytes.
inline std::uint64_t all_words(const std::byte* bytes, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    sum += word;
  }
  return sum;
}

/// Buffers for batches, used in turn. Their pages are touched in advance.
class buffers_in_turn {
 public:
  buffers_in_turn(std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) std::memset(all_.emplace_back(bytes).data(), 0, bytes);
  }
  buffers_in_turn(buffers_in_turn&&) noexcept = default;
  [[nodiscard]] std::byte* next() { return all_[at_++ % all_.size()].data(); }

 private:
  std::vector<penstock::buffer> all_;
  std::size_t at_ = 0;
};

}  // namespace bench
