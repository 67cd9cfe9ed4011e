// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<xxhash.h>)
#error "penstock/storage/cache/cached_reads.hpp needs xxHash: link penstock::cache"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/block_folder.hpp>
#include <penstock/storage/cache/block_plan.hpp>
#include <penstock/storage/cache/cached_objects.hpp>
#include <penstock/storage/cache/next_uses.hpp>
#include <penstock/storage/cache/planned_objects.hpp>
#include <penstock/storage/cache/work_ahead.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/local/paths.hpp>
#include <penstock/storage/reads/wait_stops.hpp>
#include <penstock/storage/storage_counters.hpp>

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
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

/// The session of `cached`, without reads in the background.
template <class Far>
class cached_reads {
 public:
  using far_session = typename Far::session;

  cached_reads(const Far& far, const disk_cache& near)
      : far_(far.connect()),
        folder_(near, &xxh3),
        max_wait_ns_(static_cast<std::uint64_t>(std::chrono::nanoseconds(near.options().max_wait).count())),
        objects_(far_, far.names(), is_local(far), folder_.block_size()),
        planned_(folder_.block_size()),
        plans_(near.options().evict == eviction::belady),
        max_ahead_(near.options().ahead) {}

  [[nodiscard]] std::uint64_t size(object_id id) { return objects_.at(id).version.size; }
  [[nodiscard]] object_version version(object_id id) { return objects_.at(id).version; }
  void confirm(object_id id) const { penstock::confirm(far_, id); }

  /// Whether all blocks of an object are in the cache, and the cache in memory. Calls 1, 2, 4, 8 and so on
  /// look, until it is so; after a read that finds a block gone they begin again.
  [[nodiscard]] bool resident(object_id id) {
    cached_object& what = objects_.at(id);
    if (what.is_resident.load(std::memory_order_relaxed)) return true;
    if (!what.looks()) return false;
    const std::uint64_t calls = what.calls.load(std::memory_order_relaxed);
    constexpr std::uint64_t places = 4;  // of each block
    std::uint64_t missing = 0, number = 0;
    for (std::uint64_t begin = 0; begin < what.version.size; begin += folder_.block_size(), ++number) {
      const auto found = folder_.find(what.key_of(number), what.hints[to_size(number)]);
      if (!found) return false;
      const std::uint64_t size = std::min(folder_.block_size(), what.version.size - begin);
      // The system begins to load what it is asked for, so other places are looked at each time.
      for (std::uint64_t i = 0; i < places; ++i)
        if (!folder_.in_memory(*found, mix64(calls + number * places + i) % size)) ++missing;
    }
    if (missing * 16 > number * places) return false;
    what.is_resident.store(true, std::memory_order_relaxed);
    return true;
  }

  void read(object_id id, std::uint64_t offset, mutable_bytes into) {
    cached_object& what = objects_.at(id);
    files::check_range(offset, into.size(), what.version.size, objects_.name(id));
    const wait_stops::moment begun = folder_.stops().now();
    for_each_block(folder_.block_size(), offset, into,
                   [&](std::uint64_t number, std::uint64_t within, mutable_bytes part) {
                     read_block(id, what, number, within, part, begun);
                   });
  }

  /// See `planning_session`.
  void plan_read(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) {
    planned_.plan_read(id, objects_.at(id), offset, size, row);
  }
  /// With another kind of eviction nobody here wants to know.
  [[nodiscard]] access_plan_sink access_plan() noexcept {
    if (!plans_) return {};
    return {this, [](void* self) { return static_cast<cached_reads*>(self)->planned_.plan().has_room(); },
            [](void* self, std::uint64_t row, std::uint64_t seen, bool ends) noexcept {
              static_cast<cached_reads*>(self)->stand_at(row, seen, ends);
            },
            [](void* self) noexcept { static_cast<cached_reads*>(self)->forget(); }};
  }

  [[nodiscard]] far_session& far() noexcept { return far_; }
  void stop_waiting() noexcept { folder_.stops().stop(); }
  /// Fetches nothing more ahead, and no read waits any more.
  void end() noexcept {
    folder_.stops().stop_for_good();
    ahead_.stop();
  }

