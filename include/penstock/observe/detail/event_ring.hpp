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

/// The latest events of one thread. That thread adds events; any thread may copy them meanwhile. No lock,
/// and no allocation after construction.
///
/// An event that is overwritten during the copy is left out: each word is stored after the update of
/// `begun_`, with release, so a reader that sees the word also sees `begun_`.
class event_ring {
 public:
  explicit event_ring(std::size_t capacity);

  void add(const run_event& e) noexcept;

  /// Appends the events, oldest first; returns how many earlier ones were dropped.
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
