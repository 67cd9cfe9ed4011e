// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<xxhash.h>)
#error "penstock/storage/cache/memory_reads.hpp needs xxHash: link penstock::cache"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/cached_objects.hpp>
#include <penstock/storage/cache/memory_blocks.hpp>
#include <penstock/storage/cache/planned_objects.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/local/paths.hpp>
#include <penstock/storage/memory_cache.hpp>
#include <penstock/storage/reads/wait_stops.hpp>
#include <penstock/storage/storage_counters.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail::blocks {

/// What this thread fills: a cache that is around itself must not wait for that.
class own_fill {
 public:
  own_fill(const memory_blocks& blocks, std::uint32_t slot) noexcept
      : blocks_(&blocks), slot_(slot), before_(std::exchange(newest(), this)) {}
  own_fill(const own_fill&) = delete;
  own_fill& operator=(const own_fill&) = delete;
  ~own_fill() { newest() = before_; }

  [[nodiscard]] static bool has(const memory_blocks& blocks, std::uint32_t slot) noexcept {
    for (const own_fill* one = newest(); one != nullptr; one = one->before_)
      if (one->blocks_ == &blocks && one->slot_ == slot) return true;
    return false;
  }

 private:
  [[nodiscard]] static const own_fill*& newest() noexcept {
    thread_local const own_fill* one = nullptr;
    return one;
  }

  const memory_blocks* blocks_;
  std::uint32_t slot_;
  const own_fill* before_;
};

/// The session of `cached` with a `memory_cache`, without reads in the background.
template <class Far>
class memory_reads {
 public:
  using far_session = typename Far::session;

  memory_reads(const Far& far, const memory_cache& near)
      : far_(far.connect()),
        near_(near),
        blocks_(near_.blocks()),
        objects_(far_, far.names(), is_local(far), blocks_.block_size()),
        planned_(blocks_.block_size()) {}
  memory_reads(const memory_reads&) = delete;
  memory_reads& operator=(const memory_reads&) = delete;
  ~memory_reads() {
    if (follows_) blocks_.leave(planned_.plan());
  }

  [[nodiscard]] std::uint64_t size(object_id id) { return objects_.at(id).version.size; }
  [[nodiscard]] object_version version(object_id id) { return objects_.at(id).version; }
  void confirm(object_id id) const { penstock::confirm(far_, id); }

  /// Whether all blocks of an object are here. Calls 1, 2, 4, 8 and so on look, until it is so; after a read
  /// that finds a block gone they begin again.
  [[nodiscard]] bool resident(object_id id) {
    cached_object& what = objects_.at(id);
    if (what.is_resident.load(std::memory_order_relaxed)) return true;
    if (!what.looks()) return false;
    std::uint64_t number = 0;
    for (std::uint64_t begin = 0; begin < what.version.size; begin += blocks_.block_size(), ++number)
      if (!blocks_.has(what.key_of(number), what.hints[to_size(number)])) return false;
    what.is_resident.store(true, std::memory_order_relaxed);
    return true;
  }

  void read(object_id id, std::uint64_t offset, mutable_bytes into) {
    cached_object& what = objects_.at(id);
    files::check_range(offset, into.size(), what.version.size, objects_.name(id));
    const wait_stops::moment begun = stops_.now();
    for_each_block(blocks_.block_size(), offset, into,
                   [&](std::uint64_t number, std::uint64_t within, mutable_bytes part) {
                     read_block(id, what, number, within, part, begun);
                   });
  }

  /// See `planning_session`. The other storage hears of everything, since what goes from here is read
  /// there.
  void plan_read(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) {
    if (plans_) {
      if (!follows_) blocks_.follow(planned_.plan());
      follows_ = true;
      planned_.plan_read(id, objects_.at(id), offset, size, row);
    }
    if constexpr (planning_session<far_session>)
      if (far_.access_plan().self != nullptr) far_.plan_read(id, offset, size, row);
  }
  [[nodiscard]] access_plan_sink access_plan() noexcept {
    if (!plans_ && far_plan().self == nullptr) return {};
    return {this, [](void* self) { return static_cast<memory_reads*>(self)->has_room(); },
            [](void* self, std::uint64_t row, std::uint64_t seen, bool ends) noexcept {
              auto& me = *static_cast<memory_reads*>(self);
              me.planned_.plan().stand_at(row, seen, ends);
              if (const access_plan_sink far = me.far_plan(); far.self != nullptr)
                far.stand_at(far.self, row, seen, ends);
            },
            [](void* self) noexcept {
              auto& me = *static_cast<memory_reads*>(self);
              me.planned_.plan().clear();
              if (const access_plan_sink far = me.far_plan(); far.self != nullptr) far.forget(far.self);
            }};
  }
  [[nodiscard]] far_session& far() noexcept { return far_; }
  void stop_waiting() noexcept {
    stops_.stop();
    blocks_.wake();
  }
  /// No read waits any more. Nothing is fetched ahead: from memory that is what a run does itself.
  void end() noexcept {
    stops_.stop_for_good();
    blocks_.wake();
  }

