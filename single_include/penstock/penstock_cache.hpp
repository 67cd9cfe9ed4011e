// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component cache. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<xxhash.h>)
#error "penstock_cache.hpp needs xxHash: link penstock::cache"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <xxhash.h>

// ---- penstock/storage/cache/cached_objects.hpp

namespace penstock::inline v0_1 {
namespace detail::blocks {

/// Calls `read(number, within, part)` for each block of an object that a range touches: which block it is,
/// where in it the range begins, and the part of `into` that comes from there.
template <class Read>
void for_each_block(std::uint64_t block, std::uint64_t offset, mutable_bytes into, Read&& read) {
  while (!into.empty()) {
    const std::uint64_t within = offset % block;
    const std::size_t some = to_size(std::min<std::uint64_t>(into.size(), block - within));
    read(offset / block, within, into.first(some));
    into = into.subspan(some);
    offset += some;
  }
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

/// The objects of a session of `cached`, each from its first use on.
template <class Session>
class cached_objects {
 public:
  /// Refers to all of them; `block`: the bytes of a block.
  cached_objects(const Session& far, std::span<const std::string> names, bool local, std::uint64_t block)
      : far_(far), names_(names), local_(local), block_(block), objects_(names.size()) {}

  [[nodiscard]] const std::string& name(object_id id) const noexcept { return names_[id]; }

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
    const std::uint64_t blocks = version.size / block_ + (version.size % block_ != 0 ? 1 : 0);
    made->hints = fixed_array<std::atomic<std::uint32_t>>(to_size(blocks));
    owned_.push_back(std::move(made));
    objects_[id].store(owned_.back().get(), std::memory_order_release);
    return *owned_.back();
  }

 private:
  const Session& far_;
  std::span<const std::string> names_;
  bool local_;
  std::uint64_t block_;
  // An object without a stamp may be another one at the next run, so its blocks are of this session alone.
  const std::uint64_t salt_ = std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  fixed_array<std::atomic<cached_object*>> objects_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<cached_object>> owned_;
};

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1

// ---- penstock/storage/cache/planned_objects.hpp

namespace penstock::inline v0_1 {
namespace detail::blocks {

/// The plan of a session of `cached`, in which an object's blocks are numbered from its first use on.
/// Threads: `plan_read` is called by one at a time; any may call the others.
class planned_objects {
 public:
  /// `block`: the bytes of a block.
  explicit planned_objects(std::uint64_t block) noexcept : block_(block) {}

  [[nodiscard]] block_plan& plan() noexcept { return plan_; }

  /// The run reads a range of an object at a row.
  void plan_read(object_id id, cached_object& what, std::uint64_t offset, std::uint64_t size,
                 std::uint64_t row) {
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

  struct origin {
    object_id id;
    std::uint64_t number;
  };
  /// The object of a block in the plan, and which of its blocks it is.
  [[nodiscard]] origin origin_of(std::uint32_t block) const {
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
    std::vector<key> keys(to_size((what.version.size - 1) / block_ + 1));
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

  std::uint64_t block_;
  block_plan plan_;
  mutable std::mutex mutex_;
  std::vector<std::pair<std::uint32_t, object_id>> firsts_;  // each object's first block
};

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1

// ---- penstock/storage/cache/cached_reads.hpp

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
  static constexpr bool views = false;
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
  void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}
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

// ---- penstock/storage/cache/memory_reads.hpp

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
  static constexpr bool views = false;
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
  void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}
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

// ---- penstock/storage/cached.hpp

namespace penstock::inline v0_1 {
namespace detail::blocks {

/// What a session of `cached` reads through.
template <class Near, class Far>
struct reads_of {};
template <class Far>
struct reads_of<disk_cache, Far> {
  using type = cached_reads<Far>;
};
template <class Far>
struct reads_of<memory_cache, Far> {
  using type = memory_reads<Far>;
};

}  // namespace detail::blocks

/// Keeps the blocks of another storage in a cache near by: on the disk of a node, so that all of its
/// processes fetch each block once, or in the memory of this process.
///
///     const auto shards = memory_files().add("a.tar", std::string(10'240, '\0'));
///     const cached near(simulated_storage(shards, {}), disk_cache("cache_folder", 64_MiB));
///     const cached nearer(near, memory_cache(16_MiB, {.block = 1_MiB}));
///     const std::uint64_t size = nearer.connect().size(0);
///
/// In: any storage, and a `disk_cache` or a `memory_cache`. A read of a block that is not there fetches the
/// whole block; whoever else wants it meanwhile, in this process or (of a folder) another one, waits for
/// that.
/// What is on the disk is compared with checksums (XXH3, 64 bits, for each 32 KiB); a piece that does not
/// match is fetched again. What is in memory has none. A block is
/// known by its object's name (of a local file the whole path), size and stamp, so an object that was
/// replaced is another one. Blocks of an object without a stamp, of which nobody can say that, are of one
/// session alone.
/// The order, the bytes, the versions and the errors are those of the other storage. Where the cache cannot
/// help, such as on a full or broken disk, if a process that changes the folder is stopped for 10 s, or if
/// all of its places are being filled, reads go past it, and are counted.
/// A process that dies leaves nothing to clean: the system takes its locks away, what it was fetching is
/// fetched by the next one that wants it, and an index that it was changing is put in order.
/// Errors: those of the other storage, and those of the cache when a run begins. If a fetch fails, who asked
/// for it gets the error, and the next one that waits tries again. A read that waits for somebody else when
/// it is cancelled, or when the session ends, is errc::stopped.
/// Cost: a read from a folder takes the checksums of the pieces that it touches, whole ones, and one copy:
/// from a mapping if all of the object is in memory, otherwise with a system call, and a second copy of
/// pieces at both ends that are not wanted whole. A thread that goes on in the piece that it compared last
/// does not compare it again. A read from memory is one copy, and two atomic additions for each block. No
/// lock, no allocation; from memory a lock the first time that a session reads a block. A block that comes to
/// a folder: one copy in memory, which is written; to memory: none. Index of a folder: 8 bytes for each
/// 32 KiB, and some 550 for each block.
/// Keeps: of a folder, memory for a block per thread that fetches one, 64 KiB per thread that reads, and 4
/// bytes for each 32 KiB of the cache with `verify::once`; 4 bytes per session for each block of what it
/// reads; where a run says what it will read, some 60 more, and up to 48 for each of a million reads.
/// Threads: any number of threads may use a session, and any number of processes a folder. Reads in the
/// background are those of 16 threads; with a folder, `ahead` more fetch what is needed soon. A child after
/// `fork` has no session.
/// Source: the checksum is that of xxHash 0.8, github.com/Cyan4973/xxHash.
template <class Near, storage Far>
  requires std::same_as<Near, disk_cache> || std::same_as<Near, memory_cache>
class cached {
  using reads = typename detail::blocks::reads_of<Near, Far>::type;
  struct state {
    state(const Far& given, const Near& near)
        : far(given), session(far, near), threads(session_view(session), far.names(), 16) {}