  void add_to(storage_counters& all) const noexcept {
    all.hits += hits_.load(std::memory_order_relaxed);
    all.fetched += fetched_.load(std::memory_order_relaxed);
    all.evicted += folder_.evicted();
    all.refetched += refetched_.load(std::memory_order_relaxed);
    all.corrupt += corrupt_.load(std::memory_order_relaxed);
    all.uncached += uncached_.load(std::memory_order_relaxed);
    all.held += held_.load(std::memory_order_relaxed);
  }

 private:
  using counter = std::atomic<std::uint64_t>;

  /// Memory for a block, of which there is one for each thread that fetches one at a time.
  class room {
   public:
    explicit room(cached_reads& all, std::size_t size) : all_(all) {
      const std::scoped_lock lock(all_.rooms_mutex_);
      if (all_.rooms_.empty()) {
        bytes_.reset(new std::byte[to_size(all_.folder_.block_size())]);
        all_.held_.fetch_add(all_.folder_.block_size(), std::memory_order_relaxed);
      } else {
        bytes_ = std::move(all_.rooms_.back());
        all_.rooms_.pop_back();
      }
      size_ = size;
    }
    room(const room&) = delete;
    room& operator=(const room&) = delete;
    ~room() {
      const std::scoped_lock lock(all_.rooms_mutex_);
      try {
        all_.rooms_.push_back(std::move(bytes_));
      } catch (...) {  // then the next one makes another
        all_.held_.fetch_sub(all_.folder_.block_size(), std::memory_order_relaxed);
      }
    }
    [[nodiscard]] mutable_bytes span() const noexcept { return {bytes_.get(), size_}; }

   private:
    cached_reads& all_;
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t size_ = 0;
  };

  void read_block(object_id id, cached_object& what, std::uint64_t number, std::uint64_t within,
                  mutable_bytes into, wait_stops::moment begun) {
    const key wanted = what.key_of(number);
    const std::uint64_t begin = number * folder_.block_size();
    const std::uint64_t size = std::min(folder_.block_size(), what.version.size - begin);
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(max_wait_ns_);
    bool again = false;  // it was there, and was damaged
    // Blocks that go as fast as they come are read past the cache, too.
    constexpr unsigned max_damaged = 3, max_moves = 1000;
    for (unsigned damaged = 0, moves = 0; damaged < max_damaged && moves < max_moves;) {
      if (const auto found = folder_.find(wanted, what.hints[to_size(number)])) {
        switch (folder_.copy(*found, wanted, size, within, into,
                             what.is_resident.load(std::memory_order_relaxed))) {
          case block_folder::copied::whole:
            hits_.fetch_add(1, std::memory_order_relaxed);
            return;
          case block_folder::copied::moved:
            ++moves;
            continue;
          case block_folder::copied::damaged:
            corrupt_.fetch_add(1, std::memory_order_relaxed);
            folder_.discard(*found, begun);
            again = true;
            ++damaged;
            continue;
        }
      }
      what.cool();
      const block_folder::answer got = folder_.ask(wanted, begun, planned_.next(what, number));
      if (got.is == block_folder::answer::here) {
        ++moves;
        continue;
      }
      if (got.is == block_folder::answer::nothing) {
        stop_if_cancelled(id, begin + within, begun);
        break;
      }
      if (got.is == block_folder::answer::mine)
        return fetch(id, begin, got.where, wanted, to_size(size), within, into, again, begun);
      const auto now = std::chrono::steady_clock::now();
      if (now >= end) {
        folder_.waited_in_vain(got.where);
        break;
      }
      // In slices, so that a run that ends is not kept waiting.
      constexpr std::uint64_t slice = 100'000'000;
      (void)folder_.wait(got.where, std::min(slice, static_cast<std::uint64_t>((end - now).count())));
      stop_if_cancelled(id, begin + within, begun);
    }
    uncached_.fetch_add(1, std::memory_order_relaxed);
    far_.read(id, begin + within, into);
  }

  /// A wait that was ended is no reason to read past the cache.
  void stop_if_cancelled(object_id id, std::uint64_t offset, wait_stops::moment begun) {
    if (folder_.stops().since(begun))
      throw error(errc::stopped, "the read was cancelled").in_file(objects_.name(id)).at_offset(offset);
  }

