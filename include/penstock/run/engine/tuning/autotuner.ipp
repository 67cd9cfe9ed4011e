// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/tuning/autotuner.hpp>

#include <penstock/core/message.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void autotuner::side::add(const tuner_totals& now, const tuner_totals& before) noexcept {
  const auto more = [&](std::uint64_t tuner_totals::*which) {
    return static_cast<double>(now.*which - std::min(now.*which, before.*which));
  };
  const double spent = more(&tuner_totals::ns), count = more(&tuner_totals::samples);
  const double one = spent / std::max(1.0, count);
  ns += spent;
  stall += more(&tuner_totals::stall_ns);
  busy += more(&tuner_totals::busy_ns);
  room += more(&tuner_totals::room_in_stall_ns);
  reading = now.reading;
  samples += count;
  looks += 1;
  each += one;
  squares += one * one;
}

PENSTOCK_INLINE double autotuner::side::variance() const noexcept {
  if (looks < 2 || each <= 0) return 0;
  const double mean = each / looks;
  return std::max(0.0, squares / looks - mean * mean) * looks / ((looks - 1) * mean * mean);
}

PENSTOCK_INLINE autotuner::autotuner(const tuner_setup& setup)
    : setup_(setup), now_(setup.start), best_(setup.start), trial_(setup.start) {
  done_.reserve(max_trials);
}

PENSTOCK_INLINE void autotuner::begin_search(std::uint64_t now_ns) {
  phase_ = phase::warming;
  begun_ns_ = now_ns;
  stride_ = 1;
  done_.clear();
  on_trial_ = confirming_ = compared_ = false;
  pairs_ = window_ = 0;
  kept_before_ = kept_;
  own_ = pauses_ = spread_ = 0;
}

PENSTOCK_INLINE void autotuner::fix(std::uint64_t tuned_limits::*which, std::uint64_t value) {
  for (tuned_limits* const one : {&setup_.start, &setup_.least, &setup_.most, &now_, &best_, &trial_})
    one->*which = value;
  now_ = best_;
  begin_search(last_.ns);
}

PENSTOCK_INLINE const tuned_limits& autotuner::look(const tuner_totals& now) {
  const tuner_totals before = std::exchange(last_, now);
  if (!begun_) {
    begun_ = true;
    begun_ns_ = now.ns;
    return now_;
  }
  if (now.blocks <= before.blocks || now.samples <= before.samples) return now_;
  if (skip_ != 0) {
    skip_ -= std::min(skip_, now.blocks - before.blocks);
    return now_;
  }
  if (is_pause(before)) return now_;
  switch (phase_) {
    case phase::warming:
      warm(now.ns - before.ns);
      break;
    case phase::trying:
      search(before);
      break;
    case phase::quiet:
      watch_for_change(before);
      break;
  }
  return now_;
}

// Whether the loop itself took far longer than usual, as for a checkpoint; three times in a row is a change.
PENSTOCK_INLINE bool autotuner::is_pause(const tuner_totals& before) noexcept {
  side one;
  one.add(last_, before);
  const double own = one.own();
  if (own_ > 0 && own > 4 * own_ && own - own_ > one.per_sample() / 2 && pauses_ < 3) {
    ++pauses_;
    return true;
  }
  own_ = own_ <= 0 || pauses_ != 0 ? own : own_ + (own - own_) / 4;
  pauses_ = 0;
  return false;
}

PENSTOCK_INLINE void autotuner::warm(std::uint64_t ns) {
  const std::uint64_t wanted = std::max<std::uint64_t>(1, setup_.within_ns / looks_within);
  if (ns < wanted) {
    stride_ *= 2;
    return;
  }
  stride_ = std::max<std::uint64_t>(1, stride_ * wanted / ns);
  const std::uint64_t look_ns = std::max(wanted, ns / std::max<std::uint64_t>(1, ns / wanted));
  looks_ = std::clamp<std::uint64_t>(setup_.within_ns / windows_within / look_ns, 1, max_looks);
  phase_ = phase::trying;
  base_ = {};
  window_ = 0;
}

