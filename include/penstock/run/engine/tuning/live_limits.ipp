// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/tuning/live_limits.hpp>

#include <penstock/core/error.hpp>
#include <penstock/evaluation/stage_chain.hpp>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE void check_limit(const std::optional<std::int64_t>& wanted, std::int64_t least,
                                 std::uint64_t maximum, const char* name, const char* advice) {
  if (!wanted || (*wanted >= least && static_cast<std::uint64_t>(*wanted) <= maximum)) return;
  throw error(errc::argument, {"adjust: ", name, " = ", *wanted, " is not in [", least, ", ", maximum,
                               "], the range that the run was opened with; ", advice});
}

}  // namespace detail

PENSTOCK_INLINE live_limits::live_limits(unsigned workers, std::size_t blocks, std::size_t batches_per_block,
                                         std::uint64_t ahead) noexcept
    : max_workers_(workers),
      max_blocks_(blocks),
      batches_per_block_(batches_per_block),
      max_ahead_(ahead),
      word_(workers),
      blocks_(blocks),
      ahead_(ahead),
      changed_(detail::now_ns()) {}

PENSTOCK_INLINE void live_limits::adjust(const run_limits& wanted) {
  if (max_workers_ == 0 && (wanted.workers || wanted.depth))
    throw error(errc::argument,
                "adjust: a run with workers(0) evaluates in the calling thread; it has neither workers nor a "
                "depth to adjust");
  detail::check_limit(wanted.workers, 1, max_workers_, "workers", "open it with more, as in workers(n)");
  detail::check_limit(wanted.depth, 1, max_blocks_ * batches_per_block_, "depth",
                      "open it with more, as in prefetch(n) after batch");
  detail::check_limit(wanted.ahead, 0, max_ahead_, "ahead",
                      "open it with more, as in prefetch(n) before batch");
  if (wanted.requests && max_requests_ == 0)
    throw error(
        errc::argument,
        "adjust: this run fetches nothing ahead and has no requests to adjust; write prefetch(n) before "
        "batch, over a storage that is not in memory");
  detail::check_limit(wanted.requests, 1, max_requests_, "requests",
                      "open it with more, as in prefetch(n, {.max_in_flight = 64})");
  const std::lock_guard guard(lock_);
  if (wanted.depth)
    blocks_.store((static_cast<std::size_t>(*wanted.depth) + batches_per_block_ - 1) / batches_per_block_,
                  std::memory_order_relaxed);
  if (wanted.ahead) ahead_.store(static_cast<std::uint64_t>(*wanted.ahead), std::memory_order_relaxed);
  if (wanted.requests) requests_.store(static_cast<std::size_t>(*wanted.requests), std::memory_order_relaxed);
  if (wanted.workers) {
    const std::uint64_t now = detail::now_ns();
    worker_ns_ += (now - changed_) * workers();
    changed_ = now;
    const auto count = static_cast<std::uint32_t>(*wanted.workers);
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(seen, count | (seen & stopped))) {
    }
    word_.notify_all();
  }
}

PENSTOCK_INLINE run_limits live_limits::now() const noexcept {
  run_limits limits;
  limits.ahead = static_cast<std::int64_t>(ahead());
  if (const std::size_t most = requests(); most != 0) limits.requests = static_cast<std::int64_t>(most);
  if (max_workers_ == 0) return limits;
  limits.workers = workers();
  limits.depth = static_cast<std::int64_t>(blocks() * batches_per_block_);
  return limits;
}

PENSTOCK_INLINE std::uint64_t live_limits::worker_ns(std::uint64_t now) const {
  const std::lock_guard guard(lock_);
  return worker_ns_ + (now > changed_ ? now - changed_ : 0) * workers();
}

PENSTOCK_INLINE void live_limits::rest(std::size_t number) const noexcept {
  for (std::uint32_t seen = word_.load(); number >= seen; seen = word_.load()) word_.wait(seen);
}

PENSTOCK_INLINE void live_limits::stop() noexcept {
  word_.fetch_or(stopped);
  word_.notify_all();
}

}  // namespace penstock::inline v0_1
