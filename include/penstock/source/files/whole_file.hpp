// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>

#include <limits>

namespace penstock::inline v0_1 {
namespace detail {

/// A regular file that stays open as long as this object lives. Throws `errc::io` that names the file.
class regular_file : unmovable {
 public:
  explicit regular_file(const std::string& path);
  ~regular_file();

  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Reads the first `into.size()` bytes.
  void read(mutable_bytes into) const;

 private:
  [[nodiscard]] static int opened(const std::string& path) noexcept;
  [[nodiscard]] error failed(const char* what) const;

  const std::string* path_;
  int number_;
  std::uint64_t size_ = 0;
};

/// All bytes of a regular file, for small formats that are kept in memory. Throws `errc::io` that names the
/// file, and `errc::limit`, before anything is read, if it has more than `maximum` bytes; `what` names the
/// kind of file in the message.
[[nodiscard]] buffer read_whole_file(const std::string& given,
                                     std::uint64_t maximum = std::numeric_limits<std::uint64_t>::max(),
                                     std::string_view what = "a file");

/// Whether a relative path stays within the folder it is relative to. A description must not lead to files
/// outside its folder.
[[nodiscard]] bool stays_in_folder(std::string_view path) noexcept;

/// The largest description of a folder that is read.
inline constexpr std::uint64_t max_description_bytes = 256_MiB;
void check_index_size(std::uint64_t bytes);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/whole_file.ipp>
#endif
