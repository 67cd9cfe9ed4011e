// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/memory_cache.hpp>

#include <penstock/core/message.hpp>

#include <unistd.h>

#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE memory_cache::memory_cache(std::uint64_t limit, memory_cache_options options)
    : limit_(limit), options_(options) {
  detail::blocks::check_cache("memory_cache", 64_KiB, limit_, options_,
                              detail::blocks::memory_blocks::slots_within);
  home_.reset(new home());
}
PENSTOCK_INLINE std::string memory_cache::describe() const {
  return detail::text({"memory_cache(", limit_, " bytes)"});
}
PENSTOCK_INLINE memory_cache::home::~home() {
  // Those of a parent stay: its threads may have waited there.
  for (blocks_of_process* one = newest.load(); one != nullptr && one->process == ::getpid();)
    delete std::exchange(one, one->before);
}

PENSTOCK_INLINE detail::blocks::memory_blocks& memory_cache::blocks() const {
  home::blocks_of_process* known = home_->newest.load(std::memory_order_acquire);
  if (known != nullptr && known->process == ::getpid()) return known->blocks;
  auto* const made = new home::blocks_of_process(limit_, options_);
  made->before = known;
  if (home_->newest.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return made->blocks;
  delete made;  // another thread was faster
  return known->blocks;
}

namespace detail::blocks {

PENSTOCK_INLINE std::optional<unsigned> session_blocks::places_missing(const key& what,
                                                                       std::atomic<std::uint32_t>& hint,
                                                                       std::uint64_t,
                                                                       std::uint64_t) noexcept {
  if (!blocks_.has(what, hint)) return std::nullopt;
  return 0;
}
PENSTOCK_INLINE void session_blocks::stop_waiting() noexcept {
  stops_.stop();
  blocks_.wake();
}
PENSTOCK_INLINE void session_blocks::end() noexcept {
  stops_.stop_for_good();
  blocks_.wake();
}
PENSTOCK_INLINE session_blocks::answer session_blocks::ask(const key& what, wait_stops::moment,
                                                           next_use) noexcept {
  std::atomic<std::uint32_t> hint{0};
  const memory_blocks::answer got = blocks_.ask(what, hint);
  if (got.evicted) evicted_.fetch_add(1, std::memory_order_relaxed);
  return {got.is, got};
}
PENSTOCK_INLINE bool session_blocks::fill(const memory_blocks::answer& mine, const key&, bytes_view,
                                          wait_stops::moment) noexcept {
  blocks_.publish(mine);
  return true;
}
PENSTOCK_INLINE bool session_blocks::wait(const memory_blocks::answer& other,
                                          std::chrono::steady_clock::time_point late,
                                          wait_stops::moment begun) noexcept {
  return !blocks_.is_own(other) && blocks_.wait(other, late, stops_, begun);
}
PENSTOCK_INLINE void session_blocks::follow(const block_plan& plan) {
  if (!follows_) blocks_.follow(plan);
  follows_ = true;
}

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1
