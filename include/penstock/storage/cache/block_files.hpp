// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/local/own_files.hpp>
#include <penstock/storage/reads/wait_stops.hpp>
#include <penstock/storage/sigbus_guard.hpp>

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail::blocks {

using files::descriptor;
using files::failure;

/// The two files of a folder of blocks, opened and mapped by one session: the index, and the blocks.
///
/// Both say which one belongs to the other, and whoever uses them holds a shared lock of a byte of each, so
/// that neither is made anew while it is in use. Another byte of the index is the lock of the folder, one for
/// each row of `next_uses` is that of the session whose row it is, and one for each slot that of whoever
/// fills it.
struct block_files {
  // Bytes that are locked; none of them need be there.
  static constexpr std::uint64_t change_byte = std::uint64_t{1} << 40, users_byte = change_byte + 1,
                                 first_row_byte = change_byte + 16,
                                 first_slot_byte = first_row_byte + next_uses::maximum;
  static constexpr std::chrono::milliseconds longest_change{10'000};

  /// Opens or makes the folder, and takes its lock. Throws as `disk_cache` says.
  block_files(const std::string& folder, const shape& wanted);
  ~block_files();

  // ---- opening

  [[nodiscard]] static error no_cache_file(const std::string& path);
  [[nodiscard]] descriptor open_own(int folder, const char* name, const std::string& path) const;
  /// Whether a path still leads to an open file: another process may have deleted the folder.
  [[nodiscard]] static bool leads_to(const std::string& path, int opened) noexcept;
  void open_files();
  void open_index(const shape& wanted);
  /// Of both files: one may be deleted while the other is in use.
  [[nodiscard]] bool lock_users(byte_lock how) const noexcept;
  void make_index(const shape& wanted);
  /// A file's first bytes, as many as there are.
  [[nodiscard]] static std::size_t read_first(int opened, std::span<std::byte> into, const std::string& path);

  // ---- mappings

  void map_index(const shape& wanted);
  void unmap_index() noexcept;
  /// As long as all blocks, so that nothing of the mapping lies behind its end; what was never written takes
  /// no room. Without a mapping blocks are read.
  void map_blocks();
  void unmap() noexcept;

  // ---- the lock of the folder

  /// Waits for it; false if it cannot be had in time, or if `stops` ends a wait that began then. Whoever
  /// holds it for so long is stopped, and the next reads do not wait as long again.
  [[nodiscard]] bool lock_folder(wait_stops::moment begun) noexcept;
  void unlock_folder() const noexcept;

  /// The right to change which block is where.
  class change {
   public:
    change(block_files& all, wait_stops::moment begun);
    ~change();
    [[nodiscard]] explicit operator bool() const noexcept { return locked_; }

   private:
    block_files& all_;
    std::unique_lock<std::mutex> thread_;  // locks of a file do not keep threads of one session apart
    bool locked_;
  };

  /// Whether whoever fills a slot lives.
  [[nodiscard]] bool is_filled_now(std::uint32_t slot);
  /// Takes the lock of a slot. False if another one has it.
  [[nodiscard]] bool begin_fill(std::uint32_t slot);
  void end_fill(std::uint32_t slot) noexcept;
  /// Frees what processes that died were filling. The caller may change the folder.
  void sweep();
  void free(std::uint32_t slot) noexcept;
  void wake(std::uint32_t slot) noexcept;

  // ---- blocks

  [[nodiscard]] std::uint64_t data_size() const noexcept;
  [[nodiscard]] off_t offset_of(std::uint32_t slot) const noexcept;
  [[nodiscard]] int write(std::uint32_t slot, bytes_view bytes) const noexcept;
  [[nodiscard]] bool read(std::span<iovec> parts, off_t at) const noexcept;
  /// Gives the disk what a free slot had. The caller may change the folder.
  void punch(std::uint32_t slot) const noexcept;

  std::string folder_path, index_path, data_path;
  descriptor index, data;
  std::byte* memory = nullptr;
  std::uint64_t memory_size = 0;
  sigbus_guard guard;
  block_index table{nullptr, {}};
  const std::byte* blocks = nullptr;  // the file of the blocks; null if it is not mapped
  sigbus_guard blocks_guard;
  std::atomic<bool> stuck{false};  // the lock of the folder could not be had
  std::mutex changes, fills_mutex;
  std::vector<std::uint32_t> fills;  // the slots that this session's threads fill
  wait_stops stops;
  files::in_child_of_fork forks;
};

}  // namespace penstock::inline v0_1::detail::blocks

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/block_files.ipp>
#endif