  void add_to(storage_counters& all) const noexcept {
    all.hits += hits_.load(std::memory_order_relaxed);
    all.fetched += fetched_.load(std::memory_order_relaxed);
    all.evicted += evicted_.load(std::memory_order_relaxed);
    all.uncached += uncached_.load(std::memory_order_relaxed);
  }

 private:
  using counter = std::atomic<std::uint64_t>;

  [[nodiscard]] access_plan_sink far_plan() noexcept {
    if constexpr (planning_session<far_session>) return far_.access_plan();
    return {};
  }
  [[nodiscard]] bool has_room() {
    const access_plan_sink far = far_plan();
    return planned_.plan().has_room() && (far.self == nullptr || far.has_room(far.self));
  }

  void read_block(object_id id, cached_object& what, std::uint64_t number, std::uint64_t within,
                  mutable_bytes into, wait_stops::moment begun) {
    const key wanted = what.key_of(number);
    std::atomic<std::uint32_t>& hint = what.hints[to_size(number)];
    const auto is_copied = [&] {
      const auto found = blocks_.find(wanted, hint);
      if (!found) return false;
      std::memcpy(into.data(), found.bytes() + within, into.size());
      hits_.fetch_add(1, std::memory_order_relaxed);
      return true;
    };
    if (is_copied()) return;
    const std::uint64_t begin = number * blocks_.block_size();
    const auto late = std::chrono::steady_clock::now() + near_.options().max_wait;
    // Blocks that go as fast as they come are read past the cache.
    constexpr unsigned max_moves = 1000;
    for (unsigned moves = 0; moves < max_moves; ++moves) {
      const memory_blocks::answer got = blocks_.ask(wanted, hint);
      if (got.is == memory_blocks::answer::nothing) break;
      if (got.is == memory_blocks::answer::mine) {
        what.cool();
        const std::uint64_t size = std::min(blocks_.block_size(), what.version.size - begin);
        return fetch(id, begin, got, to_size(size), within, into);
      }
      if (got.is == memory_blocks::answer::other) {
        if (own_fill::has(blocks_, got.slot) || !blocks_.wait(got, late, stops_, begun)) break;
        if (stops_.since(begun))
          throw error(errc::stopped, "the read was cancelled")
              .in_file(objects_.name(id))
              .at_offset(begin + within);
      }
      if (is_copied()) return;
    }
    uncached_.fetch_add(1, std::memory_order_relaxed);
    far_.read(id, begin + within, into);
  }

  void fetch(object_id id, std::uint64_t begin, const memory_blocks::answer& mine, std::size_t size,
             std::uint64_t within, mutable_bytes into) {
    std::byte* const room = blocks_.room(mine);
    if (mine.evicted) evicted_.fetch_add(1, std::memory_order_relaxed);
    try {
      const own_fill mark(blocks_, mine.slot);
      far_.read(id, begin, {room, size});
    } catch (...) {
      blocks_.give_up(mine);
      throw;
    }
    const auto kept = blocks_.publish(mine);
    fetched_.fetch_add(1, std::memory_order_relaxed);
    std::memcpy(into.data(), room + within, into.size());
  }

  far_session far_;
  memory_cache near_;
  memory_blocks& blocks_;
  cached_objects<far_session> objects_;
  planned_objects planned_;
  const bool plans_ = near_.options().evict == eviction::belady;
  bool follows_ = false;  // of the thread that plans_reads
  wait_stops stops_;
  counter hits_{0}, fetched_{0}, evicted_{0}, uncached_{0};
};

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1