PENSTOCK_INLINE void autotuner::search(const tuner_totals& before) {
  (on_trial_ ? tried_ : base_).add(last_, before);
  ++window_;
  if (on_trial_ && is_far_slower()) return end_trial(false);
  if (time_is_up(5)) {
    if (on_trial_ || pairs_ != 0) return end_trial(confirming_ && judge() != outcome::worse);
    return try_next();
  }
  if (window_ < looks_) return;
  window_ = 0;
  spread_ = std::max(spread_, (on_trial_ ? tried_ : base_).variance());
  if (!on_trial_ && pairs_ == 0) return try_next();
  if (on_trial_) {
    ++pairs_;
    if (const outcome found = judge(); found != outcome::unclear) return end_trial(found == outcome::better);
  }
  on_trial_ = !on_trial_;
  change_to(on_trial_ ? trial_ : best_);
}

PENSTOCK_INLINE autotuner::outcome autotuner::judge() const noexcept {
  const double faster = base_.per_sample() / std::max(1e-9, tried_.per_sample()) - 1;
  // What was found is worth its place in a program if it is more than 1 % faster than the start.
  const double needed = confirming_ ? -0.01 : gain;
  // Slow samples may be so rare that few looks have one.
  const double usual = std::max({spread_, base_.variance(), tried_.variance()});
  const double spread =
      1.5 * std::sqrt(usual / std::max(1.0, base_.looks) + usual / std::max(1.0, tried_.looks));
  if (pairs_ < max_pairs && std::abs(faster - needed) < spread) return outcome::unclear;
  return faster >= needed ? outcome::better : outcome::worse;
}

PENSTOCK_INLINE bool autotuner::is_far_slower() const noexcept {
  const double slower = tried_.per_sample() / std::max(1e-9, base_.per_sample());
  if (tried_.looks < 2) return slower > 3;
  return slower * (1 - 2 * std::sqrt(tried_.variance() / tried_.looks)) > 1.5;
}

PENSTOCK_INLINE void autotuner::end_trial(bool better) {
  on_trial_ = false;
  pairs_ = window_ = 0;
  if (std::exchange(confirming_, false)) {
    compared_ = true;
    if (better) best_ = setup_.start;
    return rest();
  }
  if (!better) {
    change_to(best_);
    base_ = {};
    return;
  }
  compared_ = best_ == setup_.start;
  best_ = trial_;
  ++kept_;
  base_ = tried_;
  try_next();
}

PENSTOCK_INLINE void autotuner::try_next() {
  tuned_limits next;
  if (!time_is_up(4) && propose(next)) {
    done_.push_back(next);
    return begin_trial(next);
  }
  if (best_ == setup_.start || compared_ || time_is_up(5)) {
    // Nothing to gain; but what is rare, as slow samples are, shows only after some time.
    if (base_.ns < static_cast<double>(setup_.within_ns) / 5 && !time_is_up(4)) return;
    return rest();
  }
  confirming_ = true;
  begin_trial(setup_.start);
}

PENSTOCK_INLINE void autotuner::begin_trial(const tuned_limits& limits) {
  trial_ = limits;
  tried_ = {};
  on_trial_ = true;
  pairs_ = window_ = 0;
  ++trials_;
  change_to(limits);
}

PENSTOCK_INLINE void autotuner::rest() {
  change_to(best_);
  phase_ = phase::quiet;
  ++searches_;
  patience_ = kept_ == kept_before_ ? std::min(max_patience, 2 * patience_) : first_patience;
  base_ = {};
  window_ = odd_ = 0;
  usual_each_ = 0;
}

PENSTOCK_INLINE void autotuner::watch_for_change(const tuner_totals& before) {
  base_.add(last_, before);
  if (++window_ < 2 * looks_) return;
  const double each = base_.per_sample(), own = base_.own(), stall = base_.stall / base_.ns;
  const double spread = 3 * std::sqrt(std::max(spread_, base_.variance()) / base_.looks);
  window_ = 0;
  base_ = {};
  if (usual_each_ <= 0) {
    usual_each_ = each;
    usual_own_ = own;
    usual_stall_ = stall;
    return;
  }
  const bool odd = std::abs(each - usual_each_) > (change + spread) * usual_each_ ||
                   std::abs(own - usual_own_) > change * std::max(usual_own_, each / 2) ||
                   stall > usual_stall_ + more_stall + spread;
  odd_ = odd ? odd_ + 1 : 0;
  if (odd_ >= patience_) begin_search(last_.ns);
}

