// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/detail/output_file.hpp>
#include <penstock/storage/concepts.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Unpacked copies of packed files, each with a record of what it is a copy of.
namespace penstock::inline v0_1 {
namespace detail::tar {

/// Size and time of change of a regular file; nothing where there is none.
[[nodiscard]] std::optional<object_signature> signature_of_file(const std::string& path) noexcept;

/// What a copy was made from and what it was then. 64 bytes, described in docs/shard_indexes.md.
struct copy_record {
  static constexpr std::size_t size = 64;
  static constexpr std::string_view magic = "PENSTCPY";
  static constexpr std::uint32_t version = 1;

  object_signature packed;
  object_signature copy;

  [[nodiscard]] std::array<std::byte, size> bytes() const noexcept;
  /// Nothing where the bytes are no whole record of this version.
  [[nodiscard]] static std::optional<copy_record> load(bytes_view from) noexcept;
};

/// The folder of a path: "." where it names none.
[[nodiscard]] std::string folder_of(const std::string& path);
[[nodiscard]] std::string name_of(const std::string& path);

/// Where the copy of a packed file is kept: beside it, or in `folder`, in a part of it that is named after
/// the packed file's own folder, so that files of one name do not meet. The copy's name is the same wherever
/// the dataset is.
[[nodiscard]] std::string copy_path(const std::string& packed, const std::string& folder);

/// Makes a folder and those above it that are missing. 0, or the system's number for what went wrong.
[[nodiscard]] int make_folders(const std::string& path);
[[nodiscard]] std::string record_path(const std::string& copy);

/// Whether `copy` is there, as it was when it was made, and made of this state of the packed file.
[[nodiscard]] bool copy_is_current(int record, const std::string& copy, object_signature packed);
[[nodiscard]] bool copy_is_current(const std::string& copy, object_signature packed);

/// The right to make a copy: one at a time, of all threads and processes of the machine. Ends with the
/// process, however that ends. The copy appears by renaming, so that without locks work would be done twice,
/// and no more.
class copy_turn {
 public:
  /// Waits for the others.
  explicit copy_turn(std::string copy);

  [[nodiscard]] bool current(object_signature packed) const;
  /// Says that there is no copy, and removes what is left of earlier ones.
  void begin() const;
  /// Says what the copy is of. The copy's name must be on the disk before.
  void finish(const copy_record& record) const;

 private:
  [[nodiscard]] static error failure(std::string_view doing, const std::string& path);

  std::string copy_;
  owned_descriptor opened_;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/unpacked_copy.ipp>
#endif
