// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/block_files.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <random>
#include <thread>

namespace penstock::inline v0_1::detail::blocks {

PENSTOCK_INLINE block_files::block_files(const std::string& folder, const shape& wanted)
    : folder_path(files::without_slashes(folder)),
      index_path(folder_path + "/penstock.index"),
      data_path(folder_path + "/penstock.blocks") {
  open_files();
  try {
    open_index(wanted);
    forks.call(this, [](void* self) noexcept {
      auto& me = *static_cast<block_files*>(self);
      me.index = descriptor();
      me.data = descriptor();
      me.memory = nullptr;
      me.blocks = nullptr;
    });
  } catch (...) {
    unmap();
    throw;
  }
}
PENSTOCK_INLINE block_files::~block_files() { unmap(); }
PENSTOCK_INLINE error block_files::no_cache_file(const std::string& path) {
  return error(errc::argument, "this is no file of a cache; give the cache another folder").in_file(path);
}
PENSTOCK_INLINE descriptor block_files::open_own(int folder, const char* name,
                                                 const std::string& path) const {
  descriptor opened(::openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat status {};
  if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0) throw failure("open the cache", path, errno);
  if (!S_ISREG(status.st_mode) || status.st_nlink > 1 || status.st_uid != ::geteuid())
    throw no_cache_file(path);
  return opened;
}
PENSTOCK_INLINE bool block_files::leads_to(const std::string& path, int opened) noexcept {
  struct stat there {
  }, here{};
  return ::stat(path.c_str(), &there) == 0 && ::fstat(opened, &here) == 0 && there.st_ino == here.st_ino &&
         there.st_dev == here.st_dev;
}

PENSTOCK_INLINE void block_files::open_files() {
  for (int tries = 0;; ++tries) {
    const descriptor folder = files::open_own_folder(folder_path, "the cache folder");
    index = open_own(folder.get(), "penstock.index", index_path);
    data = open_own(folder.get(), "penstock.blocks", data_path);
    const int code = try_lock_byte(index.get(), change_byte, byte_lock::exclusive);
    if (code != 0 && code != EAGAIN && code != EACCES)
      throw error(errc::argument,
                  "this file system has no locks that belong to open files; put the cache on "
                  "a local disk")
          .in_file(index_path);
    if (code != 0 && !lock_folder(stops.now()))
      throw error(errc::io, {"another process has changed the cache for more than ", longest_change.count(),
                             " ms; is it stopped?"})
          .in_file(index_path);
    if (leads_to(index_path, index.get()) && leads_to(data_path, data.get())) return;
    if (tries == 10)
      throw error(errc::io, "the cache is deleted again and again while it is opened").in_file(folder_path);
  }
}

PENSTOCK_INLINE void block_files::open_index(const shape& wanted) {
  std::array<std::byte, 4096> first{};
  std::array<std::byte, 64> head{};
  const std::size_t got = read_first(index.get(), first, index_path);
  const std::size_t got_data = read_first(data.get(), head, data_path);
  shape found;
  std::uint32_t version = 0;
  switch (block_index::look(first.data(), got, found, version)) {
    case block_index::head::foreign:
      throw error(errc::argument, "this is no index of a cache; give the cache another folder")
          .in_file(index_path);
    case block_index::head::other_version:
      throw error(errc::argument,
                  {"the cache is of version ", version,
                   ", or of a machine with another byte order, and this "
                   "program has version ",
                   block_index::version,
                   "; give each version a folder of its own, or delete the folder when nobody uses it"})
          .in_file(index_path);
    case block_index::head::empty:
      break;
    case block_index::head::ready:
      if (found == wanted && files::version_of(index.get(), index_path).size == block_index::bytes(wanted)) {
        map_index(wanted);
        if (head == block_index::data_head_of(table.pair())) {
          (void)lock_users(byte_lock::shared);
          return map_blocks();
        }
        unmap_index();
      }
      break;
  }
  if (!block_index::is_data(head.data(), got_data)) throw no_cache_file(data_path);
  if (!lock_users(byte_lock::exclusive))
    throw error(
        errc::argument,
        found == shape() || found == wanted
            ? text({"the cache is in use, and one of its files was deleted or cut off; end the "
                    "programs that use it, or give another folder"})
            : text({"the cache is in use with ", found.slots, " blocks of ", found.block,
                    " bytes, and not as this program wants it, with ", wanted.slots, " of ", wanted.block,
                    "; give all of its users the same limit and size of blocks, or other folders"}))
        .in_file(folder_path);
  make_index(wanted);
}
PENSTOCK_INLINE bool block_files::lock_users(byte_lock how) const noexcept {
  return lock_byte(index.get(), users_byte, how) && lock_byte(data.get(), users_byte, how);
}

PENSTOCK_INLINE void block_files::make_index(const shape& wanted) {
  const std::uint64_t size = block_index::bytes(wanted);
  const auto cut = [](int opened, std::uint64_t to) { return ::ftruncate(opened, static_cast<off_t>(to)); };
  if (cut(data.get(), 0) != 0) throw failure("empty the cache", data_path, errno);
  if (cut(index.get(), 0) != 0) throw failure("empty the cache", index_path, errno);
  std::random_device random;
  const std::uint64_t pair = std::uint64_t{random()} << 32 | random();
  const int unwritten = files::write_at(data.get(), 0, block_index::data_head_of(pair)).code;
  if (unwritten != 0) throw failure("make the cache", data_path, unwritten);
  // A page that finds no room on the disk when it is written would be a signal.
  int code = EINTR;
  while (code == EINTR) code = ::posix_fallocate(index.get(), 0, static_cast<off_t>(size));
  // Not through the mapping, where a death could leave a half of it.
  if (code == 0) code = files::write_at(index.get(), 0, block_index::index_head_of(wanted, pair)).code;
  if (code != 0) {
    (void)cut(index.get(), 0);
    throw failure("make the cache's index", index_path, code);
  }
  map_index(wanted);
  table.make_ready();
  (void)lock_users(byte_lock::shared);
  map_blocks();
}

PENSTOCK_INLINE std::size_t block_files::read_first(int opened, std::span<std::byte> into,
                                                    const std::string& path) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(opened, into.data() + done, into.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw failure("read the cache", path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

PENSTOCK_INLINE void block_files::map_index(const shape& wanted) {
  memory_size = block_index::bytes(wanted);
  void* const mapped =
      ::mmap(nullptr, to_size(memory_size), PROT_READ | PROT_WRITE, MAP_SHARED, index.get(), 0);
  if (mapped == MAP_FAILED) throw failure("map the cache's index", index_path, errno);
  (void)::madvise(mapped, to_size(memory_size), MADV_DONTFORK);  // the child has not got the files, either
  memory = static_cast<std::byte*>(mapped);
  guard = sigbus_guard(mutable_bytes(memory, to_size(memory_size)));
  table = block_index(memory, wanted);
}
PENSTOCK_INLINE void block_files::unmap_index() noexcept {
  guard = sigbus_guard();
  ::munmap(memory, to_size(memory_size));
  memory = nullptr;
}
PENSTOCK_INLINE void block_files::map_blocks() {
  if (::ftruncate(data.get(), static_cast<off_t>(data_size())) != 0) return;
  void* const all = ::mmap(nullptr, to_size(data_size()), PROT_READ, MAP_SHARED, data.get(), 0);
  if (all == MAP_FAILED) return;
  (void)::madvise(all, to_size(data_size()), MADV_DONTFORK);
  blocks = static_cast<const std::byte*>(all);
  blocks_guard = sigbus_guard(bytes_view(blocks, to_size(data_size())));
}
PENSTOCK_INLINE void block_files::unmap() noexcept {
  if (memory != nullptr) unmap_index();
  blocks_guard = sigbus_guard();
  if (blocks != nullptr) ::munmap(const_cast<std::byte*>(blocks), to_size(data_size()));
}

PENSTOCK_INLINE bool block_files::lock_folder(wait_stops::moment begun) noexcept {
  const auto maximum = stuck.load(std::memory_order_relaxed) ? longest_change / 100 : longest_change;
  const auto end = std::chrono::steady_clock::now() + maximum;
  for (unsigned tries = 0; !lock_byte(index.get(), change_byte, byte_lock::exclusive); ++tries) {
    if (stops.since(begun)) return false;
    if (std::chrono::steady_clock::now() > end) {
      stuck.store(true, std::memory_order_relaxed);
      return false;
    }
    if (tries < 50)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  stuck.store(false, std::memory_order_relaxed);
  return true;
}
PENSTOCK_INLINE void block_files::unlock_folder() const noexcept {
  (void)lock_byte(index.get(), change_byte, byte_lock::none);
}

PENSTOCK_INLINE block_files::change::change(block_files& all, wait_stops::moment begun)
    : all_(all), thread_(all.changes), locked_(all.lock_folder(begun)) {
  // What the dead one was about to fill may have no block yet by which it would be found.
  if (locked_ && !all_.guard.lost() && all_.table.begin_change()) all_.sweep();
  // A page of the index that cannot be had is 0 from then on, for this process alone.
  if (locked_ && all_.guard.lost()) {
    all_.unlock_folder();
    locked_ = false;
  }
}
PENSTOCK_INLINE block_files::change::~change() {
  if (!locked_) return;
  all_.table.end_change();
  all_.unlock_folder();
}
PENSTOCK_INLINE bool block_files::is_filled_now(std::uint32_t slot) {
  const std::scoped_lock lock(fills_mutex);
  return std::ranges::find(fills, slot) != fills.end() || is_locked(index.get(), first_slot_byte + slot);
}
PENSTOCK_INLINE bool block_files::begin_fill(std::uint32_t slot) {
  const std::scoped_lock lock(fills_mutex);
  if (std::ranges::find(fills, slot) != fills.end()) return false;
  fills.push_back(slot);
  if (lock_byte(index.get(), first_slot_byte + slot, byte_lock::exclusive)) return true;
  fills.pop_back();
  return false;
}
PENSTOCK_INLINE void block_files::end_fill(std::uint32_t slot) noexcept {
  const std::scoped_lock lock(fills_mutex);
  (void)lock_byte(index.get(), first_slot_byte + slot, byte_lock::none);
  std::erase(fills, slot);
}

PENSTOCK_INLINE void block_files::sweep() {
  for (std::uint32_t slot = 0; slot < table.of().slots; ++slot) {
    if (!table.held(slot)) continue;
    const phase now = table.look_at(slot).now();
    if (is_filled_now(slot)) continue;
    if (now == phase::full)
      table.settle(slot);
    else
      free(slot);
  }
}
PENSTOCK_INLINE void block_files::free(std::uint32_t slot) noexcept {
  table.drop(slot);
  wake(slot);
}
PENSTOCK_INLINE void block_files::wake(std::uint32_t slot) noexcept {
  ::syscall(SYS_futex, table.word_of(slot), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
PENSTOCK_INLINE std::uint64_t block_files::data_size() const noexcept {
  return block_index::data_head + table.of().slots * table.of().block;
}
PENSTOCK_INLINE off_t block_files::offset_of(std::uint32_t slot) const noexcept {
  return static_cast<off_t>(block_index::data_head + slot * table.of().block);
}
PENSTOCK_INLINE int block_files::write(std::uint32_t slot, bytes_view bytes) const noexcept {
  return files::write_at(data.get(), static_cast<std::uint64_t>(offset_of(slot)), bytes).code;
}

PENSTOCK_INLINE bool block_files::read(std::span<iovec> parts, off_t at) const noexcept {
  while (!parts.empty()) {
    const ssize_t got = ::preadv(data.get(), parts.data(), static_cast<int>(parts.size()), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    auto rest = static_cast<std::size_t>(got);
    while (!parts.empty() && rest >= parts.front().iov_len) {
      rest -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (!parts.empty()) {
      parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + rest;
      parts.front().iov_len -= rest;
    }
  }
  return true;
}
PENSTOCK_INLINE void block_files::punch(std::uint32_t slot) const noexcept {
  (void)::fallocate(data.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(slot),
                    static_cast<off_t>(table.of().block));
}

}  // namespace penstock::inline v0_1::detail::blocks
