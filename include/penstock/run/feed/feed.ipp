// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/feed/feed.hpp>

#include <penstock/core/error.hpp>
#include <penstock/run/state.hpp>

#include <algorithm>
#include <exception>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE feed::feed(feed_facts facts)
    : facts_(std::move(facts)), cursor_(facts_.buffer_capacity, facts_.buffer_seed) {
  const cut& c = facts_.mine;
  whole_ = c.whole();
  by_arithmetic_ = !facts_.has_buffer && !facts_.uneven.any();
  if (facts_.forward) {
    in_pass_ = end_ = std::numeric_limits<std::uint64_t>::max();  // their number is unknown
  } else if (facts_.by_sample) {
    in_pass_ = end_ = c.size / c.world + (c.rank < c.size % c.world ? 1 : 0);
  } else if (facts_.uneven.any()) {
    usual_ = std::max<std::uint64_t>(1, facts_.uneven.usual());
  } else {
    in_pass_ = facts_.after_batch.any() ? facts_.after_batch.size() : c.steps();
    end_ = facts_.fixed_steps.value_or(in_pass_);
    if (facts_.fixed_steps && in_pass_ == 0)
      throw error(errc::argument,
                  "steps(n): a pass over the data gives no batch; use a smaller batch or tail::keep")
          .in_stage("steps");
  }
}

PENSTOCK_INLINE std::optional<std::uint64_t> feed::samples_per_epoch() const {
  const cut& c = facts_.mine;
  if (facts_.by_sample) {
    if (facts_.forward || facts_.fixed_steps || c.size >= no_end) return std::nullopt;
    return in_pass_;
  }
  if (facts_.uneven.any()) return c.size / c.world;
  if (!facts_.fixed_steps && (c.size >= no_end || end_ >= no_end)) return std::nullopt;
  if (facts_.fixed_steps || facts_.after_batch.any()) return end_ * whole_.slots;
  return whole_.count * whole_.slots + (c.steps() > whole_.count ? c.valid(whole_.count) : 0);
}

PENSTOCK_INLINE std::uint64_t feed::slots_per_block() const noexcept {
  if (facts_.by_sample) return facts_.chunk;
  if (facts_.uneven.any()) return usual_;
  const cut& c = facts_.mine;
  // A last step that is divided anew may give a rank one more than a whole step does.
  return std::max<std::uint64_t>(1, std::max(c.slots(0), c.slots(c.steps() - 1)));
}

PENSTOCK_INLINE bool feed::ready() noexcept {
  try {
    if (!more()) return false;
    if (facts_.uneven.any()) (void)now_.at(step_);
    return true;
  } catch (...) {  // the next `prepare` reports the error
    return false;
  }
}

PENSTOCK_INLINE void feed::seek(std::uint64_t epoch, std::uint64_t step, std::uint64_t pass) {
  if (facts_.uneven.any() && epoch_ != epoch) {
    bound_ = no_epoch;
    end_ = 0;
  }
  epoch_ = epoch;
  pass_ = pass;
  step_ = step;
  const bool known = !facts_.uneven.any() || step_ == 0 || bind_epoch();
  if (known && !facts_.by_sample && step_ != 0 && step_ >= end_) next_pass();
  cursor_place_ = {no_epoch, 0};
}

PENSTOCK_INLINE std::uint64_t feed::ordinals_below(std::uint64_t index) const noexcept {
  const cut& c = facts_.mine;
  return std::min(index / c.world + (c.rank < index % c.world ? 1 : 0), in_pass_);
}

