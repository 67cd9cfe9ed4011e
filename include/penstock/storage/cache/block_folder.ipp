// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/block_folder.hpp>

#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <span>
#include <thread>
#include <utility>

namespace penstock::inline v0_1::detail::blocks {

PENSTOCK_INLINE block_folder::block_folder(const disk_cache& where, checksum_call checksum)
    : options_(where.options()),
      files_(where.folder(), {options_.block, piece_size,
                              block_index::slots_within(where.limit(), options_.block, piece_size)}),
      checksum_(checksum),
      once_(options_.verify == verify::once),
      waited_(to_size(files_.table.of().slots)),
      seen_(once_ ? to_size(files_.table.of().slots * files_.table.of().pieces()) : 0) {
  files_.table.begin_change();
  files_.sweep();
  files_.table.end_change();
  files_.unlock_folder();
}
PENSTOCK_INLINE block_folder::~block_folder() {
  // The child of a fork has no mapping, and no row.
  if (row_ != no_row && files_.memory != nullptr && !files_.guard.lost()) files_.table.next().end(row_);
}

PENSTOCK_INLINE std::optional<place> block_folder::find(const key& what,
                                                        std::atomic<std::uint32_t>& hint) noexcept {
  const block_index& table = files_.table;
  // A page of the index that could not be read is 0 from then on, for this process alone.
  if (files_.guard.lost()) return std::nullopt;
  const std::uint32_t last = hint.load(std::memory_order_relaxed);
  std::optional<place> found;
  if (last != 0) found = table.full_of(last - 1, what);
  if (!found) {
    // Without the lock a chain may lead astray; then the block is asked for.
    if (const auto seen = table.find(what); seen && seen->now() == phase::full)
      found = table.full_of(seen->slot, what);
    if (found) hint.store(found->slot + 1, std::memory_order_relaxed);
  }
  if (found && options_.evict != eviction::fifo) table.touch(found->slot);
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
    const int file = files_.data.get();
    const off_t at = files_.offset_of(found->slot) + static_cast<off_t>(mix64(salt + i) % size);
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
    const block_files::change lock(files_, begun);
    if (lock && files_.table.same(*found)) files_.free(found->slot);
  }
  return how;
}
PENSTOCK_INLINE void block_folder::end() noexcept {
  files_.stops.stop_for_good();
  ahead_.stop();
}

PENSTOCK_INLINE block_folder::answer block_folder::ask(const key& what, wait_stops::moment begun,
                                                       next_use when, bool ahead) {
  const block_files::change lock(files_, begun);
  if (!lock) return {};
  const std::uint32_t row = row_;
  const auto give = [&](std::uint32_t slot) -> answer {
    const place made = files_.table.take(slot, what);
    if (row != no_row) files_.table.next().set(row, slot, when);
    return {answer::mine, made};
  };
  if (const auto found = files_.table.find(what)) {
    if (found->now() == phase::full) return {answer::here, *found};
    if (files_.is_filled_now(found->slot) || !files_.begin_fill(found->slot)) {
      if (!files_.table.same(*found)) return {answer::here, *found};
      if (waited_[found->slot].load(std::memory_order_relaxed) == found->state) return {};
      return {answer::other, *found};
    }
    if (!files_.table.same(*found)) {  // it was filled just now
      files_.end_fill(found->slot);
      return {answer::here, *found};
    }
    return give(found->slot);
  }
  if (now_ns() < rests_until_.load(std::memory_order_relaxed)) return {};
  const outlook future = this->future();
  auto old = files_.table.least_needed(future);
  if (!old) {
    files_.sweep();
    old = files_.table.least_needed(future);
    if (!old) return {};
  }
  if (ahead && old->now() == phase::full && future.distance(old->slot) <= future.distance(row, when))
    return {};
  // The process that published it may still hold its lock; if that process is stopped, another block goes.
  for (int tries = 0; !files_.begin_fill(old->slot); ++tries) {
    if (tries == 200 || ahead) return {};
    if (tries >= 50) {
      files_.table.touch(old->slot);
      old = files_.table.least_needed(future);
      if (!old) return {};
    }
    std::this_thread::yield();
  }
  if (old->now() == phase::full) evicted_.fetch_add(1, std::memory_order_relaxed);
  return give(old->slot);
}

PENSTOCK_INLINE void block_folder::gives_back::operator()(std::byte* room) const noexcept {
  std::unique_ptr<std::byte[]> given(room);
  const std::scoped_lock lock(to->rooms_mutex_);
  try {
    to->rooms_.push_back(std::move(given));
  } catch (...) {  // then the next one makes another
    to->held_.fetch_sub(to->block_size(), std::memory_order_relaxed);
  }
}