// Blocks begun under other limits are left out: those in flight, and those whose samples were requested.
PENSTOCK_INLINE void autotuner::change_to(const tuned_limits& limits) noexcept {
  if (limits == now_) return;
  const double in_block =
      last_.blocks == 0 ? 1 : static_cast<double>(last_.samples) / static_cast<double>(last_.blocks);
  skip_ = std::max(limits.depth, now_.depth);
  if (limits.ahead != now_.ahead || limits.requests != now_.requests)
    skip_ += static_cast<std::uint64_t>(static_cast<double>(std::max(limits.ahead, now_.ahead)) /
                                        std::max(1.0, in_block));
  skip_ = std::min(skip_, 2 * looks_ * stride_);
  now_ = limits;
}

// Brings limits within the bounds; false if they were tried, or are those in force.
PENSTOCK_INLINE bool autotuner::may_try(tuned_limits& limits) const {
  const std::uint64_t deepest = std::max(setup_.start.depth, std::min(setup_.most.depth, last_.max_depth));
  limits.depth = std::min(limits.depth, deepest);
  for (const auto one : tuned_limits::all)
    limits.*one = std::clamp(limits.*one, setup_.least.*one, setup_.most.*one);
  return limits != best_ && std::find(done_.begin(), done_.end(), limits) == done_.end();
}

PENSTOCK_INLINE bool autotuner::propose(tuned_limits& found) const {
  if (done_.size() >= max_trials || base_.ns <= 0) return false;
  const auto workers = static_cast<double>(best_.workers);
  const double stall = base_.stall / base_.ns, busy = base_.busy / (base_.ns * workers);
  const double idle = base_.stall > 0 ? base_.room / (base_.stall * workers) : 0;
  const auto take = [&](std::uint64_t tuned_limits::*which, std::uint64_t value) {
    found = best_;
    found.*which = value = std::clamp(value, setup_.least.*which, setup_.most.*which);
    if (which == &tuned_limits::workers && value > best_.workers)
      found.depth = std::max(found.depth, value + 3);  // as by default
    return may_try(found);
  };
  const auto fewer = [&] {
    if (best_.workers == 1) return false;
    found = best_;
    found.workers -= best_.workers > 4 ? best_.workers / 4 : 1;
    return may_try(found);
  };
  // A loop that does not wait can gain only the processors that workers take from its step.
  if (stall < little_stall)
    return setup_.crowded && busy * workers > 0.05 && busy * workers < 0.95 * (workers - 1) && fewer();
  // By the model, so many workers keep up with the step.
  const double step = base_.own(), work = base_.busy / base_.samples;
  const std::uint64_t next = best_.workers + 1, most = std::max(next, setup_.most.workers);
  const std::uint64_t enough = std::clamp(1.1 * work < step * static_cast<double>(most)
                                              ? static_cast<std::uint64_t>(std::ceil(1.1 * work / step))
                                              : most,
                                          next, most);
  constexpr auto w = &tuned_limits::workers, depth = &tuned_limits::depth, ahead = &tuned_limits::ahead,
                 requests = &tuned_limits::requests;
  return (base_.reading > 0.5 && take(ahead, 2 * best_.ahead)) ||
         (idle > 0.25 && take(depth, 4 * best_.depth)) || take(w, enough) ||
         take(w, (best_.workers + enough) / 2) || take(w, next) || take(depth, 2 * best_.depth) ||
         take(ahead, 2 * best_.ahead) || take(requests, 2 * best_.requests) ||
         ((setup_.crowded || best_.workers > setup_.start.workers) && fewer());
}

PENSTOCK_INLINE std::string as_stages(const tuned_limits& limits, const tuned_limits& start,
                                      bool depth_is_said) {
  std::string text;
  const bool more_requests = limits.requests != start.requests;
  if (limits.ahead != start.ahead || more_requests) {
    detail::append(text, {"| prefetch(", limits.ahead});
    if (more_requests) detail::append(text, {", {.max_in_flight = ", limits.requests, "}"});
    text += ") | batch(...) ";
  }
  if (depth_is_said && (limits.depth != start.depth || limits.workers != start.workers))
    detail::append(text, {text.empty() ? "| batch(...) " : "", "| prefetch(", limits.depth - 1, ") "});
  if (limits.workers != start.workers) detail::append(text, {"| workers(", limits.workers, ") "});
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace penstock::inline v0_1