PENSTOCK_INLINE std::string_view feed::wrong_with(const state& s) const {
  const cut& c = facts_.mine;
  bool same_world = true;
  if (facts_.uneven.any()) {
    if (!s.front.empty() || !s.held.empty() ||
        (s.pass | s.rows | s.survivors | s.dealt | s.taken | s.given) != 0)
      return "it counts rows where only batches are counted";
    return {};  // `step_of` checks the rest
  }
  if (!facts_.by_sample) {
    if (s.step > end_) return "it has more steps than an epoch";
    if (!s.front.empty() || (s.pass | s.ordinal | s.rows | s.survivors | s.dealt) != 0)
      return "it counts samples where only batches are counted";
  } else {
    if (facts_.fixed_steps ? s.step > facts_.max_steps : s.pass != 0)
      return "it has more steps or passes than an epoch";
    if (s.rows > s.survivors) return "it counts more rows in part than in all";
    if (s.front.empty() ? facts_.forward && s.ordinal != 0 : !facts_.forward)
      return "the place of the source does not match its samples";
    if (facts_.forward) return {};  // the number of samples is unknown
    same_world = !facts_.dealt_in_rotation || s.world == c.world;
    if (same_world ? s.ordinal > in_pass_ : s.ordinal > c.size || s.rows > c.size)
      return "it has more samples than the data";
  }
  if (!same_world || (s.taken == 0 && s.given == 0 && s.held.empty())) return {};
  if (facts_.has_buffer) {
    feed there = *this;
    there.seek(s.epoch, facts_.by_sample ? s.ordinal : s.step, s.pass);
    const position at = there.locate();
    const std::uint64_t each = facts_.shard_before_buffer ? c.slots(0) : c.global;
    if (s.given == std::min(at.index * each, cursor_inputs()) &&
        cursor_.could_hold(cursor_inputs(), s.taken, s.given, s.held))
      return {};
  }
  return facts_.by_sample ? "the contents of its shuffle_buffer do not match its samples"
                          : "the contents of its shuffle_buffer do not match its step";
}

PENSTOCK_INLINE std::uint64_t feed::samples_before() const {
  if (!facts_.uneven.any() || step_ == 0) return 0;
  return bound_ == epoch_ ? now_.before(step_) : facts_.uneven.bind(epoch_).before(step_);
}

PENSTOCK_INLINE std::optional<std::uint64_t> feed::step_of(const state& s) const {
  if (!facts_.uneven.any() || (s.step | s.ordinal) == 0) return s.step;
  const any_epoch_cut there = facts_.uneven.bind(s.epoch);
  // With rows, `global_batch` has the same steps on other ranks, and a step may have another number of rows.
  const bool same = (s.world == facts_.mine.world || there.packs()) && s.step <= there.steps();
  if (same && there.before(s.step) == s.ordinal) return s.step;
  if (!there.elastic() || (s.world == facts_.mine.world && !there.packs())) return std::nullopt;
  std::uint64_t low = 0, high = there.steps();  // finds the first step with as many samples before it
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (there.before(middle) < s.ordinal)
      low = middle + 1;
    else
      high = middle;
  }
  return there.before(low) == s.ordinal ? std::optional(low) : std::nullopt;
}

PENSTOCK_INLINE std::optional<std::uint64_t> feed::check_epoch() const {
  if (facts_.forward) return std::nullopt;
  if (facts_.by_sample) return facts_.mine.size == 0 ? std::optional<std::uint64_t>(0) : std::nullopt;
  if (!facts_.uneven.any()) return end_;
  try {
    const any_epoch_cut epoch = facts_.uneven.bind(epoch_, stop_);
    epoch.check();
    return epoch.steps();
  } catch (const pass_stopped&) {  // there will be no step
    return std::nullopt;
  }
}

PENSTOCK_INLINE void feed::restore_cursor(std::uint64_t taken, std::uint64_t given,
                                          std::vector<std::uint64_t> held) {
  const position at = locate();
  cursor_.restore(at.epoch, cursor_inputs(), taken, given, std::move(held));
  cursor_place_ = at;
}