PENSTOCK_INLINE std::unique_ptr<std::byte[], block_folder::gives_back> block_folder::room(place) {
  const std::scoped_lock lock(rooms_mutex_);
  if (rooms_.empty()) {
    rooms_.push_back(std::make_unique_for_overwrite<std::byte[]>(to_size(block_size())));
    held_.fetch_add(block_size(), std::memory_order_relaxed);
  }
  std::unique_ptr<std::byte[], gives_back> taken(rooms_.back().release(), {this});
  rooms_.pop_back();
  return taken;
}

PENSTOCK_INLINE bool block_folder::fill(place mine, const key& what, bytes_view bytes,
                                        wait_stops::moment begun) {
  int code = files_.write(mine.slot, bytes);
  for (int tries = 0; (code == ENOSPC || code == EDQUOT) && tries < 3 && make_room(begun); ++tries)
    code = files_.write(mine.slot, bytes);
  if (code != 0) {
    give_up(mine, begun);
    // The next ones would not find room, either, and each would be fetched whole for a part of it.
    const std::int64_t rest = std::clamp<std::int64_t>(2 * last_rest_.load(), 1'000'000'000, 60'000'000'000);
    last_rest_.store(rest);
    rests_until_.store(now_ns() + rest);
    return false;
  }
  last_rest_.store(0, std::memory_order_relaxed);
  for (std::uint64_t at = 0, p = 0; at < bytes.size(); at += piece_size, ++p) {
    const bytes_view piece = bytes.subspan(to_size(at), to_size(std::min(piece_size, bytes.size() - at)));
    files_.table.set_sum(mine.slot, p, checksum_(piece.data(), piece.size(), what.low + p));
  }
  const bool published = files_.table.publish(mine);
  files_.end_fill(mine.slot);
  files_.wake(mine.slot);
  return published && !files_.guard.lost();
}

PENSTOCK_INLINE void block_folder::give_up(place mine, wait_stops::moment begun) noexcept {
  try {
    const block_files::change lock(files_, begun);
    if (lock && files_.table.same(mine)) {
      files_.free(mine.slot);
      files_.punch(mine.slot);
    }
  } catch (...) {  // whoever asks for it next finds that nobody fills it
  }
  files_.end_fill(mine.slot);
}

PENSTOCK_INLINE bool block_folder::wait(place other, std::chrono::steady_clock::time_point late,
                                        wait_stops::moment begun) noexcept {
  // In slices, so that a death is noticed, and a run that ends is not kept waiting.
  constexpr timespec slice{0, 20'000'000};
  while (files_.table.same(other) && !files_.stops.since(begun)) {
    if (std::chrono::steady_clock::now() >= late) {
      waited_[other.slot].store(other.state, std::memory_order_relaxed);
      return false;
    }
    ::syscall(SYS_futex, files_.table.word_of(other.slot), FUTEX_WAIT, other.state, &slice, nullptr, 0);
    if (files_.table.same(other) && !files_.is_filled_now(other.slot)) return true;
  }
  return true;
}

PENSTOCK_INLINE void block_folder::stand_at(std::uint64_t run_row, std::uint64_t ns_per_row,
                                            next_use (*next)(const void* who, const key& block),
                                            const void* who) {
  if (files_.guard.lost()) return;
  if (row_ == no_row) {
    if (!wants_row_) return;
    const block_files::change lock(files_, files_.stops.now());
    if (!lock) return;
    take_row();
    wants_row_ = false;
    if (row_ == no_row) return;  // of more sessions than there are rows nobody knows
  }
  files_.table.stand_at(row_, run_row, ns_per_row, next, who);
}

PENSTOCK_INLINE void block_folder::stand_at(std::uint64_t run_row, bool ends, const block_plan& plan) {
  const std::int64_t now = now_ns();
  if (!first_) first_ = {run_row, now};
  const std::uint64_t rows = run_row - std::min(run_row, first_->row);
  if (ended_ && !ends) clear_row();  // blocks that were never needed again may be, now
  ended_ = ends;
  stand_at(
      run_row, rows == 0 ? 0 : static_cast<std::uint64_t>(now - first_->ns) / rows,
      [](const void* told, const key& block) { return static_cast<const block_plan*>(told)->next(block); },
      &plan);
}
PENSTOCK_INLINE void block_folder::forget() noexcept {
  first_.reset();
  ended_ = false;
  clear_row();
}
PENSTOCK_INLINE std::int64_t block_folder::now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

