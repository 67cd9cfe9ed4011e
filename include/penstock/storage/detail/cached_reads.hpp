// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<xxhash.h>)
#error "penstock/storage/detail/cached_reads.hpp needs xxHash: link penstock::cache"
#endif

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/block_folder.hpp>
#include <penstock/storage/detail/block_plan.hpp>
#include <penstock/storage/detail/next_uses.hpp>
#include <penstock/storage/detail/paths.hpp>
#include <penstock/storage/detail/work_ahead.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/storage_counters.hpp>

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
  static constexpr bool views = false;
  using far_session = typename Far::session;

  cached_reads(const Far& far, const disk_cache& near)
      : far_(far.connect()),
        names_(far.names()),
        folder_(near, &xxh3),
        is_local_(is_local(far)),
        longest_wait_ns_(
            static_cast<std::uint64_t>(std::chrono::nanoseconds(near.options().longest_wait).count())),
        objects_(names_.size()),
        at_once_ahead_(near.options().evict == eviction::needed_last ? near.options().ahead : 0) {}

  [[nodiscard]] std::uint64_t size(object_id id) { return object_at(id).signature.size; }
  [[nodiscard]] object_signature signature(object_id id) { return object_at(id).signature; }
  void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}
  void confirm(object_id id) const { penstock::confirm(far_, id); }

  /// Whether all blocks of an object are in the cache, and the cache in memory. Calls 1, 2, 4, 8 and so on
  /// look, until it is so; after a read that finds a block gone they begin again.
  [[nodiscard]] bool warm(object_id id) {
    object& what = object_at(id);
    if (what.is_warm.load(std::memory_order_relaxed)) return true;
    const std::uint32_t calls = what.calls.fetch_add(1, std::memory_order_relaxed) + 1;
    if ((calls & (calls - 1)) != 0) return false;
    constexpr std::uint64_t places = 4;  // of each block
    std::uint64_t missing = 0, number = 0;
    for (std::uint64_t begin = 0; begin < what.signature.size; begin += folder_.block_size(), ++number) {
      const auto found = folder_.find(key_of(what, number), what.hints[to_size(number)]);
      if (!found) return false;
      const std::uint64_t size = std::min(folder_.block_size(), what.signature.size - begin);
      // The system begins to load what it is asked for, so other places are looked at each time.
      for (std::uint64_t i = 0; i < places; ++i)
        if (!folder_.in_memory(*found, mix64(calls + number * places + i) % size)) ++missing;
    }
    if (missing * 16 > number * places) return false;
    what.is_warm.store(true, std::memory_order_relaxed);
    return true;
  }

  void read(object_id id, std::uint64_t offset, mutable_bytes into) {
    object& what = object_at(id);
    files::check_range(offset, into.size(), what.signature.size, names_[id]);
    const std::uint64_t block = folder_.block_size();
    const std::uint64_t stops = stops_.load(std::memory_order_relaxed);
    while (!into.empty()) {
      const std::uint64_t number = offset / block, within = offset % block;
      const std::size_t some = to_size(std::min<std::uint64_t>(into.size(), block - within));
      read_block(id, what, number, within, into.first(some), stops);
      into = into.subspan(some);
      offset += some;
    }
  }

  /// See `foreseeing_session`.
  void foresee(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t turn) {
    object& what = object_at(id);
    if (size == 0 || offset >= what.signature.size) return;
    const std::uint32_t first = planned(id, what);
    const std::uint64_t last = std::min(offset + size, what.signature.size) - 1;
    for (std::uint64_t n = offset / folder_.block_size(); n <= last / folder_.block_size(); ++n)
      plan_.foresee(first + static_cast<std::uint32_t>(n), turn);
  }
  [[nodiscard]] read_foresight foresight() noexcept {
    return {this, [](void* self) { return static_cast<cached_reads*>(self)->plan_.has_room(); },
            [](void* self, std::uint64_t turn, std::uint64_t seen, bool ends) noexcept {
              static_cast<cached_reads*>(self)->stand_at(turn, seen, ends);
            },
            [](void* self) noexcept { static_cast<cached_reads*>(self)->forget(); }};
  }

  /// Fetches nothing more ahead.
  void stop_ahead() noexcept { ahead_.stop(); }
  [[nodiscard]] far_session& far() noexcept { return far_; }
  void stop_waiting() noexcept { stops_.fetch_add(1, std::memory_order_relaxed); }

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
  static constexpr std::uint32_t not_planned = ~std::uint32_t{0};

  struct object {
    object_signature signature;
    ::XXH128_hash_t hash;                           // of its name and signature
    fixed_array<std::atomic<std::uint32_t>> hints;  // where each block was seen last
    std::atomic<std::uint32_t> calls{0};            // of `warm`
    std::atomic<bool> is_warm{false};
    std::atomic<std::uint32_t> first_planned{not_planned};  // its first block in the plan
  };

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

  [[nodiscard]] object& object_at(object_id id) {
    if (object* const known = objects_[id].load(std::memory_order_acquire)) return *known;
    const object_signature signature = far_.signature(id);
    const std::scoped_lock lock(objects_mutex_);
    if (object* const known = objects_[id].load(std::memory_order_acquire)) return *known;
    std::string text = is_local_ ? std::filesystem::absolute(names_[id]).string() : names_[id];
    for (const std::uint64_t number : {signature.size, signature.stamp, signature.stamp == 0 ? salt_ : 0})
      text += '\0' + std::to_string(number);
    auto made = std::make_unique<object>();
    made->signature = signature;
    made->hash = ::XXH3_128bits(text.data(), text.size());
    made->hints = fixed_array<std::atomic<std::uint32_t>>(to_size(blocks_of(signature)));
    owned_.push_back(std::move(made));
    objects_[id].store(owned_.back().get(), std::memory_order_release);
    return *owned_.back();
  }

  [[nodiscard]] std::uint64_t blocks_of(const object_signature& of) const noexcept {
    return (of.size + folder_.block_size() - 1) / folder_.block_size();
  }
  [[nodiscard]] static key key_of(const object& what, std::uint64_t number) noexcept {
    const std::uint64_t words[3] = {what.hash.high64, what.hash.low64, number};
    const ::XXH128_hash_t made = ::XXH3_128bits(words, sizeof(words));
    return {made.high64, made.low64};
  }

  void read_block(object_id id, object& what, std::uint64_t number, std::uint64_t within, mutable_bytes into,
                  std::uint64_t stops) {
    const key wanted = key_of(what, number);
    const std::uint64_t begin = number * folder_.block_size();
    const std::uint64_t size = std::min(folder_.block_size(), what.signature.size - begin);
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(longest_wait_ns_);
    bool again = false;  // it was there, and was damaged
    // Blocks that go as fast as they come are read past the cache, too.
    constexpr unsigned most_damaged = 3, most_moves = 1000;
    for (unsigned damaged = 0, moves = 0; damaged < most_damaged && moves < most_moves;) {
      if (const auto found = folder_.find(wanted, what.hints[to_size(number)])) {
        switch (
            folder_.copy(*found, wanted, size, within, into, what.is_warm.load(std::memory_order_relaxed))) {
          case block_folder::copied::whole:
            hits_.fetch_add(1, std::memory_order_relaxed);
            return;
          case block_folder::copied::moved:
            ++moves;
            continue;
          case block_folder::copied::damaged:
            corrupt_.fetch_add(1, std::memory_order_relaxed);
            folder_.discard(*found);
            again = true;
            ++damaged;
            continue;
        }
      }
      if (what.is_warm.load(std::memory_order_relaxed)) {
        what.calls.store(0, std::memory_order_relaxed);
        what.is_warm.store(false, std::memory_order_relaxed);
      }
      const std::uint32_t first = what.first_planned.load(std::memory_order_relaxed);
      const block_folder::answer got = folder_.ask(
          wanted, first == not_planned ? next_use{} : plan_.next(first + static_cast<std::uint32_t>(number)));
      if (got.is == block_folder::answer::here) {
        ++moves;
        continue;
      }
      if (got.is == block_folder::answer::nothing) break;
      if (got.is == block_folder::answer::mine)
        return fetch(id, begin, got.where, wanted, to_size(size), within, into, again);
      const auto now = std::chrono::steady_clock::now();
      if (now >= end) {
        folder_.waited_in_vain(got.where);
        break;
      }
      // In slices, so that a run that ends is not kept waiting.
      constexpr std::uint64_t slice = 100'000'000;
      (void)folder_.wait(got.where, std::min(slice, static_cast<std::uint64_t>((end - now).count())));
      if (stops_.load(std::memory_order_relaxed) != stops)
        throw error(errc::stopped, "the read was cancelled").in_file(names_[id]).at_offset(begin + within);
    }
    uncached_.fetch_add(1, std::memory_order_relaxed);
    far_.read(id, begin + within, into);
  }

  void fetch(object_id id, std::uint64_t begin, place mine, const key& wanted, std::size_t size,
             std::uint64_t within, mutable_bytes into, bool again) {
    std::optional<room> whole;
    load(id, begin, mine, size, whole);
    const mutable_bytes bytes = whole->span();
    std::ranges::copy(bytes.subspan(to_size(within), into.size()), into.begin());
    if (again) refetched_.fetch_add(1, std::memory_order_relaxed);
    if (!folder_.fill(mine, wanted, bytes)) uncached_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Reads a block from the other storage.
  void load(object_id id, std::uint64_t begin, place mine, std::size_t size, std::optional<room>& into) {
    try {
      into.emplace(*this, size);
      far_.read(id, begin, into->span());
    } catch (...) {
      folder_.give_up(mine);
      throw;
    }
    fetched_.fetch_add(1, std::memory_order_relaxed);
  }

  /// The number of an object's first block in the plan, to which it is added if it is not there. Called by
  /// one thread at a time.
  [[nodiscard]] std::uint32_t planned(object_id id, object& what) {
    const std::uint32_t known = what.first_planned.load(std::memory_order_relaxed);
    if (known != not_planned) return known;
    std::vector<key> blocks(to_size(blocks_of(what.signature)));
    for (std::size_t n = 0; n < blocks.size(); ++n) blocks[n] = key_of(what, n);
    const std::uint32_t first = plan_.add(blocks);
    {
      const std::scoped_lock lock(planned_mutex_);
      planned_.emplace_back(first, id);
    }
    what.first_planned.store(first, std::memory_order_relaxed);
    return first;
  }

  void stand_at(std::uint64_t turn, std::uint64_t seen, bool ends) noexcept {
    const auto now = std::chrono::steady_clock::now();
    if (!stands_) {
      stands_ = true;
      first_turn_ = turn;
      first_time_ = now;
    }
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now - first_time_).count();
    const std::uint64_t turns = turn - std::min(turn, first_turn_);
    plan_.stand_at(turn, seen, ends);
    folder_.stand_at(
        turn, turns == 0 ? 0 : static_cast<std::uint64_t>(ns) / turns,
        [](const void* plan, const key& block) { return static_cast<const block_plan*>(plan)->next(block); },
        &plan_);
    if (at_once_ahead_ == 0) return;
    ahead_.start(
        at_once_ahead_, [](void* self) noexcept { return static_cast<cached_reads*>(self)->work_ahead(); },
        this);
    ahead_.wake();
  }
  void forget() noexcept {
    plan_.clear();
    stands_ = false;
  }

  /// Fetches one of the blocks that are needed next, if there is room for it. Returns whether to go on.
  [[nodiscard]] bool work_ahead() noexcept try {
    // A block that comes early takes the place of one that is needed later: of a small part of them.
    constexpr std::uint64_t most = 64, part = 64;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    if (now < ahead_rests_until_.load(std::memory_order_relaxed)) return false;
    thread_local std::vector<block_plan::coming> coming;
    plan_.list_coming(to_size(std::clamp<std::uint64_t>(folder_.slots() / part, 1, most)), coming);
    for (const block_plan::coming& one : coming) {
      const auto [id, number] = origin_of(one.block);
      object& what = object_at(id);
      const key wanted = key_of(what, number);
      if (folder_.find(wanted, what.hints[to_size(number)])) continue;
      const block_folder::answer got = folder_.ask(wanted, next_use::at(one.turn), true);
      if (got.is == block_folder::answer::nothing) return false;
      if (got.is != block_folder::answer::mine) continue;
      const std::uint64_t begin = number * folder_.block_size();
      std::optional<room> whole;
      load(id, begin, got.where, to_size(std::min(folder_.block_size(), what.signature.size - begin)), whole);
      (void)folder_.fill(got.where, wanted, whole->span());
      return true;
    }
    return false;
  } catch (...) {  // who needs the block gets the error
    using std::chrono::seconds;
    const auto rest = std::chrono::steady_clock::now() + seconds(1);
    ahead_rests_until_.store(rest.time_since_epoch().count(), std::memory_order_relaxed);
    return false;
  }
  struct block_origin {
    object_id id;
    std::uint64_t number;
  };
  [[nodiscard]] block_origin origin_of(std::uint32_t block) {
    const std::scoped_lock lock(planned_mutex_);
    const auto after =
        std::ranges::upper_bound(planned_, block, {}, &std::pair<std::uint32_t, object_id>::first);
    const auto& [first, id] = *std::prev(after);
    return {id, block - first};
  }

  far_session far_;
  std::span<const std::string> names_;
  block_folder folder_;
  bool is_local_;
  std::uint64_t longest_wait_ns_;
  // An object without a stamp may be another one at the next run, so its blocks are of this session alone.
  const std::uint64_t salt_ = std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  fixed_array<std::atomic<object*>> objects_;
  std::mutex objects_mutex_;
  std::vector<std::unique_ptr<object>> owned_;
  std::mutex rooms_mutex_;
  std::vector<std::unique_ptr<std::byte[]>> rooms_;
  block_plan plan_;
  std::mutex planned_mutex_;
  std::vector<std::pair<std::uint32_t, object_id>> planned_;  // each object's first block
  bool stands_ = false;                                       // of the thread that plans, and so are these:
  std::uint64_t first_turn_ = 0;
  std::chrono::steady_clock::time_point first_time_;
  std::size_t at_once_ahead_;
  std::atomic<std::chrono::steady_clock::rep> ahead_rests_until_{0};  // after a failure
  counter stops_{0}, hits_{0}, fetched_{0}, refetched_{0}, corrupt_{0}, uncached_{0}, held_{0};
  detail::work_ahead ahead_;  // last, since its threads use all of this
};

}  // namespace detail::blocks

}  // namespace penstock::inline v0_1