PENSTOCK_INLINE void feed::prepare(placement& p, std::size_t maximum) {
  p.batches.clear();
  p.indices.clear();
  p.step_indices.clear();
  p.listed = facts_.has_buffer;
  p.shares_step = facts_.mine.world > 1 && !facts_.uneven.any() && !facts_.shard_before_buffer;
  p.last = false;
  p.slots = 0;
  p.low = std::numeric_limits<std::uint64_t>::max();
  p.high = 0;
  if (facts_.by_sample)
    prepare_chunk(p);
  else if (facts_.uneven.any())
    prepare_uneven(p);
  else
    prepare_batches(p, maximum);
}

PENSTOCK_INLINE void feed::prepare_batches(placement& p, std::size_t maximum) {
  const cut& c = facts_.mine;
  position at = locate();
  p.epoch = at.epoch;
  if (const std::uint64_t plain = plain_steps(maximum); plain != 0) {
    p.low = at.index * c.global;
    p.high = p.low + plain * c.global;
    p.step_first = p.high - c.global;
    p.step_count = c.global;
    return add_plain(p, plain, at);
  }
  do {
    const bool is_whole = at.index < whole_.count;  // every step but the last: nothing is divided
    batch_rows& batch = p.batches.emplace_back();
    batch.first = p.slots;
    batch.slots = is_whole ? whole_.slots : c.slots(at.index);
    batch.valid = is_whole ? whole_.slots : c.valid(at.index);
    batch.global = is_whole ? c.global : c.count(at.index);
    batch.delivered = {epoch_, step_};
    if (facts_.has_buffer) {
      draw(1, &p);
      p.indices.resize(detail::to_size(batch.first + batch.slots));  // padding has no position
      p.cover_listed(batch.first, batch.valid);
    } else {
      batch.view = is_whole ? step_view(at.index * c.global, c.global, c.lanes, whole_.begin, whole_.slots,
                                        whole_.slots)
                            : c.at(at.index);
      p.cover(at.index * c.global, at.index * c.global + batch.global);
    }
    p.step_first = at.index * c.global;
    p.step_count = batch.global;
    p.slots += batch.slots;
    go_on(1);
    if (p.batches.size() == maximum || !more()) break;
    at = locate();
  } while (at.epoch == p.epoch && p.batches.back().delivered.epoch == epoch_);
}

/// Finds out what must be known before advancing by so many steps; false if the run was stopped first.
PENSTOCK_INLINE bool feed::look(std::uint64_t steps) {
  if (facts_.has_buffer) draw(steps, nullptr);
  return !facts_.uneven.any() || bind_epoch();
}

PENSTOCK_INLINE bool feed::is_end() {
  if (facts_.uneven.any() && !bind_epoch()) return true;
  return step_ >= end_;
}

PENSTOCK_INLINE bool feed::bind_this_epoch() {
  try {
    now_ = facts_.uneven.bind(epoch_, stop_);
  } catch (const pass_stopped&) {
    return false;
  }
  end_ = now_.steps();
  bound_ = epoch_;
  return true;
}

PENSTOCK_INLINE void feed::prepare_uneven(placement& p) {
  if (!bind_epoch()) throw pass_stopped{};  // impossible if `ready` returned true
  const step_view view = now_.at(step_);
  batch_rows& batch = p.batches.emplace_back();
  batch.view = view;
  p.slots = batch.slots = view.slots();
  batch.valid = view.valid();
  batch.global = now_.count(step_);
  batch.delivered = {epoch_, step_};
  p.step_first = now_.before(step_);
  p.step_count = batch.global;
  p.epoch = epoch_;
  p.listed = now_.lists();
  if (p.listed) {
    now_.list(step_, p.indices);
    if (now_.packs()) now_.pack(step_, p.packed);
    // A rank without a sample of the step asks one of the first rank, which has some, for its shape.
    if (batch.valid == 0 && batch.global != 0)
      facts_.uneven.on(facts_.mine.world, 0).bind(epoch_, stop_).list(step_, p.step_indices);
    p.indices.resize(detail::to_size(p.slots));  // padding has no position
    p.cover_listed(0, batch.valid);
  } else if (batch.valid != 0) {
    const std::uint64_t first = view.contiguous() ? view.base() : now_.before(step_);
    p.cover(first, first + (view.contiguous() ? batch.valid : batch.global));
  }
  go_on(1);
}