  void fetch(object_id id, std::uint64_t begin, place mine, const key& wanted, std::size_t size,
             std::uint64_t within, mutable_bytes into, bool again, wait_stops::moment begun) {
    std::optional<room> whole;
    load(id, begin, mine, size, whole, begun);
    const mutable_bytes bytes = whole->span();
    std::ranges::copy(bytes.subspan(to_size(within), into.size()), into.begin());
    if (again) refetched_.fetch_add(1, std::memory_order_relaxed);
    if (!folder_.fill(mine, wanted, bytes, begun)) uncached_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Reads a block from the other storage.
  void load(object_id id, std::uint64_t begin, place mine, std::size_t size, std::optional<room>& into,
            wait_stops::moment begun) {
    try {
      into.emplace(*this, size);
      far_.read(id, begin, into->span());
    } catch (...) {
      folder_.give_up(mine, begun);
      throw;
    }
    fetched_.fetch_add(1, std::memory_order_relaxed);
  }

  void stand_at(std::uint64_t row, std::uint64_t seen, bool ends) noexcept {
    const auto now = std::chrono::steady_clock::now();
    if (!stands_) {
      stands_ = true;
      first_row_ = row;
      first_time_ = now;
    }
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now - first_time_).count();
    const std::uint64_t rows = row - std::min(row, first_row_);
    planned_.plan().stand_at(row, seen, ends);
    if (ended_ && !ends) folder_.forget();  // blocks that were never needed again may be, now
    ended_ = ends;
    folder_.stand_at(
        row, rows == 0 ? 0 : static_cast<std::uint64_t>(ns) / rows,
        [](const void* plan, const key& block) { return static_cast<const block_plan*>(plan)->next(block); },
        &planned_.plan());
    if (max_ahead_ == 0) return;
    ahead_.start(
        max_ahead_, [](void* self) noexcept { return static_cast<cached_reads*>(self)->work_ahead(); }, this);
    ahead_.wake();
  }
  void forget() noexcept {
    planned_.plan().clear();
    folder_.forget();
    stands_ = ended_ = false;
  }

  /// Fetches one of the blocks that are needed next, if there is room for it. Returns whether to go on.
  [[nodiscard]] bool work_ahead() noexcept try {
    // A block that comes early takes the place of one that is needed later: of a small part of them.
    constexpr std::uint64_t maximum = 64, part = 64;
    const wait_stops::moment begun = folder_.stops().now();
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    if (now < ahead_rests_until_.load(std::memory_order_relaxed)) return false;
    thread_local std::vector<block_plan::coming> coming;
    planned_.plan().list_coming(to_size(std::clamp<std::uint64_t>(folder_.slots() / part, 1, maximum)),
                                coming);
    for (const block_plan::coming& one : coming) {
      const auto [id, number] = planned_.origin_of(one.block);
      cached_object& what = objects_.at(id);
      const key wanted = what.key_of(number);
      if (folder_.find(wanted, what.hints[to_size(number)])) continue;
      const block_folder::answer got = folder_.ask(wanted, begun, next_use::at(one.row), true);
      if (got.is == block_folder::answer::nothing) return false;
      if (got.is != block_folder::answer::mine) continue;
      ahead_.wake();  // another thread looks for the next one meanwhile
      const std::uint64_t begin = number * folder_.block_size();
      std::optional<room> whole;
      load(id, begin, got.where, to_size(std::min(folder_.block_size(), what.version.size - begin)), whole,
           begun);
      (void)folder_.fill(got.where, wanted, whole->span(), begun);
      return true;
    }
    return false;
  } catch (...) {  // who needs the block gets the error
    using std::chrono::seconds;
    const auto rest = std::chrono::steady_clock::now() + seconds(1);
    ahead_rests_until_.store(rest.time_since_epoch().count(), std::memory_order_relaxed);
    return false;
  }

  far_session far_;
  block_folder folder_;
  std::uint64_t max_wait_ns_;
  cached_objects<far_session> objects_;
  std::mutex rooms_mutex_;
  std::vector<std::unique_ptr<std::byte[]>> rooms_;
  planned_objects planned_;
  bool stands_ = false, ended_ = false;  // of the thread that plans, and so are these:
  std::uint64_t first_row_ = 0;
  std::chrono::steady_clock::time_point first_time_;
  bool plans_;
  std::size_t max_ahead_;
  std::atomic<std::chrono::steady_clock::rep> ahead_rests_until_{0};  // after a failure
  counter hits_{0}, fetched_{0}, refetched_{0}, corrupt_{0}, uncached_{0}, held_{0};
  detail::work_ahead ahead_;  // last, since its threads use all of this
};

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1
