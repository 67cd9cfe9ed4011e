// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/observe/concepts.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The latest events of one thread: it adds, anyone copies meanwhile. No lock, and no allocation after the
/// first.
///
/// An event that is overwritten while it is copied is left out: each word is stored after `begun_` says so,
/// and released, so that who sees the word sees `begun_`.
class event_ring {
 public:
  explicit event_ring(std::size_t capacity);

  void add(const run_event& e) noexcept;

  /// Appends what is there, oldest first; gives how many before it were dropped.
  std::uint64_t copy(std::vector<run_event>& all) const;

 private:
  using words = std::array<std::uint64_t, 9>;
  using slot = std::array<std::atomic<std::uint64_t>, 9>;

  std::size_t capacity_;
  std::unique_ptr<slot[]> slots_;
  alignas(64) std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> done_{0};
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/detail/event_ring.ipp>
#endif
