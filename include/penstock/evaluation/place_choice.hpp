// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cached_form.hpp>
#include <penstock/core/compiled.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Which place in an expression samples are kept at.
namespace penstock::inline v0_1 {

/// A place where samples may be kept, as it was measured.
struct place_cost {
  double saved = 0;  ///< seconds that a kept sample saves
  double bytes = 0;  ///< that it takes
};

/// The place that saves most of an epoch's time: `saved` times the share of the samples for which `limit`
/// bytes have room. Of places that save as much as the best one, to 2 %, the one that takes the least memory.
/// `whole`: the seconds that a sample takes if nothing is kept; a place that saves less than 2 % of it is not
/// worth its memory. Returns the number of places if none is.
[[nodiscard]] std::size_t best_place(std::span<const place_cost> places, double whole, std::uint64_t limit,
                                     std::uint64_t samples) noexcept;

namespace detail {

/// What a worker does with a sample: keeps it at a place, or tries the place; `place` 0 stands for none.
struct place_turn {
  std::uint32_t place = 0;
  bool tries = true;
  friend bool operator==(const place_turn&, const place_turn&) = default;
};

/// Tries the places that a plan has, each with as many of its first samples, and nothing kept with as many
/// others; then chooses one, once for all workers.
///
/// Its estimate of what a place saves is the time of a sample of which nothing is kept, less that from the
/// place to the end of the chain; of both the mean of the middle half, because a machine with other work
/// makes some samples slow. What it compares is less by twice the error of the estimate: a place that
/// seems to save time by chance must not be chosen before one that does. But a sample that was made just now
/// is shown from the processor's cache. So the first samples that are shown later are timed, too: if they
/// save too little, nothing is kept any more.
///
/// Threads: `next`, `keeps`, `measured`, `differs`, `checks`, `shown` and `get` in any. A sample costs one
/// atomic load once it is chosen.
class place_choice {
 public:
  static constexpr std::uint32_t max_rounds = 32, min_rounds = 4;

  place_choice(std::uint64_t limit, std::uint64_t samples);

  // While the chain is made:
  /// Adds a place; returns its number, from 1.
  std::uint32_t add(std::string behind);
  void set_random(std::string behind) { random_behind_ = std::move(behind); }
  /// Begins with measuring, or with place `only` if that is not 0.
  void begin(std::uint32_t only);

  [[nodiscard]] place_turn next() noexcept {
    const std::uint32_t chosen = chosen_.load(std::memory_order_acquire);
    if (chosen != undecided) return {chosen, false};
    return {turns_.fetch_add(1, std::memory_order_relaxed) % static_cast<std::uint32_t>(tried_.size()), true};
  }
  /// Whether samples are kept at a place now.
  [[nodiscard]] bool keeps(std::uint32_t place) const noexcept {
    return chosen_.load(std::memory_order_acquire) == place;
  }
  /// A sample of a turn that tried a place: the time behind the place, all of it for place 0, and the bytes
  /// that it would take.
  void measured(std::uint32_t place, std::uint64_t nanoseconds, std::uint64_t bytes) noexcept;
  /// Whether samples that are shown are to be timed: `shown` gets the time behind the chosen place.
  [[nodiscard]] bool checks() const noexcept { return !checked_.load(std::memory_order_acquire); }
  void shown(std::uint64_t nanoseconds) noexcept;
  /// Samples kept at a place would have other values.
  void differs(std::uint32_t place) noexcept;

  [[nodiscard]] kept_choice get() const;

 private:
  static constexpr std::uint32_t undecided = ~std::uint32_t{0};

  struct trial {
    std::string behind;
    std::array<std::uint64_t, max_rounds> nanoseconds{}, bytes{};
    std::atomic<std::uint32_t> used{0};
    std::atomic<bool> differs{false};
    place_cost found;  // written before chosen_

    /// Returns false if there are enough.
    bool store(std::uint32_t rounds, std::uint64_t took, std::uint64_t takes) noexcept;
  };
  struct estimate {
    double mean = 0, error = 0;
  };
  [[nodiscard]] estimate seconds_of(trial& one) const noexcept;
  void decide() noexcept;
  void judge() noexcept;

  std::uint64_t limit_, samples_;
  std::vector<std::unique_ptr<trial>> tried_;  // the first one is no place
  std::string random_behind_;
  std::uint32_t rounds_ = max_rounds;
  bool measures_ = true;
  double whole_ = 0;
  trial shown_;
  std::uint32_t first_chosen_ = 0;  // and these are written before checked_
  double saved_ = 0;
  std::atomic<std::uint32_t> chosen_{undecided}, turns_{0}, done_{0}, done_shown_{0};
  std::atomic<bool> checked_{false};
};

}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/evaluation/place_choice.ipp>
#endif
