// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<xxhash.h>)
#error "penstock/storage/cache/block_cache.hpp needs xxHash: link penstock::cache"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/block_folder.hpp>
#include <penstock/storage/cache/cached_objects.hpp>
#include <penstock/storage/cache/memory_blocks.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/local/paths.hpp>
#include <penstock/storage/memory_cache.hpp>
#include <penstock/storage/reads/wait_stops.hpp>
#include <penstock/storage/storage_counters.hpp>

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

// xxHash has this if it was built so that it chooses the processor's widest registers itself: on x86-64 it is
// three times as fast as the other one, which is made for every processor.
extern "C" [[gnu::weak]] XXH64_hash_t XXH3_64bits_withSeed_dispatch(const void* bytes, std::size_t size,
                                                                    XXH64_hash_t seed);

namespace penstock::inline v0_1 {
namespace detail::blocks {

[[nodiscard]] inline std::uint64_t xxh3(const void* bytes, std::size_t size, std::uint64_t seed) noexcept {
  if (&::XXH3_64bits_withSeed_dispatch != nullptr) return ::XXH3_64bits_withSeed_dispatch(bytes, size, seed);
  return ::XXH3_64bits_withSeed(bytes, size, seed);
}

/// The blocks of a `memory_cache` as one session sees them, with the members of `block_folder`. Checksums,
/// and what is there to do ahead of time, are for folders: a run that fetches ahead does so to memory itself.
class session_blocks {
 public:
  /// What goes from here is read there, so the other storage hears of everything.
  static constexpr bool tells_far = true;

  session_blocks(const memory_cache& where, checksum_call) : where_(where), blocks_(where_.blocks()) {}

  [[nodiscard]] std::uint64_t block_size() const noexcept { return blocks_.block_size(); }
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t held() const noexcept { return 0; }

  [[nodiscard]] std::optional<unsigned> places_missing(const key& what, std::atomic<std::uint32_t>& hint,
                                                       std::uint64_t, std::uint64_t) noexcept {
    if (!blocks_.has(what, hint)) return std::nullopt;
    return 0;
  }
  [[nodiscard]] copied copy(const key& what, std::atomic<std::uint32_t>& hint, std::uint64_t,
                            std::uint64_t offset, mutable_bytes into, bool, wait_stops::moment) noexcept {
    const auto found = blocks_.find(what, hint);
    if (!found) return copied::absent;
    std::memcpy(into.data(), found.bytes() + offset, into.size());
    return copied::whole;
  }

  [[nodiscard]] wait_stops& stops() noexcept { return stops_; }
  void stop_waiting() noexcept {
    stops_.stop();
    blocks_.wake();
  }
  void end() noexcept {
    stops_.stop_for_good();
    blocks_.wake();
  }
  void leave(const block_plan& plan) noexcept {
    if (follows_) blocks_.leave(plan);
  }

  struct answer {
    using enum memory_blocks::answer::kind;
    memory_blocks::answer::kind is;
    memory_blocks::answer where;
  };
  [[nodiscard]] answer ask(const key& what, wait_stops::moment, next_use) noexcept {
    std::atomic<std::uint32_t> hint{0};
    const memory_blocks::answer got = blocks_.ask(what, hint);
    if (got.evicted) evicted_.fetch_add(1, std::memory_order_relaxed);
    return {got.is, got};
  }
  class room {
   public:
    room(session_blocks& all, const memory_blocks::answer& mine, std::size_t size) noexcept
        : bytes_(all.blocks_.room(mine), size) {}
    [[nodiscard]] mutable_bytes span() const noexcept { return bytes_; }

   private:
    mutable_bytes bytes_;
  };
  bool fill(const memory_blocks::answer& mine, const key&, bytes_view, wait_stops::moment) noexcept {
    blocks_.publish(mine);
    return true;
  }
  void give_up(const memory_blocks::answer& mine, wait_stops::moment) noexcept { blocks_.give_up(mine); }
  [[nodiscard]] bool wait(const memory_blocks::answer& other, std::chrono::steady_clock::time_point late,
                          wait_stops::moment begun) noexcept {
    return !blocks_.is_own(other) && blocks_.wait(other, late, stops_, begun);
  }

  /// For the thread that plans.
  void follow(const block_plan& plan) {
    if (!follows_) blocks_.follow(plan);
    follows_ = true;
  }
  void stand_at(std::uint64_t, bool, const block_plan&) const noexcept {}
  void forget() const noexcept {}

 private:
  memory_cache where_;
  memory_blocks& blocks_;
  bool follows_ = false;
  wait_stops stops_;
  std::atomic<std::uint64_t> evicted_{0};
};

/// The session of `cached`, without reads in the background: objects of another storage in blocks, which are
/// in a folder or in memory.
template <class Near, class Far>
class block_cache {
  using blocks_type = std::conditional_t<std::is_same_v<Near, disk_cache>, block_folder, session_blocks>;
  static constexpr bool fetches_ahead = std::is_same_v<Near, disk_cache>;

