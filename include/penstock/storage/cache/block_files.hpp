// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/local/file_lock.hpp>
#include <penstock/storage/local/paths.hpp>
#include <penstock/storage/reads/wait_stops.hpp>
#include <penstock/storage/sigbus_guard.hpp>

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail::blocks {

using files::descriptor;

/// The two files of a folder of blocks, opened and mapped by one session: the index, and the blocks.
///
/// Both say which one belongs to the other, and whoever uses them holds a shared lock of a byte of each, so
/// that neither is made anew while it is in use. Another byte of the index is the lock of the folder.
struct block_files {
  // Bytes that are locked; none of them need be there.
  static constexpr std::uint64_t change_byte = std::uint64_t{1} << 40, users_byte = change_byte + 1,
                                 first_free_byte = change_byte + 16;
  static constexpr std::chrono::milliseconds longest_change{10'000};

  /// Opens or makes the folder, and takes its lock. Throws as `disk_cache` says.
  block_files(const std::string& folder, const shape& wanted);
  block_files(const block_files&) = delete;
  block_files& operator=(const block_files&) = delete;
  ~block_files();

  [[nodiscard]] static std::string without_slashes(std::string path);
  [[nodiscard]] error refusal(std::string_view what) const;
  [[nodiscard]] descriptor open_folder() const;
  [[nodiscard]] descriptor open_own(int folder, const char* name, const std::string& path) const;
  /// Whether a path still leads to an open file: another process may have deleted the folder.
  [[nodiscard]] static bool leads_to(const std::string& path, int opened) noexcept;
  /// Opens both files, and takes the lock of the folder.
  void open_files();
  void open_index(const shape& wanted);
  [[nodiscard]] static std::uint64_t size_of(int opened) noexcept;
  /// Of both files: one may be deleted while the other is in use.
  [[nodiscard]] bool lock_users(byte_lock how) const noexcept;
  void make_index(const shape& wanted);
  void map_index(const shape& wanted);
  void unmap_index() noexcept;
  /// As long as all blocks, so that nothing of the mapping lies behind its end; what was never written takes
  /// no room. Without a mapping blocks are read.
  void map_blocks();
  [[nodiscard]] std::uint64_t data_size() const noexcept;
  /// Waits for the lock of the folder; false if it cannot be had in time, or if `stops` ends a wait that
  /// began then. Whoever holds it for so long is stopped, and the next reads do not wait as long again.
  [[nodiscard]] bool lock_folder(wait_stops::moment begun) noexcept;
  [[nodiscard]] off_t offset_of(std::uint32_t slot) const noexcept;
  /// An errno value, or 0.
  [[nodiscard]] static int write_at(int opened, off_t at, bytes_view bytes) noexcept;
  [[nodiscard]] int write(std::uint32_t slot, bytes_view bytes) const noexcept {
    return write_at(data.get(), offset_of(slot), bytes);
  }
  /// How many of a file's first bytes there are, at most as many as there is room for.
  [[nodiscard]] static std::size_t read_first(int opened, std::span<std::byte> into, const std::string& path);
  [[nodiscard]] bool read(std::span<iovec> parts, off_t at) const noexcept;
  /// Gives the disk what a free slot had. The caller may change the folder.
  void punch(std::uint32_t slot) const noexcept;
  void unmap() noexcept;
  void unlock_folder() const noexcept { (void)lock_byte(index.get(), change_byte, byte_lock::none); }

  std::string folder_path, index_path, data_path;
  descriptor index, data;
  std::byte* memory = nullptr;
  std::uint64_t memory_size = 0;
  sigbus_guard guard;
  block_index table{nullptr, {}};
  const std::byte* blocks = nullptr;  // the file of the blocks; null if it is not mapped
  sigbus_guard blocks_guard;
  std::atomic<bool> stuck{false};  // the lock of the folder could not be had
  wait_stops stops;
};

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/block_files.ipp>
#endif
