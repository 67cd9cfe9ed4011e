// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/bucket_cut.hpp>

#include <penstock/order/permutation.hpp>

#include <cstring>
#include <limits>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE std::uint64_t bucket_limits::tokens(std::uint64_t length) const noexcept {
  constexpr std::uint64_t absurd = std::numeric_limits<std::uint64_t>::max();
  if (length >> 63 != 0) return absurd;
  if (const std::uint64_t over = multiple == 1 ? 0 : length % multiple; over != 0) length += multiple - over;
  if (given.quadratic == 0) return length;
  return length >> 32 != 0 ? absurd : length + length * length / given.quadratic;
}

PENSTOCK_INLINE std::uint64_t bucket_limits::room(std::uint64_t tokens,
                                                  std::uint64_t max_tokens) const noexcept {
  std::uint64_t each = 0xffffffffu;
  if (given.max_samples != 0) each = std::min(each, given.max_samples);
  if (max_tokens != 0 && tokens != 0) each = std::min(each, max_tokens / tokens);
  return each * ranks;
}

PENSTOCK_INLINE std::uint64_t bucket_limits::max_tokens(position step) const {
  if (!given.max_tokens.changes()) return given.max_tokens.fixed();
  bucket_limits now = *this;
  now.given.max_tokens = given.max_tokens(step);
  now.check(0);
  return now.given.max_tokens.fixed();
}

PENSTOCK_INLINE void bucket_limits::check(std::uint64_t positions) const {
  const auto refuse = [](std::initializer_list<piece> why) {
    throw error(errc::argument, why).in_stage("bucket_by");
  };
  if (!given.max_tokens.changes() && (given.max_tokens.fixed() | given.max_samples) == 0)
    refuse({"bucket_by has no limit for its batches; give it max_tokens, max_duration or max_samples"});
  for (const std::uint64_t limit : {given.max_tokens.fixed(), given.max_samples})
    if (limit >> 63 != 0)
      refuse({"a limit of bucket_by is negative or absurd: ", limit,
              " as an unsigned number; it is below 2^63"});
  if (positions >> 40 != 0)
    refuse({"bucket_by goes through an epoch before its first batch, and this one has ", positions,
            " positions; write repeat(n) or take(n) before it"});
}

PENSTOCK_INLINE bucket_filler::bucket_filler(const bucket_limits& limits, std::uint64_t epoch,
                                             std::uint64_t positions, std::uint64_t buckets)
    : limits_(limits), epoch_(epoch), open_(detail::to_size(buckets)) {
  try {
    made_.buckets.resize(detail::to_size(positions));
  } catch (const std::exception&) {  // too many bytes, or too many for a vector
    throw out_of_memory(positions, "the buckets of an epoch's samples, a byte each",
                        "make the epoch shorter with take(n) before bucket_by");
  }
}

PENSTOCK_INLINE std::size_t bucket_filler::add(std::uint64_t first, const std::uint64_t* lengths,
                                               std::size_t count) {
  const std::uint8_t* const buckets = made_.buckets.data() + first;
  for (std::size_t i = 0; i < count; ++i) {
    open_step& step = open_[buckets[i]];
    const std::uint64_t tokens = limits_.tokens(lengths[i]);
    if (step.count == 0 || tokens > step.longest) {
      std::uint64_t room = step.count == 0 ? 0 : limits_.room(tokens, step.max_tokens);
      if (step.count >= room) {
        if (step.count != 0) close(step);
        step.max_tokens = last_limit_ = limits_.max_tokens({epoch_, made_.steps.size()});
        room = limits_.room(tokens, step.max_tokens);
        if (room == 0) return i;
      }
      step.longest = tokens;
      step.room = room;
    }
    if (step.count++ == 0) step.first = first + i;
    if (step.count == step.room) close(step);
  }
  return count;
}

PENSTOCK_INLINE void bucket_filler::close(open_step& step) {
  made_.steps.push_back({step.first, step.count});
  step = {};
}

PENSTOCK_INLINE bucket_steps bucket_filler::done(std::uint64_t key) {
  std::vector<bucket_step>& steps = made_.steps;
  made_.full = steps.size();
  const std::uint64_t window = limits_.given.window == 0 ? steps.size() : limits_.given.window;
  std::vector<bucket_step> in_order;
  for (std::uint64_t first = 0; first < made_.full; first += window) {
    const std::uint64_t count = std::min(window, made_.full - first);
    const permutation shuffled(count, key ^ mix64(first));
    const auto begin = steps.begin() + static_cast<std::ptrdiff_t>(first);
    in_order.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
    for (std::uint64_t i = 0; i < count; ++i)
      steps[detail::to_size(first + i)] = in_order[detail::to_size(shuffled(i))];
  }
  for (open_step& step : open_)
    if (step.count != 0) close(step);
  steps.push_back({made_.buckets.size(), 0});
  std::uint64_t before = 0;
  for (bucket_step& step : steps) before += std::exchange(step.before, before);
  steps.shrink_to_fit();
  return std::move(made_);
}

PENSTOCK_INLINE bucket_steps no_bucket_steps(const costly_sample& too_long, std::uint64_t max_tokens) {
  bucket_steps made = no_bucket_steps(nullptr);
  made.too_long = too_long;
  made.max_tokens = max_tokens;
  return made;
}
PENSTOCK_INLINE bucket_steps no_bucket_steps(std::exception_ptr failure) {
  bucket_steps made;
  made.steps.resize(2);
  made.failure = std::move(failure);
  return made;
}

[[gnu::noinline]] PENSTOCK_INLINE void rethrow_length(error& e, position at, std::uint64_t sample) {
  e.in_part(text({"the length of sample ", sample})).in_stage("bucket_by").add_context(at);
  throw;
}

}  // namespace detail

PENSTOCK_INLINE void bucketed_steps::list(std::uint64_t step, std::vector<std::uint64_t>& into) const {
  const std::uint64_t begin = first_of(step, rank_), end = first_of(step, rank_ + 1);
  if (begin == end) return;
  const std::uint8_t* const all = made_->buckets.data();
  const std::uint8_t* const stop = all + made_->buckets.size();
  const std::uint8_t* at = all + made_->steps[detail::to_size(step)].first;
  const std::uint8_t bucket = *at;
  for (std::uint64_t i = 0; i < end; ++i, ++at) {
    at = static_cast<const std::uint8_t*>(std::memchr(at, bucket, static_cast<std::size_t>(stop - at)));
    if (i >= begin) into.push_back(static_cast<std::uint64_t>(at - all));
  }
}

PENSTOCK_INLINE void bucketed_steps::refuse() const {
  if (made_->failure) std::rethrow_exception(made_->failure);
  const detail::costly_sample& found = *made_->too_long;
  throw error(
      errc::argument,
      {"sample ", found.sample, " counts as ", found.cost, " tokens, but a batch of bucket_by holds ",
       made_->max_tokens, " at most; raise max_tokens or max_duration, or leave the sample out with subset"})
      .in_stage("bucket_by")
      .add_context(found.at);
}

}  // namespace penstock::inline v0_1