/// Of what is needed before the first batch of a pass is full, no chunk holds more than a sixteenth. Chunk
/// boundaries show in states, so they depend neither on time nor on where a run was opened.
PENSTOCK_INLINE std::uint64_t feed::next_chunk() const noexcept {
  const std::uint64_t first = facts_.first_chunk, maximum = facts_.chunk;
  if (first == 0 || first >= maximum) return maximum;
  if (!facts_.chunks_are_batches) return std::clamp(step_ / 16, first, maximum);
  return step_ >= 2 * maximum ? maximum : std::min(first, maximum - step_ % maximum);
}

PENSTOCK_INLINE void feed::prepare_chunk(placement& p) {
  const cut& c = facts_.mine;
  p.epoch = locate().epoch;
  batch_rows& batch = p.batches.emplace_back();
  batch.delivered = {epoch_, step_};
  if (facts_.forward) {  // their number is known when they are pulled
    p.slots = batch.slots = next_chunk();
    batch.view = step_view(step_, p.slots, 1, 0, p.slots, p.slots);
    return go_on(p.slots);
  }
  const std::uint64_t count = std::min(next_chunk(), in_pass_ - std::min(in_pass_, step_));
  p.slots = batch.slots = batch.valid = count;
  p.last = step_ + count >= in_pass_;
  if (!p.listed && c.world == 1 && c.lanes == 1) {
    batch.view = step_view(step_, count, 1, 0, count, count);
    p.cover(step_, step_ + count);
  } else {
    if (p.listed)
      draw(count, &p);
    else
      for (std::uint64_t i = 0; i < count; ++i) p.indices.push_back(c.at(step_ + i)[0]);
    p.listed = true;
    p.cover_listed(0, p.indices.size());
  }
  go_on(count);
}

PENSTOCK_INLINE void feed::next_pass() noexcept {
  if (facts_.by_sample && facts_.fixed_steps) {
    ++pass_;
  } else {
    ++epoch_;
    pass_ = 0;
    if (facts_.uneven.any()) end_ = 0;
  }
  step_ = 0;
}

PENSTOCK_INLINE void feed::settle() {
  if (facts_.has_buffer && (step_ < end_ || facts_.by_sample)) reach(locate());
}

PENSTOCK_INLINE position feed::locate() const {
  if (facts_.by_sample) return {epoch_ + (pass_ << 32), step_};
  position at{epoch_, step_};
  if (facts_.fixed_steps && in_pass_ != 0) at = {epoch_ + (step_ / in_pass_ << 32), step_ % in_pass_};
  return facts_.after_batch.any() ? facts_.after_batch.sample_at(at) : at;
}

// How many of the next steps are whole steps of one pass, without lanes, buffer or steps(n).
PENSTOCK_INLINE std::uint64_t feed::plain_steps(std::size_t maximum) const noexcept {
  if (facts_.has_buffer || facts_.after_batch.any() || facts_.fixed_steps) return 0;
  if (facts_.mine.lanes != 1 || step_ >= whole_.count) return 0;
  return std::min<std::uint64_t>(maximum, whole_.count - step_);
}

PENSTOCK_INLINE void feed::add_plain(placement& p, std::uint64_t count, position at) {
  const std::uint64_t global = facts_.mine.global, slots = whole_.slots, epoch = epoch_;
  std::uint64_t base = at.index * global + whole_.begin, row = 0, step = step_;
  for (const std::uint64_t end = step + count; step != end; ++step, base += global, row += slots)
    p.batches.emplace_back(base, row, slots, global, position{epoch, step});
  p.slots = row;
  go_on(count);
}