    ~state() { end(); }
    void cancel() noexcept {
      threads.cancel();
      session.stop_waiting();
    }
    void end() noexcept {
      session.end();
      cancel();
      penstock::end_reads(session.far());
    }

    Far far;  // whose names the session refers to
    reads session;
    threaded_reads threads;
  };

 public:
  static constexpr bool names_are_paths = local_storage<Far>;

  /// What a run reads through; see `background_session` and `latent_session`.
  class session {
   public:
    static constexpr bool views = false;
    static constexpr bool has_latency = true;

    [[nodiscard]] std::uint64_t size(object_id id) const { return state_->session.size(id); }
    [[nodiscard]] object_version version(object_id id) const { return state_->session.version(id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      state_->session.read(id, offset, into);
    }
    [[nodiscard]] bool tagged(object_id id) const { return penstock::is_tagged(state_->session.far(), id); }
    void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}
    void confirm(object_id id) const { state_->session.confirm(id); }
    [[nodiscard]] access_plan_sink access_plan() const noexcept { return state_->session.access_plan(); }
    void plan_read(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) const {
      state_->session.plan_read(id, offset, size, row);
    }
    /// Whether an object's bytes are in memory, so that fetching them ahead would only make another copy.
    [[nodiscard]] bool resident(object_id id) const { return state_->session.resident(id); }
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      state_->threads.read_many(requests, listener);
    }
    void cancel() const noexcept {
      state_->cancel();
      if constexpr (background_session<typename Far::session>) state_->session.far().cancel();
    }
    void end_reads() const noexcept { state_->end(); }
    /// What the cache did, and what the other storage did.
    [[nodiscard]] session_report report() const {
      session_report all = report_of(state_->session.far());
      all.counted = true;
      all.max_in_flight = 0;
      all.oldest.reset();
      all.names = state_->far.names();
      state_->session.add_to(all.counters);
      return all;
    }
    [[nodiscard]] session_report limits() const {
      session_report all = limits_of(state_->session.far());
      all.max_in_flight = 0;
      return all;
    }

   private:
    friend cached;
    session(const Far& far, const Near& near) : state_(new state(far, near)) {}

    std::unique_ptr<state> state_;
  };

  cached(Far far, Near near) : far_(std::move(far)), near_(std::move(near)) {}

  [[nodiscard]] std::span<const std::string> names() const { return far_.names(); }
  /// Whether the names are paths in the local file system.
  [[nodiscard]] bool local() const { return is_local(far_); }
  [[nodiscard]] session connect() const { return session(far_, near_); }
  /// See `sidecar_storage`.
  [[nodiscard]] cached sidecars(sidecar which) const
    requires sidecar_storage<Far>
  {
    return cached(far_.sidecars(which), near_);
  }
  /// See `renaming_storage`.
  [[nodiscard]] cached with_names(std::vector<std::string> names) const
    requires renaming_storage<Far>
  {
    return cached(far_.with_names(std::move(names)), near_);
  }
  [[nodiscard]] std::string describe() const {
    return detail::describe_around("cached", far_, near_.describe());
  }

 private:
  Far far_;
  Near near_;
};

template <class Far, class Near>
cached(Far, Near) -> cached<Near, Far>;

}  // namespace penstock::inline v0_1
