// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/read_ahead/request_limit.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE request_limit::request_limit(std::size_t maximum) noexcept
    : maximum_(std::max<std::size_t>(1, maximum)), now_(std::min(maximum_, first)) {}

PENSTOCK_INLINE void request_limit::bound(std::size_t maximum) noexcept {
  maximum_ = std::max<std::size_t>(1, maximum);
}

// Requests that began before a change are left out of what is measured: `skipped` of them.
PENSTOCK_INLINE void request_limit::measure_again(std::size_t skipped) noexcept {
  skips_ = skipped;
  ended_ = 0;
  bytes_ = 0;
}

PENSTOCK_INLINE void request_limit::ended(std::uint64_t now_ns, std::uint64_t bytes, bool waiting) noexcept {
  if (!waiting) {  // the limit did not decide how many were in flight
    measure_again(0);
    since_ = now_ns;
    return;
  }
  if (skips_ != 0) {
    --skips_;
    since_ = now_ns;
    return;
  }
  bytes_ += bytes;
  ++ended_;
  const std::size_t round = phase_ == phase::doubling ? now() : std::max<std::size_t>(32, 2 * now());
  if (ended_ < round || now_ns <= since_) return;
  const double per_second = static_cast<double>(bytes_) * 1e9 / static_cast<double>(now_ns - since_);
  since_ = now_ns;
  measure_again(0);
  round_over(per_second);
}

PENSTOCK_INLINE void request_limit::round_over(double per_second) noexcept {
  now_ = now();
  switch (phase_) {
    case phase::doubling:
      if (per_second < 1.3 * best_) {  // the last doubling brought little
        now_ = std::max<std::size_t>(1, now_ / 4 * 3);
        phase_ = phase::resting;
        measure_again(now_);
      } else if (now_ == maximum_) {
        phase_ = phase::resting;
        rests_ = rest_ = long_rest;
      } else {
        best_ = per_second;
        now_ = std::min(2 * now_, maximum_);
      }
      return;
    case phase::resting:
      if (rests_ != 0)
        --rests_;
      else
        try_other(per_second);
      return;
    case phase::more: {
      const double more = static_cast<double>(now_) / static_cast<double>(before_) - 1;
      return settle(per_second >= best_ * (1 + more / 2), per_second);
    }
    case phase::fewer:
      return settle(per_second >= 0.97 * best_, per_second);
  }
}

// Begins to compare the speed now with that of more requests, or of fewer.
PENSTOCK_INLINE void request_limit::try_other(double per_second) noexcept {
  if (maximum_ == 1) return;
  if (now_ == maximum_) more_is_next_ = false;
  if (now_ == 1) more_is_next_ = true;
  best_ = per_second;
  before_ = now_;
  now_ = more_is_next_ ? std::min(maximum_, now_ + std::max<std::size_t>(1, now_ / 4))
                       : now_ - std::max<std::size_t>(1, now_ / 5);
  phase_ = more_is_next_ ? phase::more : phase::fewer;
  measure_again(before_);
}

PENSTOCK_INLINE void request_limit::settle(bool kept, double per_second) noexcept {
  phase_ = phase::resting;
  if (kept) {  // perhaps there is more to gain in this direction
    rests_ = 0;
    rest_ = short_rest;
    return try_other(per_second);
  }
  now_ = before_;
  more_is_next_ = !more_is_next_;
  rests_ = rest_;
  rest_ = std::min(long_rest, 2 * rest_);
  measure_again(now_);
}

PENSTOCK_INLINE void request_limit::slow_down(std::uint64_t begun_ns, std::uint64_t now_ns) noexcept {
  if (begun_ns < slowed_ns_) return;
  slowed_ns_ = now_ns;
  now_ = std::max<std::size_t>(1, now() / 2);
  phase_ = phase::resting;
  more_is_next_ = true;
  rest_ = short_rest;
  rests_ = after_slow_ = std::min(long_rest, 2 * after_slow_);
  since_ = now_ns;
  measure_again(now_);
}

}  // namespace penstock::inline v0_1