PENSTOCK_INLINE copied block_folder::copy_from(place from, const key& what, std::uint64_t size,
                                               std::uint64_t offset, mutable_bytes into, bool resident) {
  const std::uint64_t first = offset / piece_size, last = (offset + into.size() - 1) / piece_size;
  const off_t begin = files_.offset_of(from.slot);
  const auto end_of = [size](std::uint64_t piece) { return std::min((piece + 1) * piece_size, size); };
  const auto matches = [&](const std::byte* bytes, std::uint64_t piece) {
    return checksum_(bytes, to_size(end_of(piece) - piece * piece_size), what.low + piece) ==
           files_.table.sum(from.slot, piece);
  };
  const auto seen_at = [&](std::uint64_t piece) -> std::atomic<std::uint32_t>& {
    return seen_[to_size(from.slot * files_.table.of().pieces() + piece)];
  };
  // Where a read failed, what was compared before may be gone, too.
  bool known = once_ && trusts_.load(std::memory_order_relaxed);
  for (std::uint64_t p = first; known && p <= last; ++p)
    known = seen_at(p).load(std::memory_order_relaxed) == from.state;
  if (resident && files_.blocks != nullptr && !files_.blocks_guard.lost()) {
    // A thread that goes on in the piece that it compared last need not compare it again.
    struct compared {
      std::uint64_t session = 0, piece = 0;
      place where;
    };
    thread_local compared recent;
    constexpr std::uint64_t near_by = 4 * piece_size;  // what the processor still has after comparing it
    const std::byte* const block = files_.blocks + begin;
    const std::uint64_t end = offset + into.size();
    bool good = true;
    std::uint64_t copied_to = offset;
    for (std::uint64_t p = known ? last : first; good && p <= last; ++p) {
      const bool just_now = recent.session == number_ && recent.piece == p &&
                            recent.where.slot == from.slot && recent.where.state == from.state;
      good = known || just_now || matches(block + p * piece_size, p);
      if (good) recent = {number_, p, from};
      const std::uint64_t compared_to = std::min(end, end_of(p));
      if (p != last && compared_to - copied_to < near_by) continue;
      std::memcpy(into.data() + (copied_to - offset), block + copied_to, to_size(compared_to - copied_to));
      copied_to = compared_to;
    }
    if (!files_.table.still_same(from)) return copied::moved;
    // What could not be loaded is 0 from then on.
    if (!files_.blocks_guard.lost()) {
      if (good && once_ && !known)
        for (std::uint64_t p = first; p <= last; ++p) seen_at(p).store(from.state, std::memory_order_relaxed);
      return good ? copied::whole : copied::damaged;
    }
  }
  if (known && files_.blocks_guard.lost()) {
    known = false;
    trusts_.store(false, std::memory_order_relaxed);
  }
  // Whole pieces are read where they are wanted, and so is all that need not be compared; of other pieces,
  // at both ends, only a part is.
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
  bool good = files_.read(std::span(parts).first(count),
                          begin + static_cast<off_t>(cut_front ? first * piece_size : offset));
  if (known && !good) trusts_.store(false, std::memory_order_relaxed);
  for (std::uint64_t p = first; good && !known && p <= last; ++p) {
    const std::byte* bytes = scratch.data();
    if (p == last && cut_back)
      bytes = back;
    else if (p != first || !cut_front)
      bytes = into.data() + (p * piece_size - offset);
    good = matches(bytes, p);
  }
  if (!files_.table.still_same(from)) return copied::moved;
  if (!good) return copied::damaged;
  if (cut_front)
    std::memcpy(into.data(), scratch.data() + (offset - first * piece_size),
                to_size(std::min(end, end_of(first)) - offset));
  if (cut_back)
    std::memcpy(into.data() + (last * piece_size - offset), back, to_size(end - last * piece_size));
  if (once_ && !known)
    for (std::uint64_t p = first; p <= last; ++p) seen_at(p).store(from.state, std::memory_order_relaxed);
  return copied::whole;
}

PENSTOCK_INLINE outlook block_folder::future() noexcept {
  outlook rows;
  if (options_.evict != eviction::belady) return rows;
  const next_uses all = files_.table.next();
  for (std::uint32_t one = 0; one < next_uses::maximum; ++one) {
    if (!all.is_used(one)) continue;
    if (one == row_ || is_locked(files_.index.get(), block_files::first_row_byte + one))
      rows.add(all, one);
    else
      all.end(one);  // it died
  }
  rows.settle();
  return rows;
}
PENSTOCK_INLINE void block_folder::take_row() noexcept {
  const next_uses all = files_.table.next();
  for (std::uint32_t one = 0; one < next_uses::maximum && row_ == no_row; ++one) {
    if (!lock_byte(files_.index.get(), block_files::first_row_byte + one, byte_lock::exclusive)) continue;
    all.begin(one);
    row_ = one;
  }
}
PENSTOCK_INLINE void block_folder::clear_row() noexcept {
  if (row_ != no_row && !files_.guard.lost()) files_.table.next().clear(row_);
}

PENSTOCK_INLINE bool block_folder::make_room(wait_stops::moment begun) {
  const block_files::change lock(files_, begun);
  if (!lock) return false;
  bool any = false;
  for (int i = 0; i < 2; ++i) {
    const auto old = files_.table.least_needed(future(), true);
    if (!old) break;
    files_.free(old->slot);
    files_.punch(old->slot);
    evicted_.fetch_add(1, std::memory_order_relaxed);
    any = true;
  }
  return any;
}

}  // namespace penstock::inline v0_1::detail::blocks
