// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<xxhash.h>)
#error "penstock/storage/cache/block_cache.hpp needs xxHash: link penstock::cache"
#endif

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/block_folder.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/cache/block_plan.hpp>
#include <penstock/storage/cache/memory_blocks.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/local/paths.hpp>
#include <penstock/storage/memory_cache.hpp>
#include <penstock/storage/reads/wait_stops.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// xxHash has this if it was built so that it chooses the processor's widest registers itself: on x86-64 it is
// three times as fast as the other one, which is made for every processor.
extern "C" [[gnu::weak]] XXH64_hash_t XXH3_64bits_withSeed_dispatch(const void* bytes, std::size_t size,
                                                                    XXH64_hash_t seed);

namespace penstock::inline v0_1::detail::blocks {

[[nodiscard]] inline std::uint64_t xxh3(const void* bytes, std::size_t size, std::uint64_t seed) noexcept {
  if (&::XXH3_64bits_withSeed_dispatch != nullptr) return ::XXH3_64bits_withSeed_dispatch(bytes, size, seed);
  return ::XXH3_64bits_withSeed(bytes, size, seed);
}

/// What a session of `cached` knows of an object of the other storage.
struct cached_object {
  object_version version;
  ::XXH128_hash_t hash;                           // of its name and version
  fixed_array<std::atomic<std::uint32_t>> hints;  // where each block was seen last
  std::atomic<std::uint32_t> calls{0};            // of `resident`
  std::atomic<bool> is_resident{false};
  static constexpr std::uint32_t not_planned = ~std::uint32_t{0};
  std::atomic<std::uint32_t> first_planned{not_planned};  // the number of its first block in a `block_plan`

  /// Which block this is, in any cache.
  [[nodiscard]] key key_of(std::uint64_t number) const noexcept {
    const std::uint64_t words[3] = {hash.high64, hash.low64, number};
    const ::XXH128_hash_t made = ::XXH3_128bits(words, sizeof(words));
    return {made.high64, made.low64};
  }
  /// Whether `resident` looks this time: calls 1, 2, 4, 8 and so on do.
  [[nodiscard]] bool looks() noexcept {
    const std::uint32_t now = calls.fetch_add(1, std::memory_order_relaxed) + 1;
    return (now & (now - 1)) == 0;
  }
  /// A block is gone, so `resident` begins again.
  void cool() noexcept {
    if (!is_resident.load(std::memory_order_relaxed)) return;
    calls.store(0, std::memory_order_relaxed);
    is_resident.store(false, std::memory_order_relaxed);
  }
};

/// The objects of a session of `cached`, each from its first use on, and the plan of what a run reads of
/// them, in which their blocks are numbered.
/// Threads: `plan_read` is called by one at a time; any may call the others.
class cached_objects {
 public:
  /// Refers to all of them; `block`: the bytes of a block.
  cached_objects(session_view far, std::span<const std::string> names, bool local, std::uint64_t block)
      : far_(far), names_(names), local_(local), block_(block), objects_(names.size()) {}

  [[nodiscard]] const std::string& name(object_id id) const noexcept { return names_[id]; }
  [[nodiscard]] block_plan& plan() noexcept { return plan_; }
  [[nodiscard]] std::uint64_t blocks_of(const cached_object& what) const noexcept {
    return what.version.size / block_ + (what.version.size % block_ != 0 ? 1 : 0);
  }
  [[nodiscard]] std::uint64_t bytes_of(const cached_object& what, std::uint64_t number) const noexcept {
    return std::min(block_, what.version.size - number * block_);
  }

  /// Throws what the other storage throws if asked for a version.
  [[nodiscard]] cached_object& at(object_id id) {
    if (cached_object* const known = objects_[id].load(std::memory_order_acquire)) return *known;
    const object_version version = far_.version(id);
    const std::scoped_lock lock(mutex_);
    if (cached_object* const known = objects_[id].load(std::memory_order_acquire)) return *known;
    std::string text = local_ ? std::filesystem::absolute(names_[id]).string() : names_[id];
    for (const std::uint64_t number : {version.size, version.stamp, version.stamp == 0 ? salt_ : 0})
      text += '\0' + std::to_string(number);
    auto made = std::make_unique<cached_object>();
    made->version = version;
    made->hash = ::XXH3_128bits(text.data(), text.size());
    made->hints = fixed_array<std::atomic<std::uint32_t>>(to_size(blocks_of(*made)));
    owned_.push_back(std::move(made));
    objects_[id].store(owned_.back().get(), std::memory_order_release);
    return *owned_.back();
  }

  void plan_read(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) {
    cached_object& what = at(id);
    if (size == 0 || offset >= what.version.size) return;
    const std::uint32_t first = first_of(id, what);
    const std::uint64_t last = offset + std::min(size, what.version.size - offset) - 1;
    for (std::uint64_t n = offset / block_; n <= last / block_; ++n)
      plan_.plan_read(first + static_cast<std::uint32_t>(n), row);
  }

