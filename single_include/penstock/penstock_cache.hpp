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
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <xxhash.h>

// ---- penstock/storage/detail/cached_reads.hpp

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
        objects_(names_.size()) {}

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

  struct object {
    object_signature signature;
    ::XXH128_hash_t hash;                           // of its name and signature
    fixed_array<std::atomic<std::uint32_t>> hints;  // where each block was seen last
    std::atomic<std::uint32_t> calls{0};            // of `warm`
    std::atomic<bool> is_warm{false};
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
    const std::uint64_t blocks = (signature.size + folder_.block_size() - 1) / folder_.block_size();
    auto made = std::make_unique<object>();
    made->signature = signature;
    made->hash = ::XXH3_128bits(text.data(), text.size());
    made->hints = fixed_array<std::atomic<std::uint32_t>>(to_size(blocks));
    owned_.push_back(std::move(made));
    objects_[id].store(owned_.back().get(), std::memory_order_release);
    return *owned_.back();
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
      const block_folder::answer got = folder_.ask(wanted);
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
    try {
      whole.emplace(*this, size);
      far_.read(id, begin, whole->span());
    } catch (...) {
      folder_.give_up(mine);
      throw;
    }
    const mutable_bytes bytes = whole->span();
    std::ranges::copy(bytes.subspan(to_size(within), into.size()), into.begin());
    fetched_.fetch_add(1, std::memory_order_relaxed);
    if (again) refetched_.fetch_add(1, std::memory_order_relaxed);
    if (!folder_.fill(mine, wanted, bytes)) uncached_.fetch_add(1, std::memory_order_relaxed);
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
  counter stops_{0}, hits_{0}, fetched_{0}, refetched_{0}, corrupt_{0}, uncached_{0}, held_{0};
};

}  // namespace detail::blocks

}  // namespace penstock::inline v0_1

// ---- penstock/storage/cached.hpp

namespace penstock::inline v0_1 {

/// Keeps the blocks of another storage in a cache near by, so that all processes of a node fetch each block
/// once.
///
///     const auto shards = memory_files().add("a.tar", std::string(10'240, '\0'));
///     const cached near(simulated_storage(shards, {}), disk_cache("cache_folder", 64_MiB));
///     const std::uint64_t size = near.connect().size(0);
///
/// In: any storage, and a `disk_cache`. A read of a block that is not there fetches the whole block; whoever
/// else wants it meanwhile, in this process or another one, waits for that. What is in the cache is compared
/// with checksums (XXH3, 64 bits, for each 32 KiB); a piece that does not match is fetched again. A block is
/// known by its object's name (of a local file the whole path), size and stamp, so an object that was
/// replaced is another one. Blocks of an object without a stamp, of which nobody can say that, are of one
/// session alone.
/// The order, the bytes, the signatures and the errors are those of the other storage. Where the cache cannot
/// help, such as on a full or broken disk, or if a process that changes the folder is stopped for 10 s, reads
/// go past it, and are counted.
/// A process that dies leaves nothing to clean: the system takes its locks away, what it was fetching is
/// fetched by the next one that wants it, and an index that it was changing is put in order.
/// Errors: those of the other storage, and those of `disk_cache` when a run begins.
/// Cost: a read of what is there takes the checksums of the pieces that it touches, whole ones, and one copy:
/// from a mapping if all of the object is in memory, otherwise with a system call, and a second copy of
/// pieces at both ends that are not wanted whole. A thread that goes on in the piece that it compared last
/// does not compare it again. No lock, no allocation. A block that comes: one copy in memory, which is
/// written. 8 bytes of index for each 32 KiB, and some 40 for each block.
/// Keeps: memory for a block per thread that fetches one, 64 KiB per thread that reads, and 4 bytes for each
/// 32 KiB of the cache with `verify::once`.
/// Threads: any number of threads may use a session, and any number of processes a folder. Reads in the
/// background are those of 16 threads. A child after `fork` has no session.
/// Source: the checksum is that of xxHash 0.8, github.com/Cyan4973/xxHash.
template <std::same_as<disk_cache> Near, storage Far>
class cached {
  using reads = detail::blocks::cached_reads<Far>;
  struct state {
    state(const Far& given, const Near& near)
        : far(given), session(far, near), threads(session_view(session), far.names(), 16) {}

    ~state() { end(); }
    void cancel() noexcept {
      threads.cancel();
      session.stop_waiting();
    }
    void end() noexcept {
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
    [[nodiscard]] object_signature signature(object_id id) const { return state_->session.signature(id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      state_->session.read(id, offset, into);
    }
    void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}
    void confirm(object_id id) const { state_->session.confirm(id); }
    /// Whether an object's bytes are in memory, so that fetching them ahead would only make another copy.
    [[nodiscard]] bool warm(object_id id) const { return state_->session.warm(id); }
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      state_->threads.read_many(requests, listener);
    }
    void cancel() const noexcept {
      state_->cancel();
      if constexpr (background_session<typename Far::session>) state_->session.far().cancel();
    }
    void end_reads() const noexcept { state_->end(); }
    [[nodiscard]] std::string name(object_id id) const { return std::string(state_->far.names()[id]); }
    /// What the cache did, and what the other storage did.
    [[nodiscard]] storage_counters counters() const {
      storage_counters all;
      if constexpr (counting_session<typename Far::session>) all = state_->session.far().counters();
      state_->session.add_to(all);
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
  /// See `sibling_storage`.
  [[nodiscard]] cached beside(sibling which) const
    requires sibling_storage<Far>
  {
    return cached(far_.beside(which), near_);
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
