// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/local/paths.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail {

using owned_descriptor = files::descriptor;

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

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/local/output_file.ipp>
#endif
