// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// A file descriptor that is closed by the destructor.
class owned_descriptor {
 public:
  owned_descriptor() = default;
  explicit owned_descriptor(int value) noexcept : value_(value) {}
  owned_descriptor(owned_descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  owned_descriptor& operator=(owned_descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~owned_descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const noexcept { return value_; }
  [[nodiscard]] int release() noexcept { return std::exchange(value_, -1); }

 private:
  int value_ = -1;
};

/// Fills `into` from an offset on; returns false if that is not possible.
[[nodiscard]] bool read_all(int from, mutable_bytes into, std::uint64_t offset = 0) noexcept;

/// A file that appears under its name when it is complete, or not at all.
///
/// It is written under a temporary name in the folder of `path`; `commit` flushes it to disk and renames it.
/// Without a commit the temporary file is removed.
class output_file {
 public:
  explicit output_file(std::string path);
  output_file(output_file&& other) noexcept;
  output_file& operator=(output_file&& other) noexcept;
  ~output_file();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  void write(bytes_view bytes);

  /// Makes the file complete and visible. Returns its version.
  object_version commit();

 private:
  static constexpr std::size_t together = std::size_t{1} << 20;

  static std::string unique_ending();

  void flush();

  void write_out(bytes_view bytes);

  [[nodiscard]] error failure(std::string_view doing) const;

  std::string path_;
  std::string temporary_;
  owned_descriptor opened_;
  buffer pending_;
  std::uint64_t size_ = 0;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/local/output_file.ipp>
#endif