// The number of ordinals that pass through the buffer in an epoch.
PENSTOCK_INLINE std::uint64_t feed::cursor_inputs() const noexcept {
  const cut& c = facts_.mine;
  if (!facts_.shard_before_buffer) return c.size;
  const std::uint64_t inputs = whole_.count * (whole_.count == 0 ? 0 : c.slots(0));
  return c.steps() > whole_.count ? inputs + c.valid(whole_.count) : inputs;
}

PENSTOCK_INLINE void feed::reach(position at) {
  if (cursor_place_.epoch != at.epoch || cursor_place_.index > at.index) {
    cursor_.begin(at.epoch, cursor_inputs());
    cursor_place_ = {at.epoch, 0};
  }
  for (; at.index > cursor_place_.index; ++cursor_place_.index) draw_step(cursor_place_.index, nullptr);
}

// Draws the next steps, starting where the feed stands.
PENSTOCK_INLINE void feed::draw(std::uint64_t steps, placement* into) {
  reach(locate());
  for (; steps != 0; --steps) draw_step(cursor_place_.index++, into);
}

// Draws one global step (after `shard`, this rank's part of it) and lists this rank's ordinals.
PENSTOCK_INLINE void feed::draw_step(std::uint64_t step, placement* into) {
  std::vector<std::uint64_t>* const indices = into == nullptr ? nullptr : &into->indices;
  const cut& c = facts_.mine;
  const std::uint64_t valid = c.valid(step);
  if (facts_.shard_before_buffer) {
    // the last step may have more than a whole one
    const std::uint64_t in_whole = whole_.count * whole_.slots;
    for (std::uint64_t i = 0; i < valid; ++i) {
      const std::uint64_t ordinal = cursor_.next();
      if (indices == nullptr) continue;
      indices->push_back(ordinal < in_whole ? c.at(ordinal / whole_.slots)[ordinal % whole_.slots]
                                            : c.at(whole_.count)[ordinal - in_whole]);
    }
  } else {
    const std::uint64_t count = c.count(step), divided = c.policy == tail::keep ? count : c.global;
    const std::uint64_t begin = std::min(count, divided * c.rank / c.world);
    if (into != nullptr) into->step_indices.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t ordinal = cursor_.next();
      if (into != nullptr && into->shares_step && !facts_.by_sample) into->step_indices.push_back(ordinal);
      if (indices != nullptr && i >= begin && i < begin + valid) indices->push_back(ordinal);
    }
  }
}

PENSTOCK_INLINE void position_buffer::begin(std::uint64_t epoch, std::uint64_t size) {
  epoch_ = epoch;
  size_ = size;
  taken_ = 0;
  given_ = 0;
  held_.clear();
  const std::uint64_t room = std::min(capacity_, size_);
  try {
    held_.reserve(detail::to_size(room));
  } catch (const std::exception&) {  // too many bytes, or too many for a vector
    throw out_of_memory(8 * room, "the positions that shuffle_buffer holds",
                        "give it fewer, or write shuffle, which holds none");
  }
  while (held_.size() < capacity_ && taken_ < size_) held_.push_back(taken_++);
}

PENSTOCK_INLINE void position_buffer::restore(std::uint64_t epoch, std::uint64_t size, std::uint64_t taken,
                                              std::uint64_t given, std::vector<std::uint64_t> held) {
  epoch_ = epoch;
  size_ = size;
  taken_ = taken;
  given_ = given;
  held_ = std::move(held);
}

PENSTOCK_INLINE bool position_buffer::could_hold(std::uint64_t size, std::uint64_t taken, std::uint64_t given,
                                                 std::vector<std::uint64_t> held) const {
  if (given > size || taken > size || taken != given + held.size()) return false;
  if (held.size() != std::min(capacity_, size - given)) return false;
  std::sort(held.begin(), held.end());
  return std::adjacent_find(held.begin(), held.end()) == held.end() && (held.empty() || held.back() < taken);
}

PENSTOCK_INLINE std::span<const std::uint64_t> position_buffer::held() const noexcept { return held_; }

}  // namespace penstock::inline v0_1
