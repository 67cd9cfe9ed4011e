// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

/// One header block of a tar archive, in all dialects in use: v7, ustar, GNU, pax, star.
/// Source: POSIX.1-2017 pax, "ustar Interchange Format" and "pax Header Block"; GNU tar manual, "Basic Tar
/// Format".
namespace penstock::inline v0_1 {
namespace detail::tar {

inline constexpr std::size_t block_size = 512;

[[nodiscard]] constexpr std::uint64_t padded(std::uint64_t size) noexcept {
  return (size + 511) & ~std::uint64_t{511};
}

/// The text of a field: everything before its first NUL.
[[nodiscard]] std::string_view text_field(bytes_view block, std::size_t offset, std::size_t size) noexcept;

/// A number: octal digits with spaces around them, or base-256 if the first bit is set. Nothing if it is
/// neither, negative, or too large for a file.
[[nodiscard]] std::optional<std::uint64_t> number_field(bytes_view block, std::size_t offset,
                                                        std::size_t size) noexcept;

[[nodiscard]] bool is_zero(bytes_view block) noexcept;

/// Whether the checksum is right, summed over unsigned bytes as in the standard or over signed ones as
/// some old writers did.
[[nodiscard]] bool checksum_matches(bytes_view block) noexcept;

/// Copies the path in the header itself to `path`. GNU headers have no prefix: they use its field for
/// other things.
void header_path(bytes_view block, std::string& path);

/// The maximum length of a member's name. Names are copied for each header, and a header takes only 512
/// bytes: without a bound a small archive could cause gigabytes of copies.
inline constexpr std::size_t longest_name = 64 * 1024;

/// A text that is known or not; forgetting it keeps its memory.
struct known_text {
  std::string text;
  bool known = false;

  void set(std::string_view value);
};

/// What pax records say about a member; an empty value cancels an earlier record.
struct pax_records {
  known_text path;
  known_text sparse_path;
  std::optional<std::uint64_t> size;
  bool sparse = false;

  /// Reads the body of a pax header: records `LENGTH KEY=VALUE\n`, where LENGTH counts the whole record.
  void read(bytes_view body);

 private:
  void take(std::string_view key, std::string_view value);
};

}  // namespace detail::tar

namespace detail {

/// Whether these first bytes of a file are those of a tar archive that is not compressed. An archive without
/// members is zeros, as many other files are: the file's name decides then.
[[nodiscard]] bool begins_tar(bytes_view head, bool named_tar) noexcept;

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/tar_header.ipp>
#endif
