// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/block_folder.hpp>

#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/block_files.hpp>
#include <penstock/storage/cache/work_ahead.hpp>
#include <penstock/storage/local/file_lock.hpp>

#include <linux/futex.h>
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
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::blocks {

[[nodiscard]] inline std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct block_folder::state : block_files {
  static constexpr std::uint32_t no_row = next_uses::maximum;

  state(const disk_cache& where, checksum_call sum_of)
      : block_files(where.folder(),
                    {where.options().block, piece_size,
                     block_index::slots_within(where.limit(), where.options().block, piece_size)}),
        options(where.options()),
        checksum(sum_of),
        once(options.verify == verify::once),
        waited(to_size(table.of().slots)),
        seen(once ? to_size(table.of().slots * table.of().pieces()) : 0) {
    table.begin_change();
    sweep();
    table.end_change();
    unlock_folder();
  }

  ~state() {
    // The child of a fork has no mapping, and no row.
    if (row != no_row && memory != nullptr && !guard.lost()) table.next().end(row);
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  /// The next uses of all sessions that live. The caller may change the folder.
  [[nodiscard]] outlook future() noexcept {
    outlook rows;
    if (options.evict != eviction::belady) return rows;
    const next_uses all = table.next();
    for (std::uint32_t one = 0; one < next_uses::maximum; ++one) {
      if (!all.is_used(one)) continue;
      if (one == row || is_locked(index.get(), first_row_byte + one))
        rows.add(all, one);
      else
        all.end(one);  // it died
    }
    rows.settle();
    return rows;
  }
  /// Takes a row, if there is one. The caller may change the folder.
  void take_row() noexcept {
    const next_uses all = table.next();
    for (std::uint32_t one = 0; one < next_uses::maximum && row == no_row; ++one) {
      if (!lock_byte(index.get(), first_row_byte + one, byte_lock::exclusive)) continue;
      all.begin(one);
      row = one;
    }
  }
  void clear_row() noexcept {
    if (row != no_row && !guard.lost()) table.next().clear(row);
  }

  /// Gives up blocks so that the disk has room for one.
  [[nodiscard]] bool make_room(wait_stops::moment begun) {
    const change lock(*this, begun);
    if (!lock) return false;
    bool any = false;
    for (int i = 0; i < 2; ++i) {
      const auto old = table.least_needed(future(), true);
      if (!old) break;
      free(old->slot);
      punch(old->slot);
      evicted.fetch_add(1, std::memory_order_relaxed);
      any = true;
    }
    return any;
  }

  const disk_cache_options options;
  inline static std::atomic<std::uint64_t> sessions{0};
  const std::uint64_t number = ++sessions;
  checksum_call checksum;
  bool once;
  std::atomic<bool> trusts{true};          // with `once`
  std::atomic<std::uint32_t> row{no_row};  // in `next_uses`
  bool wants_row = true;
  std::vector<std::atomic<std::uint32_t>> waited;  // the states that somebody waited for in vain
  std::atomic<std::int64_t> rests_until{0};        // after a block found no room; and for how long it was
  std::atomic<std::int64_t> last_rest{0};
  std::atomic<std::uint64_t> evicted{0}, held{0};
  std::vector<std::atomic<std::uint32_t>> seen;  // with `once`: the state in which a piece was compared
  std::mutex rooms_mutex;
  std::vector<std::unique_ptr<std::byte[]>> rooms;
  // Of the thread that plans: where the run stood first, and whether the plan had its end.
  struct beginning {
    std::uint64_t row;
    std::int64_t ns;
  };
  std::optional<beginning> first;
  bool ended = false;
  work_ahead ahead;
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
  if (found && state_->options.evict != eviction::fifo) table.touch(found->slot);
  return found;
}

PENSTOCK_INLINE std::optional<unsigned> block_folder::places_missing(const key& what,
                                                                     std::atomic<std::uint32_t>& hint,
                                                                     std::uint64_t size,
                                                                     std::uint64_t salt) noexcept {
  const auto found = find(what, hint);
  if (!found) return std::nullopt;
  constexpr unsigned places = 4;
  unsigned there = 0;
#if defined(RWF_NOWAIT)
  for (unsigned i = 0; i < places; ++i) {
    std::byte one{};
    const iovec into{&one, 1};
    const int file = state_->data.get();
    const off_t at = state_->offset_of(found->slot) + static_cast<off_t>(mix64(salt + i) % size);
    // A file system that does not know is one that is slow to answer, or memory itself.
    const ssize_t got = ::preadv2(file, &into, 1, at, RWF_NOWAIT);
    if (got == 1 || (got < 0 && errno == EOPNOTSUPP && ::pread(file, &one, 1, at) == 1)) ++there;
  }
#endif
  return places - there;
}

PENSTOCK_INLINE copied block_folder::copy(const key& what, std::atomic<std::uint32_t>& hint,
                                          std::uint64_t size, std::uint64_t offset, mutable_bytes into,
                                          bool resident, wait_stops::moment begun) {
  const auto found = find(what, hint);
  if (!found) return copied::absent;
  const copied how = copy_from(*found, what, size, offset, into, resident);
  if (how == copied::damaged) {
    const state::change lock(*state_, begun);
    if (lock && state_->table.same(*found)) state_->free(found->slot);
  }
  return how;
}
PENSTOCK_INLINE copied block_folder::copy_from(place from, const key& what, std::uint64_t size,
                                               std::uint64_t offset, mutable_bytes into, bool resident) {
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
  if (resident && all.blocks != nullptr && !all.blocks_guard.lost()) {
    // A thread that goes on in the piece that it compared last need not compare it again.
    struct compared {
      std::uint64_t session = 0, piece = 0;
      place where;
    };
    thread_local compared recent;
    constexpr std::uint64_t near_by = 4 * piece_size;  // what the processor still has after comparing it
    const std::byte* const block = all.blocks + begin;
    const std::uint64_t end = offset + into.size();
    bool good = true;
    std::uint64_t copied_to = offset;
    for (std::uint64_t p = known ? last : first; good && p <= last; ++p) {
      const bool just_now = recent.session == all.number && recent.piece == p &&
                            recent.where.slot == from.slot && recent.where.state == from.state;
      good = known || just_now || matches(block + p * piece_size, p);
      if (good) recent = {all.number, p, from};
      const std::uint64_t compared_to = std::min(end, end_of(p));
      if (p != last && compared_to - copied_to < near_by) continue;
      std::memcpy(into.data() + (copied_to - offset), block + copied_to, to_size(compared_to - copied_to));
      copied_to = compared_to;
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
  // Whole pieces are read where they are wanted, and so is all that need not be compared; of other pieces, at
  // both ends, only a part is.
  thread_local std::vector<std::byte> scratch(to_size(2 * piece_size));
  const std::uint64_t end = offset + into.size();
  const bool cut_front = !known && (offset != first * piece_size || (first == last && end != end_of(first)));
  const bool cut_back = !known && last != first && end != end_of(last);
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
  bool good = all.read(std::span(parts).first(count),
                       begin + static_cast<off_t>(cut_front ? first * piece_size : offset));
  if (known && !good) all.trusts.store(false, std::memory_order_relaxed);
  for (std::uint64_t p = first; good && !known && p <= last; ++p) {
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
  if (all.once && !known)
    for (std::uint64_t p = first; p <= last; ++p) seen_at(p).store(from.state, std::memory_order_relaxed);
  return copied::whole;
}

PENSTOCK_INLINE block_folder::answer block_folder::ask(const key& what, wait_stops::moment begun,
                                                       next_use when, bool ahead) {
  state& all = *state_;
  const state::change lock(all, begun);
  if (!lock) return {};
  const std::uint32_t row = all.row;
  const auto give = [&](std::uint32_t slot) -> answer {
    const place made = all.table.take(slot, what);
    if (row != state::no_row) all.table.next().set(row, slot, when);
    return {answer::mine, made};
  };
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
    return give(found->slot);
  }
  if (now_ns() < all.rests_until.load(std::memory_order_relaxed)) return {};
  const outlook future = all.future();
  auto old = all.table.least_needed(future);
  if (!old) {
    all.sweep();
    old = all.table.least_needed(future);
    if (!old) return {};
  }
  if (ahead && old->now() == phase::full && future.distance(old->slot) <= future.distance(row, when))
    return {};
  // The process that published it may still hold its lock; if that process is stopped, another block goes.
  for (int tries = 0; !all.begin_fill(old->slot); ++tries) {
    if (tries == 200 || ahead) return {};
    if (tries >= 50) {
      all.table.touch(old->slot);
      old = all.table.least_needed(future);
      if (!old) return {};
    }
    std::this_thread::yield();
  }
  if (old->now() == phase::full) all.evicted.fetch_add(1, std::memory_order_relaxed);
  return give(old->slot);
}

PENSTOCK_INLINE bool block_folder::fill(place mine, const key& what, bytes_view bytes,
                                        wait_stops::moment begun) {
  state& all = *state_;
  int code = all.write(mine.slot, bytes);
  for (int tries = 0; (code == ENOSPC || code == EDQUOT) && tries < 3 && all.make_room(begun); ++tries)
    code = all.write(mine.slot, bytes);
  if (code != 0) {
    give_up(mine, begun);
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
PENSTOCK_INLINE void block_folder::give_up(place mine, wait_stops::moment begun) noexcept {
  state& all = *state_;
  try {
    const state::change lock(all, begun);
    if (lock && all.table.same(mine)) {
      all.free(mine.slot);
      all.punch(mine.slot);
    }
  } catch (...) {  // whoever asks for it next finds that nobody fills it
  }
  all.end_fill(mine.slot);
}

PENSTOCK_INLINE bool block_folder::wait(place other, std::chrono::steady_clock::time_point late,
                                        wait_stops::moment begun) noexcept {
  state& all = *state_;
  // In slices, so that a death is noticed, and a run that ends is not kept waiting.
  constexpr timespec slice{0, 20'000'000};
  while (all.table.same(other) && !all.stops.since(begun)) {
    if (std::chrono::steady_clock::now() >= late) {
      all.waited[other.slot].store(other.state, std::memory_order_relaxed);
      return false;
    }
    ::syscall(SYS_futex, all.table.word_of(other.slot), FUTEX_WAIT, other.state, &slice, nullptr, 0);
    if (all.table.same(other) && !all.is_filled_now(other.slot)) return true;
  }
  return true;
}

PENSTOCK_INLINE void block_folder::stand_at(std::uint64_t run_row, std::uint64_t ns_per_row,
                                            next_use (*next)(const void* who, const key& block),
                                            const void* who) {
  state& all = *state_;
  if (all.guard.lost()) return;
  if (all.row == state::no_row) {
    if (!all.wants_row) return;
    const state::change lock(all, all.stops.now());
    if (!lock) return;
    all.take_row();
    all.wants_row = false;
    if (all.row == state::no_row) return;  // of more sessions than there are rows nobody knows
  }
  all.table.stand_at(all.row, run_row, ns_per_row, next, who);
}
PENSTOCK_INLINE void block_folder::stand_at(std::uint64_t run_row, bool ends, const block_plan& plan) {
  state& all = *state_;
  const std::int64_t now = now_ns();
  if (!all.first) all.first = {run_row, now};
  const std::uint64_t rows = run_row - std::min(run_row, all.first->row);
  if (all.ended && !ends) all.clear_row();  // blocks that were never needed again may be, now
  all.ended = ends;
  stand_at(
      run_row, rows == 0 ? 0 : static_cast<std::uint64_t>(now - all.first->ns) / rows,
      [](const void* told, const key& block) { return static_cast<const block_plan*>(told)->next(block); },
      &plan);
}
PENSTOCK_INLINE void block_folder::forget() noexcept {
  state& all = *state_;
  all.first.reset();
  all.ended = false;
  all.clear_row();
}
PENSTOCK_INLINE void block_folder::fetch_ahead(bool (*task)(void* self), void* self) noexcept {
  if (state_->options.ahead != 0) state_->ahead.start(state_->options.ahead, task, self);
}
PENSTOCK_INLINE void block_folder::wake_ahead() noexcept { state_->ahead.wake(); }

PENSTOCK_INLINE wait_stops& block_folder::stops() noexcept { return state_->stops; }
PENSTOCK_INLINE void block_folder::end() noexcept {
  state_->stops.stop_for_good();
  state_->ahead.stop();
}
PENSTOCK_INLINE void block_folder::leave(const block_plan&) noexcept { state_->ahead.join(); }
PENSTOCK_INLINE std::uint64_t block_folder::slots() const noexcept { return state_->table.of().slots; }
PENSTOCK_INLINE std::uint64_t block_folder::evicted() const noexcept {
  return state_->evicted.load(std::memory_order_relaxed);
}
PENSTOCK_INLINE std::uint64_t block_folder::held() const noexcept {
  return state_->held.load(std::memory_order_relaxed);
}

PENSTOCK_INLINE block_folder::room::room(block_folder& all, place, std::size_t size)
    : all_(*all.state_), size_(size) {
  const std::scoped_lock lock(all_.rooms_mutex);
  if (all_.rooms.empty()) {
    bytes_.reset(new std::byte[to_size(all_.table.of().block)]);
    all_.held.fetch_add(all_.table.of().block, std::memory_order_relaxed);
  } else {
    bytes_ = std::move(all_.rooms.back());
    all_.rooms.pop_back();
  }
}
PENSTOCK_INLINE block_folder::room::~room() {
  const std::scoped_lock lock(all_.rooms_mutex);
  try {
    all_.rooms.push_back(std::move(bytes_));
  } catch (...) {  // then the next one makes another
    all_.held.fetch_sub(all_.table.of().block, std::memory_order_relaxed);
  }
}

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1