 public:
  using far_session = typename Far::session;

  block_cache(const Far& far, const Near& near)
      : far_(far.connect()),
        blocks_(near, &xxh3),
        max_wait_(near.options().max_wait),
        plans_(near.options().evict == eviction::belady),
        objects_(session_view(far_), far.names(), is_local(far), blocks_.block_size()) {}
  block_cache(const block_cache&) = delete;
  block_cache& operator=(const block_cache&) = delete;
  ~block_cache() { blocks_.leave(objects_.plan()); }

  [[nodiscard]] std::uint64_t size(object_id id) { return objects_.at(id).version.size; }
  [[nodiscard]] object_version version(object_id id) { return objects_.at(id).version; }
  void confirm(object_id id) const { penstock::confirm(far_, id); }

  /// Whether all blocks of an object are in the cache, and the cache in memory. Calls 1, 2, 4, 8 and so on
  /// look, until it is so; after a read that finds a block gone they begin again.
  [[nodiscard]] bool resident(object_id id) {
    cached_object& what = objects_.at(id);
    if (what.is_resident.load(std::memory_order_relaxed)) return true;
    if (!what.looks()) return false;
    // The system begins to load what it is asked for, so other places are looked at each time.
    const std::uint64_t calls = what.calls.load(std::memory_order_relaxed), blocks = objects_.blocks_of(what);
    std::uint64_t missing = 0;
    for (std::uint64_t number = 0; number < blocks; ++number) {
      const auto places = blocks_.places_missing(what.key_of(number), what.hints[to_size(number)],
                                                 objects_.bytes_of(what, number), calls + 4 * number);
      if (!places) return false;
      missing += *places;
    }
    if (missing * 4 > blocks) return false;  // one of 16
    what.is_resident.store(true, std::memory_order_relaxed);
    return true;
  }

  void read(object_id id, std::uint64_t offset, mutable_bytes into) {
    cached_object& what = objects_.at(id);
    files::check_range(offset, into.size(), what.version.size, objects_.name(id));
    const wait_stops::moment begun = blocks_.stops().now();
    for (std::uint64_t block = blocks_.block_size(); !into.empty();) {
      const std::uint64_t within = offset % block;
      const std::size_t some = to_size(std::min<std::uint64_t>(into.size(), block - within));
      read_block(id, what, offset / block, within, into.first(some), begun);
      into = into.subspan(some);
      offset += some;
    }
  }

  /// See `planning_session`.
  void plan_read(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) {
    if (plans_) {
      blocks_.follow(objects_.plan());
      objects_.plan_read(id, offset, size, row);
    }
    if constexpr (tells_far)
      if (far_.access_plan().self != nullptr) far_.plan_read(id, offset, size, row);
  }
  /// With another kind of eviction nobody here wants to know.
  [[nodiscard]] access_plan_sink access_plan() noexcept {
    if (!plans_ && far_plan().self == nullptr) return {};
    return {this, [](void* self) { return static_cast<block_cache*>(self)->has_room(); },
            [](void* self, std::uint64_t row, std::uint64_t seen, bool ends) noexcept {
              static_cast<block_cache*>(self)->stand_at(row, seen, ends);
            },
            [](void* self) noexcept { static_cast<block_cache*>(self)->forget(); }};
  }

  [[nodiscard]] far_session& far() noexcept { return far_; }
  void stop_waiting() noexcept { blocks_.stop_waiting(); }
  /// Fetches nothing more ahead, and no read waits any more.
  void end() noexcept { blocks_.end(); }

  void add_to(storage_counters& all) const noexcept {
    all.hits += hits_.load(std::memory_order_relaxed);
    all.fetched += fetched_.load(std::memory_order_relaxed);
    all.evicted += blocks_.evicted();
    all.refetched += refetched_.load(std::memory_order_relaxed);
    all.corrupt += corrupt_.load(std::memory_order_relaxed);
    all.uncached += uncached_.load(std::memory_order_relaxed);
    all.held += blocks_.held();
  }

 private:
  using counter = std::atomic<std::uint64_t>;
  using answer = typename blocks_type::answer;
  static void count(counter& one) noexcept { one.fetch_add(1, std::memory_order_relaxed); }

