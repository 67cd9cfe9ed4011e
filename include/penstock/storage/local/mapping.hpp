// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/sigbus_guard.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::inline v0_1::detail::files {

/// Throws the error of a file that was truncated or written to while it was mapped.
[[noreturn, gnu::cold]] void throw_changed_while_mapped(const std::string& path, std::uint64_t offset);

/// How many mappings the process has, and may have; 0 if the system does not say.
struct mapping_counts {
  std::uint64_t there = 0, maximum = 0;
};
[[nodiscard]] mapping_counts count_mappings() noexcept;

/// The error of a file of so many bytes that cannot be mapped, with what to do about it.
[[nodiscard]] error mapping_failure(const std::string& path, std::uint64_t bytes, int code,
                                    mapping_counts counts);

/// A whole file, mapped read-only. `file` and `mapped_file` have one per file.
class mapping {
 public:
  /// Maps an open file that has this version; throws errc::io if the system refuses.
  mapping(int opened, const object_version& version, const std::string& path, bool guarded);
  ~mapping();

  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return version_.size; }
  [[nodiscard]] const object_version& version() const noexcept { return version_; }

  void check_lost(const std::string& path) const {
    if (const auto offset = guard_.lost()) [[unlikely]]
      throw_changed_while_mapped(path, *offset);
  }
  /// Asks the system to load these bytes into memory.
  void will_need(std::uint64_t offset, std::uint64_t size) const noexcept;
  /// Tells the system how the file will be read: a value of `madvise`.
  void advise(int advice) const noexcept;

  [[nodiscard]] static std::uint64_t page() noexcept;

 private:
  const std::byte* data_ = nullptr;
  object_version version_;
  sigbus_guard guard_;
};

/// Whether most of an open file is in memory: at least 15 of 16 pages spread over it are. Does not wait for
/// the disk. False if the file system cannot tell. `draw` selects the pages; pass a different one each time,
/// since the system starts to load the pages asked about.
[[nodiscard]] bool is_in_memory(int opened, std::uint64_t size, std::uint64_t draw) noexcept;

}  // namespace penstock::inline v0_1::detail::files

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/local/mapping.ipp>
#endif