  /// When a block of an object is needed next; not known of one that the plan does not have.
  [[nodiscard]] next_use next(const cached_object& what, std::uint64_t number) const {
    const std::uint32_t first = what.first_planned.load(std::memory_order_relaxed);
    if (first == cached_object::not_planned) return {};
    return plan_.next(first + static_cast<std::uint32_t>(number));
  }

  /// The object of a block in the plan, and which of its blocks it is.
  [[nodiscard]] std::pair<object_id, std::uint64_t> origin_of(std::uint32_t block) const {
    const std::scoped_lock lock(mutex_);
    const auto after =
        std::ranges::upper_bound(firsts_, block, {}, &std::pair<std::uint32_t, object_id>::first);
    const auto& [first, id] = *std::prev(after);
    return {id, block - first};
  }

 private:
  [[nodiscard]] std::uint32_t first_of(object_id id, cached_object& what) {
    const std::uint32_t known = what.first_planned.load(std::memory_order_relaxed);
    if (known != cached_object::not_planned) return known;
    std::vector<key> keys(to_size(blocks_of(what)));
    for (std::size_t n = 0; n < keys.size(); ++n) keys[n] = what.key_of(n);
    const std::scoped_lock lock(mutex_);
    firsts_.emplace_back();
    std::uint32_t first = 0;
    try {
      first = plan_.add(keys);
    } catch (...) {
      firsts_.pop_back();
      throw;
    }
    firsts_.back() = {first, id};
    what.first_planned.store(first, std::memory_order_relaxed);
    return first;
  }

  session_view far_;
  std::span<const std::string> names_;
  bool local_;
  std::uint64_t block_;
  // An object without a stamp may be another one at the next run, so its blocks are of this session alone.
  const std::uint64_t salt_ = std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  fixed_array<std::atomic<cached_object*>> objects_;
  block_plan plan_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<cached_object>> owned_;
  std::vector<std::pair<std::uint32_t, object_id>> firsts_;  // the number of each object's first block
};

/// The session of `cached`, without reads in the background: objects of another storage in blocks, which are
/// in a folder or in memory.
template <class Near, class Far>
class block_cache {
  using blocks_type = std::conditional_t<std::is_same_v<Near, disk_cache>, block_folder, session_blocks>;
  static constexpr bool fetches_ahead = std::is_same_v<Near, disk_cache>;

 public:
  using far_session = typename Far::session;
  static constexpr session_traits traits = {.latency = true};

  block_cache(const Far& far, const Near& near)
      : where_(far),
        far_(where_.connect()),
        blocks_(near, &xxh3),
        max_wait_(near.options().max_wait),
        plans_(near.options().evict == eviction::belady),
        objects_(session_view(far_), where_.names(), is_local(where_), blocks_.block_size()) {}
  ~block_cache() { blocks_.leave(objects_.plan()); }

  [[nodiscard]] std::uint64_t size(object_id id) { return objects_.at(id).version.size; }
  [[nodiscard]] object_version version(object_id id) { return objects_.at(id).version; }
  [[nodiscard]] std::span<const std::string> names() const { return where_.names(); }
  void confirm(object_id id) const { penstock::confirm(far_, id); }
  [[nodiscard]] bool tagged(object_id id) const { return penstock::is_tagged(far_, id); }

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

  void cancel() noexcept {
    blocks_.stop_waiting();
    cancel_reads(far_);
  }
  /// Also fetches nothing more ahead.
  void end_reads() noexcept {
    blocks_.end();
    penstock::end_reads(far_);
  }

  /// What the cache did, and what the other storage did.
  [[nodiscard]] session_report report() const {
    session_report all = report_of(far_);
    all.counted = true;
    all.max_in_flight = 0;
    all.oldest.reset();
    all.names = names();
    all.counters.hits += hits_.load(std::memory_order_relaxed);
    all.counters.fetched += fetched_.load(std::memory_order_relaxed);
    all.counters.evicted += blocks_.evicted();
    all.counters.refetched += refetched_.load(std::memory_order_relaxed);
    all.counters.corrupt += corrupt_.load(std::memory_order_relaxed);
    all.counters.uncached += uncached_.load(std::memory_order_relaxed);
    all.counters.held += blocks_.held();
    return all;
  }
  [[nodiscard]] session_report limits() const {
    session_report all = limits_of(far_);
    all.max_in_flight = 0;
    return all;
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
    decltype(blocks_.room(mine.where)) room{};
    mutable_bytes whole;
    try {
      room = blocks_.room(mine.where);
      whole = {&room[0], to_size(objects_.bytes_of(what, number))};
      far_.read(id, number * blocks_.block_size(), whole);
    } catch (...) {
      blocks_.give_up(mine.where, begun);
      throw;
    }
    count(fetched_);
    std::ranges::copy(whole.subspan(to_size(within), into.size()), into.begin());
    return blocks_.fill(mine.where, what.key_of(number), whole, begun);
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

  Far where_;  // whose names the others refer to
  far_session far_;
  blocks_type blocks_;
  std::chrono::milliseconds max_wait_;
  bool plans_;
  cached_objects objects_;
  counter hits_{0}, fetched_{0}, refetched_{0}, corrupt_{0}, uncached_{0};
};

}  // namespace penstock::inline v0_1::detail::blocks
