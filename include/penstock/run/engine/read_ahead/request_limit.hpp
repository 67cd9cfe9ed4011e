// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1 {

/// How many requests to have in flight: more as long as that brings more bytes per second, fewer where it
/// brings nothing, and half as many when a store asks for fewer. Arithmetic only: the caller says what
/// happened, and when.
///
/// It begins with 16 and doubles while each doubling makes the store at least 30 % faster, which takes one
/// round of requests each. Then it compares now and then: a quarter more requests are kept if they bring at
/// least half as much more, a fifth fewer if they lose at most 3 %. Rounds in which the caller had nothing to
/// request at times say nothing, and are left out.
/// Source: the slow start of TCP; hill climbing on throughput, because requests differ too much in size to
/// compare their latencies.
class request_limit {
 public:
  explicit request_limit(std::size_t maximum) noexcept;

  /// Requests that may be in flight now, from 1 to `maximum`.
  [[nodiscard]] std::size_t now() const noexcept { return now_ < maximum_ ? now_ : maximum_; }
  /// Sets the upper limit, such as that of a session that allows fewer.
  void bound(std::size_t maximum) noexcept;
  /// A request begins.
  void begun(std::uint64_t now_ns) noexcept {
    if (since_ == 0) since_ = now_ns;
  }
  /// A request has ended with so many bytes. `waiting`: others wait for the limit.
  void ended(std::uint64_t now_ns, std::uint64_t bytes, bool waiting) noexcept;
  /// The store asked for fewer requests in answer to one that was begun at that time. Several that were in
  /// flight together count once.
  void slow_down(std::uint64_t begun_ns, std::uint64_t now_ns) noexcept;

 private:
  enum class phase : std::uint8_t { doubling, resting, more, fewer };
  static constexpr std::size_t first = 16, short_rest = 4, long_rest = 64;

  void measure_again(std::size_t skipped) noexcept;
  void round_over(double per_second) noexcept;
  void settle(bool kept, double per_second) noexcept;
  void try_other(double per_second) noexcept;

  std::size_t maximum_, now_, before_ = 0;  // before the change that is being tried
  phase phase_ = phase::doubling;
  bool more_is_next_ = true;
  std::size_t rests_ = 0, rest_ = short_rest;  // rounds until the next change is tried
  double best_ = 0;                            // bytes per second that a change is compared with
  std::size_t ended_ = 0, skips_ = 0;          // in this round
  std::uint64_t since_ = 0, bytes_ = 0;
  std::uint64_t slowed_ns_ = 0;
  std::size_t after_slow_ = short_rest;  // rests after the store asked for fewer, longer each time
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/read_ahead/request_limit.ipp>
#endif
