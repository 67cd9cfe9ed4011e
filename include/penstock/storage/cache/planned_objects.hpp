// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<xxhash.h>)
#error "penstock/storage/cache/planned_objects.hpp needs xxHash: link penstock::cache"
#endif

#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/cache/block_plan.hpp>
#include <penstock/storage/cache/cached_objects.hpp>
#include <penstock/storage/cache/next_uses.hpp>
#include <penstock/storage/concepts.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

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
