// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<xxhash.h>)
#error "penstock/storage/cache/cached_objects.hpp needs xxHash: link penstock::cache"
#endif

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/cache/block_plan.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
  /// The bytes of one of its blocks.
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

  /// The run reads a range of an object at a row.
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

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1
