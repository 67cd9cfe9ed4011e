// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/detail/block_folder.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/detail/file_lock.hpp>
#include <penstock/storage/detail/paths.hpp>
#include <penstock/storage/sigbus_guard.hpp>

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <random>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::blocks {

using files::descriptor;
using files::failure;

[[nodiscard]] inline std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct block_folder::state {
  // Bytes of the index file that are locked; none of them need be there.
  static constexpr std::uint64_t change_byte = std::uint64_t{1} << 40, users_byte = change_byte + 1,
                                 first_slot_byte = change_byte + 16;
  static constexpr std::chrono::milliseconds longest_change{10'000};

  state(const disk_cache& where, checksum_call sum_of)
      : checksum(sum_of),
        once(where.options().verify == verify::once),
        touches(where.options().evict == eviction::lru),
        folder_path(without_slashes(where.folder())),
        index_path(folder_path + "/penstock.index"),
        data_path(folder_path + "/penstock.blocks") {
    const std::uint64_t block = where.options().block;
    const shape wanted{block, piece_size, block_index::slots_within(where.limit(), block, piece_size)};
    open_files();
    open_index(wanted);
    waited = std::vector<std::atomic<std::uint32_t>>(to_size(wanted.slots));
    if (once) seen = std::vector<std::atomic<std::uint32_t>>(to_size(wanted.slots * wanted.pieces()));
    table.begin_change();
    sweep();
    table.end_change();
    (void)lock_byte(index.get(), change_byte, byte_lock::none);
    forks::join(*this);
  }
  ~state() {
    forks::leave(*this);
    if (memory != nullptr) ::munmap(memory, to_size(memory_size));
    if (blocks != nullptr) ::munmap(const_cast<std::byte*>(blocks), to_size(data_size()));
  }

  // ---- opening

  [[nodiscard]] static std::string without_slashes(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path;
  }
  [[nodiscard]] error refusal(std::string_view what) const {
    return error(errc::argument, what).in_file(folder_path);
  }
  [[nodiscard]] descriptor open_folder() const {
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(folder_path).parent_path(), failed);
    if (::mkdir(folder_path.c_str(), 0700) != 0 && errno != EEXIST)
      throw failure("make the cache folder", folder_path, errno);
    descriptor opened(::open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat status {};
    if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0)
      throw failure("open the cache folder", folder_path, errno);
    if (status.st_uid != ::geteuid())
      throw refusal(
          text({"the cache folder belongs to user ", status.st_uid, ", and this process is of user ",
                ::geteuid(), "; give each user a folder of its own"}));
    if ((status.st_mode & 022) != 0)
      throw refusal(
          "others may write to the cache folder; forbid it with `chmod go-w`, or give another folder");
    return opened;
  }
  [[nodiscard]] descriptor open_own(int folder, const char* name, const std::string& path) const {
    descriptor opened(::openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    struct stat status {};
    if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0) throw failure("open the cache", path, errno);
    if (!S_ISREG(status.st_mode) || status.st_nlink > 1 || status.st_uid != ::geteuid())
      throw error(errc::argument, "this is no file of a cache; give the cache another folder").in_file(path);
    return opened;
  }
  /// Whether a path still leads to an open file: another process may have deleted the folder.
  [[nodiscard]] static bool leads_to(const std::string& path, int opened) noexcept {
    struct stat there {
    }, here{};
    return ::stat(path.c_str(), &there) == 0 && ::fstat(opened, &here) == 0 && there.st_ino == here.st_ino &&
           there.st_dev == here.st_dev;
  }
  /// Opens both files, and takes the lock of the folder.
  void open_files() {
    for (int tries = 0;; ++tries) {
      const descriptor folder = open_folder();
      index = open_own(folder.get(), "penstock.index", index_path);
      data = open_own(folder.get(), "penstock.blocks", data_path);
      const int code = try_lock_byte(index.get(), change_byte, byte_lock::exclusive);
      if (code != 0 && code != EAGAIN && code != EACCES)
        throw error(errc::argument,
                    "this file system has no locks that belong to open files; put the cache on "
                    "a local disk")
            .in_file(index_path);
      if (code != 0 && !lock_folder())
        throw error(errc::io, {"another process has changed the cache for more than ", longest_change.count(),
                               " ms; is it stopped?"})
            .in_file(index_path);
      if (leads_to(index_path, index.get()) && leads_to(data_path, data.get())) return;
      if (tries == 10)
        throw error(errc::io, "the cache is deleted again and again while it is opened").in_file(folder_path);
    }
  }
  void open_index(const shape& wanted) {
    std::array<std::byte, 4096> first{};
    std::array<std::byte, 64> head{};
    const ssize_t got = ::pread(index.get(), first.data(), first.size(), 0);
    const ssize_t got_data = ::pread(data.get(), head.data(), head.size(), 0);
    if (got < 0 || got_data < 0) throw failure("read the cache", got < 0 ? index_path : data_path, errno);
    shape found;
    std::uint32_t version = 0;
    switch (block_index::look(first.data(), static_cast<std::size_t>(got), found, version)) {
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
        if (found == wanted && size_of(index.get()) == block_index::bytes(wanted)) {
          map_index(wanted);
          if (head == block_index::data_head_of(table.pair())) {
            (void)lock_users(byte_lock::shared);
            return map_blocks();
          }
          unmap_index();
        }
        break;
    }
    if (!block_index::is_data(head.data(), static_cast<std::size_t>(got_data)))
      throw error(errc::argument, "this is no file of a cache; give the cache another folder")
          .in_file(data_path);
    if (!lock_users(byte_lock::exclusive))
      throw refusal(
          found == shape() || found == wanted
              ? text({"the cache is in use, and one of its files was deleted or cut off; end the "
                      "programs that use it, or give another folder"})
              : text({"the cache is in use with ", found.slots, " blocks of ", found.block,
                      " bytes, and not as this program wants it, with ", wanted.slots, " of ", wanted.block,
                      "; give all of its users the same limit and size of blocks, or "
                      "other folders"}));
    make_index(wanted);
  }
  [[nodiscard]] static std::uint64_t size_of(int opened) noexcept {
    struct stat status {};
    return ::fstat(opened, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }
  /// Of both files: one may be deleted while the other is in use.
  [[nodiscard]] bool lock_users(byte_lock how) const noexcept {
    return lock_byte(index.get(), users_byte, how) && lock_byte(data.get(), users_byte, how);
  }
  void make_index(const shape& wanted) {
    const std::uint64_t size = block_index::bytes(wanted);
    const auto cut = [](int opened, std::uint64_t to) { return ::ftruncate(opened, static_cast<off_t>(to)); };
    if (cut(data.get(), 0) != 0) throw failure("empty the cache", data_path, errno);
    if (cut(index.get(), 0) != 0) throw failure("empty the cache", index_path, errno);
    // A page that finds no room on the disk when it is written would be a signal.
    int code = EINTR;
    while (code == EINTR) code = ::posix_fallocate(index.get(), 0, static_cast<off_t>(size));
    if (code != 0) {
      (void)cut(index.get(), 0);
      throw failure("make the cache's index", index_path, code);
    }
    std::random_device random;
    const std::uint64_t pair = std::uint64_t{random()} << 32 | random();
    const auto head = block_index::data_head_of(pair);
    if (::pwrite(data.get(), head.data(), head.size(), 0) != static_cast<ssize_t>(head.size()))
      throw failure("make the cache", data_path, errno);
    map_index(wanted);
    table.write_head(pair);
    table.make_ready();
    (void)lock_users(byte_lock::shared);
    map_blocks();
  }
  void map_index(const shape& wanted) {
    memory_size = block_index::bytes(wanted);
    void* const mapped =
        ::mmap(nullptr, to_size(memory_size), PROT_READ | PROT_WRITE, MAP_SHARED, index.get(), 0);
    if (mapped == MAP_FAILED) throw failure("map the cache's index", index_path, errno);
    (void)::madvise(mapped, to_size(memory_size), MADV_DONTFORK);  // see `forks`
    memory = static_cast<std::byte*>(mapped);
    guard = sigbus_guard(mutable_bytes(memory, to_size(memory_size)));
    table = block_index(memory, wanted);
  }
  void unmap_index() noexcept {
    guard = sigbus_guard();
    ::munmap(memory, to_size(memory_size));
    memory = nullptr;
  }
  /// As long as all blocks, so that nothing of the mapping lies behind its end; what was never written takes
  /// no room. Without a mapping blocks are read.
  void map_blocks() {
    if (::ftruncate(data.get(), static_cast<off_t>(data_size())) != 0) return;
    void* const all = ::mmap(nullptr, to_size(data_size()), PROT_READ, MAP_SHARED, data.get(), 0);
    if (all == MAP_FAILED) return;
    (void)::madvise(all, to_size(data_size()), MADV_DONTFORK);
    blocks = static_cast<const std::byte*>(all);
    blocks_guard = sigbus_guard(bytes_view(blocks, to_size(data_size())));
  }
  [[nodiscard]] std::uint64_t data_size() const noexcept {
    return block_index::data_head + table.of().slots * table.of().block;
  }

  /// Closes the files in the child of a fork, which has no mapping of them, either: the locks belong to open
  /// files, and the child would keep those of a parent that dies.
  class forks {
   public:
    static void join(state& one) {
      forks& all = process();
      const std::scoped_lock lock(all.mutex_);
      if (!std::exchange(all.asks_, true))
        (void)::pthread_atfork([] { process().mutex_.lock(); }, [] { process().mutex_.unlock(); }, &in_child);
      all.open_.push_back(&one);
    }
    static void leave(state& one) noexcept {
      forks& all = process();
      const std::scoped_lock lock(all.mutex_);
      std::erase(all.open_, &one);
    }

   private:
    // Never destroyed: a process may fork while it ends.
    static forks& process() {
      static forks* const all = new forks;
      return *all;
    }
    static void in_child() {
      for (state* const one : process().open_) {
        one->index = descriptor();
        one->data = descriptor();
        one->memory = nullptr;
        one->blocks = nullptr;
      }
      process().mutex_.unlock();
    }
    std::mutex mutex_;
    bool asks_ = false;
    std::vector<state*> open_;
  };

  // ---- locks

  /// Waits for the lock of the folder; false if it cannot be had in time. Whoever holds it for so long is
  /// stopped, and the next reads do not wait as long again.
  [[nodiscard]] bool lock_folder() noexcept {
    const auto most = stuck.load(std::memory_order_relaxed) ? longest_change / 100 : longest_change;
    const auto end = std::chrono::steady_clock::now() + most;
    for (unsigned tries = 0; !lock_byte(index.get(), change_byte, byte_lock::exclusive); ++tries) {
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

  /// The right to change which block is where.
  class change {
   public:
    explicit change(state& all) : all_(all), thread_(all.changes), locked_(all.lock_folder()) {
      // What the dead one was about to fill may have no block yet by which it would be found.
      if (locked_ && !all_.guard.lost() && all_.table.begin_change()) all_.sweep();
      // A page of the index that cannot be had is 0 from then on, for this process alone.
      if (locked_ && all_.guard.lost()) {
        (void)lock_byte(all_.index.get(), change_byte, byte_lock::none);
        locked_ = false;
      }
    }
    change(const change&) = delete;
    change& operator=(const change&) = delete;
    ~change() {
      if (!locked_) return;
      all_.table.end_change();
      (void)lock_byte(all_.index.get(), change_byte, byte_lock::none);
    }
    [[nodiscard]] explicit operator bool() const noexcept { return locked_; }

   private:
    state& all_;
    std::unique_lock<std::mutex> thread_;  // locks of a file do not keep threads of one session apart
    bool locked_;
  };

  /// Whether whoever fills a slot lives.
  [[nodiscard]] bool is_filled_now(std::uint32_t slot) {
    const std::scoped_lock lock(fills_mutex);
    return std::ranges::find(fills, slot) != fills.end() || is_locked(index.get(), first_slot_byte + slot);
  }
  /// Takes the lock of a slot. False if another one has it.
  [[nodiscard]] bool begin_fill(std::uint32_t slot) {
    const std::scoped_lock lock(fills_mutex);
    if (std::ranges::find(fills, slot) != fills.end()) return false;
    fills.push_back(slot);
    if (lock_byte(index.get(), first_slot_byte + slot, byte_lock::exclusive)) return true;
    fills.pop_back();
    return false;
  }
  void end_fill(std::uint32_t slot) noexcept {
    const std::scoped_lock lock(fills_mutex);
    (void)lock_byte(index.get(), first_slot_byte + slot, byte_lock::none);
    std::erase(fills, slot);
  }
  /// Frees what processes that died were filling. The caller may change the folder.
  void sweep() {
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
  void free(std::uint32_t slot) noexcept {
    table.drop(slot);
    wake(slot);
  }
  void wake(std::uint32_t slot) noexcept {
    ::syscall(SYS_futex, table.word_of(slot), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  // ---- bytes

  [[nodiscard]] off_t offset_of(std::uint32_t slot) const noexcept {
    return static_cast<off_t>(block_index::data_head + slot * table.of().block);
  }
  /// An errno value, or 0.
  [[nodiscard]] int write(std::uint32_t slot, bytes_view bytes) const noexcept {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t wrote = ::pwrite(data.get(), bytes.data() + done, bytes.size() - done,
                                     offset_of(slot) + static_cast<off_t>(done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return wrote < 0 ? errno : ENOSPC;
      done += static_cast<std::size_t>(wrote);
    }
    return 0;
  }
  [[nodiscard]] bool read(std::span<iovec> parts, off_t at) const noexcept {
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
  /// Gives the disk what a free slot had. The caller may change the folder.
  void punch(std::uint32_t slot) const noexcept {
    (void)::fallocate(data.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(slot),
                      static_cast<off_t>(table.of().block));
  }
  /// Gives up blocks so that the disk has room for one.
  [[nodiscard]] bool make_room() {
    const change lock(*this);
    if (!lock) return false;
    bool any = false;
    for (int i = 0; i < 2; ++i) {
      const auto old = table.oldest(true);
      if (!old) break;
      free(old->slot);
      punch(old->slot);
      evicted.fetch_add(1, std::memory_order_relaxed);
      any = true;
    }
    return any;
  }

  inline static std::atomic<std::uint64_t> sessions{0};
  const std::uint64_t number = ++sessions;
  checksum_call checksum;
  bool once, touches;
  std::atomic<bool> trusts{true};  // with `once`
  std::string folder_path, index_path, data_path;
  descriptor index, data;
  std::byte* memory = nullptr;
  std::uint64_t memory_size = 0;
  sigbus_guard guard;
  block_index table{nullptr, {}};
  const std::byte* blocks = nullptr;
  sigbus_guard blocks_guard;
  std::atomic<bool> stuck{false};  // the lock of the folder could not be had
  std::mutex changes;
  std::mutex fills_mutex;
  std::vector<std::uint32_t> fills;                // the slots that this session's threads fill
  std::vector<std::atomic<std::uint32_t>> waited;  // the states that somebody waited for in vain
  std::atomic<std::int64_t> rests_until{0};        // after a block found no room; and for how long it was
  std::atomic<std::int64_t> last_rest{0};
  std::atomic<std::uint64_t> evicted{0};
  std::vector<std::atomic<std::uint32_t>> seen;  // with `once`: the state in which a piece was compared
};

PENSTOCK_INLINE block_folder::block_folder(const disk_cache& where, checksum_call checksum)
    : state_(new state(where, checksum)) {}
PENSTOCK_INLINE block_folder::~block_folder() = default;

PENSTOCK_INLINE std::uint64_t block_folder::block_size() const noexcept { return state_->table.of().block; }

PENSTOCK_INLINE std::optional<place> block_folder::find(const key& what,
                                                        std::atomic<std::uint32_t>& hint) noexcept {
  const block_index& table = state_->table;
  // A page of the index that could not be read is 0 from then on, for this process alone.
  if (state_->guard.lost()) return std::nullopt;
  const std::uint32_t last = hint.load(std::memory_order_relaxed);
  std::optional<place> found;
  if (last != 0) found = table.full_of(last - 1, what);
  if (!found) {
    // Without the lock a chain may lead astray; then the block is asked for.
    if (const auto seen = table.find(what); seen && seen->now() == phase::full)
      found = table.full_of(seen->slot, what);
    if (found) hint.store(found->slot + 1, std::memory_order_relaxed);
  }
  if (found && state_->touches) table.touch(found->slot);
  return found;
}

PENSTOCK_INLINE bool block_folder::in_memory(place where, std::uint64_t offset) const noexcept {
#if defined(RWF_NOWAIT)
  std::byte one{};
  const iovec into{&one, 1};
  const off_t at = state_->offset_of(where.slot) + static_cast<off_t>(offset);
  // A file system that does not know is one that is slow to answer, or memory itself.
  const ssize_t got = ::preadv2(state_->data.get(), &into, 1, at, RWF_NOWAIT);
  return got == 1 || (got < 0 && errno == EOPNOTSUPP && ::pread(state_->data.get(), &one, 1, at) == 1);
#else
  return false;
#endif
}

PENSTOCK_INLINE block_folder::copied block_folder::copy(place from, const key& what, std::uint64_t size,
                                                        std::uint64_t offset, mutable_bytes into, bool warm) {
  state& all = *state_;
  const std::uint64_t first = offset / piece_size, last = (offset + into.size() - 1) / piece_size;
  const off_t begin = all.offset_of(from.slot);
  const auto end_of = [size](std::uint64_t piece) { return std::min((piece + 1) * piece_size, size); };
  const auto matches = [&](const std::byte* bytes, std::uint64_t piece) {
    return all.checksum(bytes, to_size(end_of(piece) - piece * piece_size), what.low + piece) ==
           all.table.sum(from.slot, piece);
  };
  const auto seen_at = [&](std::uint64_t piece) -> std::atomic<std::uint32_t>& {
    return all.seen[to_size(from.slot * all.table.of().pieces() + piece)];
  };
  // Where a read failed, what was compared before may be gone, too.
  bool known = all.once && all.trusts.load(std::memory_order_relaxed);
  for (std::uint64_t p = first; known && p <= last; ++p)
    known = seen_at(p).load(std::memory_order_relaxed) == from.state;
  if (warm && all.blocks != nullptr && !all.blocks_guard.lost()) {
    // A thread that goes on in the piece that it compared last need not compare it again.
    struct compared {
      std::uint64_t session = 0, piece = 0;
      place where;
    };
    thread_local compared recent;
    const std::byte* const block = all.blocks + begin;
    bool good = true;
    for (std::uint64_t p = first; good && p <= last; ++p) {
      const bool just_now = recent.session == all.number && recent.piece == p &&
                            recent.where.slot == from.slot && recent.where.state == from.state;
      good = known || just_now || matches(block + p * piece_size, p);
      if (good) recent = {all.number, p, from};
      // While the processor still has it.
      const std::uint64_t at = std::max(offset, p * piece_size);
      const std::uint64_t end = std::min(offset + into.size(), end_of(p));
      std::memcpy(into.data() + (at - offset), block + at, to_size(end - at));
    }
    if (!all.table.still_same(from)) return copied::moved;
    // What could not be loaded is 0 from then on.
    if (!all.blocks_guard.lost()) {
      if (good && all.once && !known)
        for (std::uint64_t p = first; p <= last; ++p) seen_at(p).store(from.state, std::memory_order_relaxed);
      return good ? copied::whole : copied::damaged;
    }
  }
  if (known && all.blocks_guard.lost()) {
    known = false;
    all.trusts.store(false, std::memory_order_relaxed);
  }
  if (known) {
    iovec whole{into.data(), into.size()};
    const bool read = all.read({&whole, 1}, begin + static_cast<off_t>(offset));
    if (!all.table.still_same(from)) return copied::moved;
    if (!read) all.trusts.store(false, std::memory_order_relaxed);
    return read ? copied::whole : copied::damaged;
  }

  // Whole pieces are read where they are wanted; of others, at both ends, only a part is.
  thread_local std::vector<std::byte> scratch(to_size(2 * piece_size));
  const std::uint64_t end = offset + into.size();
  struct edge {
    std::uint64_t piece;
    std::byte* memory;
  };
  const bool cut_front = offset != first * piece_size || (first == last && end != end_of(first));
  const bool cut_back = last != first && end != end_of(last);
  std::array<iovec, 3> parts;
  std::size_t count = 0;
  const auto add = [&](std::byte* where, std::uint64_t bytes) {
    if (bytes != 0) parts[count++] = {where, to_size(bytes)};
  };
  const std::uint64_t middle = cut_front ? end_of(first) : offset;
  const std::uint64_t middle_end = cut_back ? last * piece_size : std::max(middle, end);
  if (cut_front) add(scratch.data(), end_of(first) - first * piece_size);
  if (middle < middle_end && middle < end) add(into.data() + (middle - offset), middle_end - middle);
  std::byte* const back = scratch.data() + piece_size;
  if (cut_back) add(back, end_of(last) - last * piece_size);
  bool good = all.read(std::span(parts).first(count), begin + static_cast<off_t>(first * piece_size));
  for (std::uint64_t p = first; good && p <= last; ++p) {
    const std::byte* bytes = scratch.data();
    if (p == last && cut_back)
      bytes = back;
    else if (p != first || !cut_front)
      bytes = into.data() + (p * piece_size - offset);
    good = matches(bytes, p);
  }
  if (!all.table.still_same(from)) return copied::moved;
  if (!good) return copied::damaged;
  if (cut_front)
    std::memcpy(into.data(), scratch.data() + (offset - first * piece_size),
                to_size(std::min(end, end_of(first)) - offset));
  if (cut_back)
    std::memcpy(into.data() + (last * piece_size - offset), back, to_size(end - last * piece_size));
  if (all.once)
    for (std::uint64_t p = first; p <= last; ++p) seen_at(p).store(from.state, std::memory_order_relaxed);
  return copied::whole;
}

PENSTOCK_INLINE block_folder::answer block_folder::ask(const key& what) {
  state& all = *state_;
  const state::change lock(all);
  if (!lock) return {};
  if (const auto found = all.table.find(what)) {
    if (found->now() == phase::full) return {answer::here, *found};
    if (all.is_filled_now(found->slot) || !all.begin_fill(found->slot)) {
      if (!all.table.same(*found)) return {answer::here, *found};
      if (all.waited[found->slot].load(std::memory_order_relaxed) == found->state) return {};
      return {answer::other, *found};
    }
    if (!all.table.same(*found)) {  // it was filled just now
      all.end_fill(found->slot);
      return {answer::here, *found};
    }
    return {answer::mine, all.table.take(found->slot, what)};
  }
  if (now_ns() < all.rests_until.load(std::memory_order_relaxed)) return {};
  auto old = all.table.oldest();
  if (!old) {
    all.sweep();
    old = all.table.oldest();
    if (!old) return {};
  }
  // Who has published it may not have let go of it; if he is stopped, another one goes.
  for (int tries = 0; !all.begin_fill(old->slot); ++tries) {
    if (tries == 200) return {};
    if (tries >= 50) {
      all.table.touch_now(old->slot);
      old = all.table.oldest();
      if (!old) return {};
    }
    std::this_thread::yield();
  }
  if (old->now() == phase::full) all.evicted.fetch_add(1, std::memory_order_relaxed);
  return {answer::mine, all.table.take(old->slot, what)};
}

PENSTOCK_INLINE bool block_folder::fill(place mine, const key& what, bytes_view bytes) {
  state& all = *state_;
  int code = all.write(mine.slot, bytes);
  for (int tries = 0; (code == ENOSPC || code == EDQUOT) && tries < 3 && all.make_room(); ++tries)
    code = all.write(mine.slot, bytes);
  if (code != 0) {
    give_up(mine);
    // The next ones would not find room, either, and each would be fetched whole for a part of it.
    const std::int64_t rest =
        std::clamp<std::int64_t>(2 * all.last_rest.load(), 1'000'000'000, 60'000'000'000);
    all.last_rest.store(rest);
    all.rests_until.store(now_ns() + rest);
    return false;
  }
  all.last_rest.store(0, std::memory_order_relaxed);
  for (std::uint64_t at = 0, p = 0; at < bytes.size(); at += piece_size, ++p) {
    const bytes_view piece = bytes.subspan(to_size(at), to_size(std::min(piece_size, bytes.size() - at)));
    all.table.set_sum(mine.slot, p, all.checksum(piece.data(), piece.size(), what.low + p));
  }
  const bool published = all.table.publish(mine);
  all.end_fill(mine.slot);
  all.wake(mine.slot);
  return published && !all.guard.lost();
}
PENSTOCK_INLINE void block_folder::give_up(place mine) noexcept {
  state& all = *state_;
  try {
    const state::change lock(all);
    if (lock && all.table.same(mine)) {
      all.free(mine.slot);
      all.punch(mine.slot);
    }
  } catch (...) {  // whoever asks for it next finds that nobody fills it
  }
  all.end_fill(mine.slot);
}

PENSTOCK_INLINE bool block_folder::wait(place other, std::uint64_t most_ns) noexcept {
  state& all = *state_;
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(most_ns);
  constexpr timespec slice{0, 20'000'000};
  while (all.table.same(other)) {
    if (std::chrono::steady_clock::now() >= end) return false;
    ::syscall(SYS_futex, all.table.word_of(other.slot), FUTEX_WAIT, other.state, &slice, nullptr, 0);
    if (all.table.same(other) && !all.is_filled_now(other.slot)) return true;
  }
  return true;
}

PENSTOCK_INLINE void block_folder::waited_in_vain(place other) noexcept {
  state_->waited[other.slot].store(other.state, std::memory_order_relaxed);
}
PENSTOCK_INLINE std::uint64_t block_folder::evicted() const noexcept {
  return state_->evicted.load(std::memory_order_relaxed);
}

PENSTOCK_INLINE void block_folder::discard(place damaged) {
  state& all = *state_;
  const state::change lock(all);
  if (lock && all.table.same(damaged)) all.free(damaged.slot);
}

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1
