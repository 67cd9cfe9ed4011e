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
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::blocks {

using files::descriptor;
using files::failure;

struct block_folder::state {
  // Bytes of the index file that are locked; none of them need be there.
  static constexpr std::uint64_t change_byte = std::uint64_t{1} << 40, users_byte = change_byte + 1,
                                 first_slot_byte = change_byte + 16;
  static constexpr std::chrono::milliseconds longest_change{10'000};

  state(const disk_cache& where, checksum_call sum_of)
      : checksum(sum_of),
        once(where.options().verify == verify::once),
        touches(where.options().evict == eviction::lru),
        index_path((std::filesystem::path(where.folder()) / "penstock.index").string()),
        data_path((std::filesystem::path(where.folder()) / "penstock.blocks").string()) {
    make_folder(where.folder());
    index = open_own(index_path);
    data = open_own(data_path);
    const std::uint64_t block = where.options().block;
    const shape wanted{block, piece_size, block_index::slots_within(where.limit(), block, piece_size)};
    if (!lock_folder())
      throw error(errc::io, {"another process has changed the cache for more than ", longest_change.count(),
                             " ms; is it stopped?"})
          .in_file(index_path);
    open_index(wanted);
    if (once) seen = std::vector<std::atomic<std::uint32_t>>(to_size(wanted.slots * wanted.pieces()));
    table.begin_change();
    sweep();
    table.end_change();
    (void)lock_byte(index.get(), change_byte, byte_lock::none);
  }
  ~state() {
    if (memory != nullptr) ::munmap(memory, to_size(memory_size));
    if (blocks != nullptr) ::munmap(const_cast<std::byte*>(blocks), to_size(blocks_size()));
  }

  // ---- opening

  static void make_folder(const std::string& path) {
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
      throw failure("make the cache folder", path, errno);
  }
  [[nodiscard]] static descriptor open_own(const std::string& path) {
    descriptor opened(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (opened.get() < 0) throw failure("open the cache", path, errno);
    struct stat status {};
    if (::fstat(opened.get(), &status) != 0) throw failure("open the cache", path, errno);
    if (!S_ISREG(status.st_mode))
      throw error(errc::argument, "this is no file of a cache; give the cache another folder").in_file(path);
    if (status.st_uid != ::geteuid())
      throw error(errc::argument,
                  {"the cache belongs to user ", status.st_uid, ", and this process is of user ", ::geteuid(),
                   "; give each user a folder of its own"})
          .in_file(path);
    return opened;
  }
  void open_index(const shape& wanted) {
    std::array<std::byte, 4096> first{};
    const ssize_t got = ::pread(index.get(), first.data(), first.size(), 0);
    if (got < 0) throw failure("read the cache", index_path, errno);
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
                     block_index::version, "; give each version a folder of its own, or delete this one"})
            .in_file(index_path);
      case block_index::head::empty:
        return make_index(wanted);
      case block_index::head::ready:
        break;
    }
    struct stat status {};
    const bool whole = ::fstat(index.get(), &status) == 0 &&
                       static_cast<std::uint64_t>(status.st_size) == block_index::bytes(wanted);
    if (found == wanted && whole) {
      (void)lock_byte(index.get(), users_byte, byte_lock::shared);
      return map_index(wanted);
    }
    if (!lock_byte(index.get(), users_byte, byte_lock::exclusive))
      throw error(errc::argument,
                  {"the cache is in use with ", found.slots, " blocks of ", found.block,
                   " bytes, and not as this program wants it, with ", wanted.slots, " of ", wanted.block,
                   "; give all of its users the same limit and size of blocks, or other folders"})
          .in_file(index_path);
    make_index(wanted);
  }
  void make_index(const shape& wanted) {
    const std::uint64_t size = block_index::bytes(wanted);
    const auto cut = [](int opened, std::uint64_t to) { return ::ftruncate(opened, static_cast<off_t>(to)); };
    if (cut(index.get(), 0) != 0 || cut(data.get(), 0) != 0)
      throw failure("empty the cache", index_path, errno);
    // A page that finds no room on the disk when it is written would be a signal.
    if (const int code = ::posix_fallocate(index.get(), 0, static_cast<off_t>(size)); code != 0) {
      (void)cut(index.get(), 0);
      throw failure("make the cache's index", index_path, code);
    }
    map_index(wanted);
    table.write_head();
    (void)::fsync(index.get());
    table.make_ready();
    (void)lock_byte(index.get(), users_byte, byte_lock::shared);
  }
  void map_index(const shape& wanted) {
    memory_size = block_index::bytes(wanted);
    void* const mapped =
        ::mmap(nullptr, to_size(memory_size), PROT_READ | PROT_WRITE, MAP_SHARED, index.get(), 0);
    if (mapped == MAP_FAILED) throw failure("map the cache's index", index_path, errno);
    memory = static_cast<std::byte*>(mapped);
    guard = sigbus_guard({memory, to_size(memory_size)});
    table = block_index(memory, wanted);

    // As long as all blocks, so that nothing of the mapping lies behind its end; what was never written takes
    // no room. Without a mapping blocks are read.
    if (::ftruncate(data.get(), static_cast<off_t>(blocks_size())) != 0) return;
    void* const all = ::mmap(nullptr, to_size(blocks_size()), PROT_READ, MAP_SHARED, data.get(), 0);
    if (all == MAP_FAILED) return;
    blocks = static_cast<const std::byte*>(all);
    blocks_guard = sigbus_guard({blocks, to_size(blocks_size())});
  }
  [[nodiscard]] std::uint64_t blocks_size() const noexcept { return table.of().slots * table.of().block; }

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
      if (locked_ && all_.table.begin_change()) all_.sweep();
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
    return static_cast<off_t>(slot * table.of().block);
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
      any = true;
    }
    return any;
  }

  inline static std::atomic<std::uint64_t> sessions{0};
  const std::uint64_t number = ++sessions;
  checksum_call checksum;
  bool once, touches;
  std::atomic<bool> trusts{true};  // with `once`
  std::string index_path, data_path;
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
  std::vector<std::uint32_t> fills;              // the slots that this session's threads fill
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
    if (!all.table.same(from)) return copied::moved;
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
    if (!all.table.same(from)) return copied::moved;
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
  add(into.data() + (middle - offset), middle < middle_end && middle < end ? middle_end - middle : 0);
  std::byte* const back = scratch.data() + piece_size;
  if (cut_back) add(back, end_of(last) - last * piece_size);
  bool good = all.read(std::span(parts).first(count), begin + static_cast<off_t>(first * piece_size));
  for (std::uint64_t p = first; good && p <= last; ++p) {
    const std::byte* bytes = into.data() + (p * piece_size - offset);
    if (p == first && cut_front) bytes = scratch.data();
    if (p == last && cut_back) bytes = back;
    good = matches(bytes, p);
  }
  if (!all.table.same(from)) return copied::moved;
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
  if (!lock || all.guard.lost()) return {};
  if (const auto found = all.table.find(what)) {
    if (found->now() == phase::full) return {answer::here, *found};
    if (all.is_filled_now(found->slot) || !all.begin_fill(found->slot))
      return {all.table.same(*found) ? answer::other : answer::here, *found};
    if (!all.table.same(*found)) {  // it was filled just now
      all.end_fill(found->slot);
      return {answer::here, *found};
    }
    return {answer::mine, all.table.take(found->slot, what)};
  }
  auto old = all.table.oldest();
  if (!old) {
    all.sweep();
    old = all.table.oldest();
    if (!old) return {};
  }
  // Who has published it may not have let go of it.
  for (int tries = 0; !all.begin_fill(old->slot); ++tries) {
    if (tries == 1000) return {};
    std::this_thread::yield();
  }
  const bool evicted = old->now() == phase::full;
  return {answer::mine, all.table.take(old->slot, what), evicted};
}

PENSTOCK_INLINE bool block_folder::fill(place mine, const key& what, bytes_view bytes) {
  state& all = *state_;
  int code = all.write(mine.slot, bytes);
  for (int tries = 0; (code == ENOSPC || code == EDQUOT) && tries < 3 && all.make_room(); ++tries)
    code = all.write(mine.slot, bytes);
  if (code != 0) {
    give_up(mine);
    return false;
  }
  for (std::uint64_t at = 0, p = 0; at < bytes.size(); at += piece_size, ++p) {
    const bytes_view piece = bytes.subspan(to_size(at), to_size(std::min(piece_size, bytes.size() - at)));
    all.table.set_sum(mine.slot, p, all.checksum(piece.data(), piece.size(), what.low + p));
  }
  const bool published = all.table.publish(mine);
  all.end_fill(mine.slot);
  all.wake(mine.slot);
  return published;
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

PENSTOCK_INLINE void block_folder::discard(place damaged) {
  state& all = *state_;
  const state::change lock(all);
  if (lock && all.table.same(damaged)) all.free(damaged.slot);
}

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1
