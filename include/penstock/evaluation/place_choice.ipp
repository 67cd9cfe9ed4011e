// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/place_choice.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>
#include <cmath>

namespace penstock::inline v0_1 {

namespace detail {
inline constexpr double little_saved = 0.02;  // of a sample's time
}

PENSTOCK_INLINE std::size_t best_place(std::span<const place_cost> places, double whole, std::uint64_t limit,
                                       std::uint64_t samples) noexcept {
  constexpr double little = detail::little_saved;
  const auto saved_by_all = [&](const place_cost& one) {
    const double all = one.bytes * static_cast<double>(samples);
    return one.saved * (all > static_cast<double>(limit) ? static_cast<double>(limit) / all : 1);
  };
  double most = 0;
  for (const place_cost& one : places)
    if (one.saved > little * whole) most = std::max(most, saved_by_all(one));
  std::size_t best = places.size();
  if (most <= 0) return best;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i].saved > little * whole && saved_by_all(places[i]) >= (1 - little) * most &&
        (best == places.size() || places[i].bytes < places[best].bytes))
      best = i;
  return best;
}

namespace detail {

PENSTOCK_INLINE place_choice::place_choice(std::uint64_t limit, std::uint64_t samples)
    : limit_(limit), samples_(samples) {
  tried_.push_back(std::make_unique<trial>());
}

PENSTOCK_INLINE std::uint32_t place_choice::add(std::string behind) {
  tried_.push_back(std::make_unique<trial>());
  tried_.back()->behind = std::move(behind);
  return static_cast<std::uint32_t>(tried_.size() - 1);
}

PENSTOCK_INLINE void place_choice::begin(std::uint32_t only) {
  if (only >= tried_.size())
    throw error(errc::argument,
                {"keep_in_memory has ", std::uint64_t{tried_.size() - 1},
                 " places to keep samples at, and was told to take number ", std::uint64_t{only}})
        .in_stage("keep_in_memory");
  const std::uint64_t of_an_epoch = samples_ / (4 * tried_.size());
  rounds_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(of_an_epoch, min_rounds, max_rounds));
  if (only == 0) return;
  measures_ = false;
  checked_.store(true, std::memory_order_release);
  chosen_.store(only, std::memory_order_release);
}

PENSTOCK_INLINE bool place_choice::trial::store(std::uint32_t rounds, std::uint64_t took,
                                                std::uint64_t takes) noexcept {
  const std::uint32_t at = used.fetch_add(1, std::memory_order_relaxed);
  if (at >= rounds) return false;
  nanoseconds[at] = took;
  bytes[at] = takes;
  return true;
}

PENSTOCK_INLINE void place_choice::measured(std::uint32_t place, std::uint64_t nanoseconds,
                                            std::uint64_t bytes) noexcept {
  // Whoever stores the last one sees all others.
  if (tried_[place]->store(rounds_, nanoseconds, bytes) &&
      done_.fetch_add(1, std::memory_order_acq_rel) + 1 == rounds_ * tried_.size())
    decide();
}

PENSTOCK_INLINE void place_choice::shown(std::uint64_t nanoseconds) noexcept {
  if (shown_.store(rounds_, nanoseconds, 0) &&
      done_shown_.fetch_add(1, std::memory_order_acq_rel) + 1 == rounds_)
    judge();
}

PENSTOCK_INLINE void place_choice::judge() noexcept {
  first_chosen_ = chosen_.load(std::memory_order_relaxed);
  saved_ = whole_ - seconds_of(shown_).mean;
  checked_.store(true, std::memory_order_release);
  if (saved_ <= little_saved * whole_) chosen_.store(0, std::memory_order_release);
}

PENSTOCK_INLINE void place_choice::differs(std::uint32_t place) noexcept {
  tried_[place]->differs.store(true, std::memory_order_relaxed);
}

PENSTOCK_INLINE place_choice::estimate place_choice::seconds_of(trial& one) const noexcept {
  const auto begin = one.nanoseconds.begin(), end = begin + rounds_;
  std::sort(begin, end);
  const std::uint32_t quarter = rounds_ / 4;
  double sum = 0;
  for (auto i = begin + quarter; i != end - quarter; ++i) sum += static_cast<double>(*i);
  const double spread = static_cast<double>(*(end - 1 - quarter) - *(begin + quarter));
  return {1e-9 * sum / (rounds_ - 2 * quarter),
          1e-9 * spread / 1.35 / std::sqrt(static_cast<double>(rounds_))};
}

PENSTOCK_INLINE void place_choice::decide() noexcept {
  const estimate whole = seconds_of(*tried_[0]);
  whole_ = whole.mean;
  std::array<place_cost, 16> careful{};
  const std::size_t places = std::min(tried_.size() - 1, careful.size());
  for (std::size_t i = 0; i < places; ++i) {
    trial& one = *tried_[i + 1];
    const estimate rest = seconds_of(one);
    std::uint64_t bytes = 0;
    for (std::uint32_t k = 0; k < rounds_; ++k) bytes += one.bytes[k];
    one.found = {whole.mean - rest.mean, static_cast<double>(bytes) / rounds_};
    careful[i] = one.found;
    careful[i].saved -= 2 * std::sqrt(whole.error * whole.error + rest.error * rest.error);
    if (one.differs.load(std::memory_order_relaxed)) careful[i].saved = 0;
  }
  const std::size_t best = best_place({careful.data(), places}, whole_, limit_, samples_);
  if (best == places) checked_.store(true, std::memory_order_release);
  chosen_.store(best == places ? 0 : static_cast<std::uint32_t>(best + 1), std::memory_order_release);
}

PENSTOCK_INLINE kept_choice place_choice::get() const {
  kept_choice all;
  const std::uint32_t chosen = chosen_.load(std::memory_order_acquire);
  all.limit = limit_;
  all.samples = samples_;
  all.measured = measures_;
  all.random_behind = random_behind_;
  for (std::size_t i = 1; i < tried_.size(); ++i) {
    kept_place& one = all.places.emplace_back();
    one.behind = tried_[i]->behind;
    one.differs = tried_[i]->differs.load(std::memory_order_relaxed);
    if (chosen == undecided) continue;
    one.saved_seconds = tried_[i]->found.saved;
    one.bytes = tried_[i]->found.bytes;
  }
  if (chosen == undecided) return all;
  if (measures_ && checked_.load(std::memory_order_acquire) && first_chosen_ != 0)
    all.places[first_chosen_ - 1].saved_seconds = saved_;
  all.chosen = chosen == 0 ? all.places.size() : chosen - 1;
  all.whole_seconds = whole_;
  return all;
}

}  // namespace detail

}  // namespace penstock::inline v0_1
