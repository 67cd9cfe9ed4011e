// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<xxhash.h>)
#error "penstock/storage/cache/cached_objects.hpp needs xxHash: link penstock::cache"
#endif

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/concepts.hpp>

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
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