  void read_block(object_id id, cached_object& what, std::uint64_t number, std::uint64_t within,
                  mutable_bytes into, wait_stops::moment begun) {
    const key wanted = what.key_of(number);
    std::atomic<std::uint32_t>& hint = what.hints[to_size(number)];
    std::optional<std::chrono::steady_clock::time_point> late;
    // Blocks that are damaged, or go as fast as they come, are read past the cache.
    constexpr unsigned max_damaged = 3, max_moves = 1000;
    for (unsigned damaged = 0, moves = 0; damaged < max_damaged && moves < max_moves;) {
      switch (blocks_.copy(wanted, hint, objects_.bytes_of(what, number), within, into,
                           what.is_resident.load(std::memory_order_relaxed), begun)) {
        case copied::whole:
          return count(hits_);
        case copied::moved:
          ++moves;
          continue;
        case copied::damaged:
          count(corrupt_);
          ++damaged;
          continue;
        case copied::absent:
          break;
      }
      if (!late) late = std::chrono::steady_clock::now() + max_wait_;
      const answer got = blocks_.ask(wanted, begun, objects_.next(what, number));
      if (got.is != answer::here) what.cool();
      if (got.is == answer::here || got.is == answer::mine)
        hint.store(got.where.slot + 1, std::memory_order_relaxed);
      if (got.is == answer::mine) {
        const bool kept = fetch(id, what, number, got, begun, within, into);
        if (damaged != 0) count(refetched_);
        if (!kept) count(uncached_);
        return;
      }
      const bool waited = got.is == answer::other && blocks_.wait(got.where, *late, begun);
      // A wait that was ended is no reason to read past the cache.
      if (got.is != answer::here && blocks_.stops().since(begun))
        throw error(errc::stopped, "the read was cancelled")
            .in_file(objects_.name(id))
            .at_offset(number * blocks_.block_size() + within);
      if (got.is != answer::here && !waited) break;
      ++moves;
    }
    count(uncached_);
    far_.read(id, number * blocks_.block_size() + within, into);
  }

  /// Reads a block from the other storage, and copies a part of it. Returns whether the cache keeps it.
  bool fetch(object_id id, cached_object& what, std::uint64_t number, const answer& mine,
             wait_stops::moment begun, std::uint64_t within = 0, mutable_bytes into = {}) {
    std::optional<typename blocks_type::room> whole;
    try {
      whole.emplace(blocks_, mine.where, to_size(objects_.bytes_of(what, number)));
      far_.read(id, number * blocks_.block_size(), whole->span());
    } catch (...) {
      blocks_.give_up(mine.where, begun);
      throw;
    }
    count(fetched_);
    std::ranges::copy(whole->span().subspan(to_size(within), into.size()), into.begin());
    return blocks_.fill(mine.where, what.key_of(number), whole->span(), begun);
  }

  // ---- what a run says that it will read
  static constexpr bool tells_far = blocks_type::tells_far && planning_session<far_session>;

  [[nodiscard]] access_plan_sink far_plan() noexcept {
    if constexpr (tells_far) return far_.access_plan();
    return {};
  }
  [[nodiscard]] bool has_room() {
    const access_plan_sink far = far_plan();
    return objects_.plan().has_room() && (far.self == nullptr || far.has_room(far.self));
  }
  void stand_at(std::uint64_t row, std::uint64_t seen, bool ends) noexcept {
    objects_.plan().stand_at(row, seen, ends);
    blocks_.stand_at(row, ends, objects_.plan());
    if constexpr (fetches_ahead)
      blocks_.fetch_ahead([](void* self) { return static_cast<block_cache*>(self)->fetch_one_ahead(); },
                          this);
    if (const access_plan_sink far = far_plan(); far.self != nullptr) far.stand_at(far.self, row, seen, ends);
  }
  void forget() noexcept {
    objects_.plan().clear();
    blocks_.forget();
    if (const access_plan_sink far = far_plan(); far.self != nullptr) far.forget(far.self);
  }
  /// Fetches one of the blocks that are needed next, if there is room for it. Returns whether to go on.
  [[nodiscard]] bool fetch_one_ahead() {
    // A block that comes early takes the place of one that is needed later: of a small part of them.
    constexpr std::uint64_t maximum = 64, part = 64;
    const wait_stops::moment begun = blocks_.stops().now();
    thread_local std::vector<block_plan::coming> coming;
    objects_.plan().list_coming(to_size(std::clamp<std::uint64_t>(blocks_.slots() / part, 1, maximum)),
                                coming);
    for (const block_plan::coming& one : coming) {
      const auto [id, number] = objects_.origin_of(one.block);
      cached_object& what = objects_.at(id);
      const key wanted = what.key_of(number);
      if (blocks_.find(wanted, what.hints[to_size(number)])) continue;
      const answer got = blocks_.ask(wanted, begun, next_use::at(one.row), true);
      if (got.is == answer::nothing) return false;
      if (got.is != answer::mine) continue;
      blocks_.wake_ahead();  // another thread looks for the next one meanwhile
      (void)fetch(id, what, number, got, begun);
      return true;
    }
    return false;
  }

  far_session far_;
  blocks_type blocks_;
  std::chrono::milliseconds max_wait_;
  bool plans_;
  cached_objects objects_;
  counter hits_{0}, fetched_{0}, refetched_{0}, corrupt_{0}, uncached_{0};
};

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1
