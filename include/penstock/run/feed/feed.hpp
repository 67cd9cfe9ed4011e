// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/position.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/run/feed/facts.hpp>
#include <penstock/run/feed/placement.hpp>
#include <penstock/run/feed/position_buffer.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

struct state;

/// Which positions come next.
///
/// A feed stands before a step: of a pass over the data, of an epoch. Where batches are known before anything
/// is evaluated, a step is a global batch, and a placement has several of them. Elsewhere
/// (`feed_facts::by_sample`) it is one sample of each rank, and a placement is a chunk: a run of this rank's
/// samples, which may begin at any of them, so that its size is no part of a state.
///
/// A value: a run keeps one that leads (the blocks it opens), one that trails (what was delivered: the
/// state), and one for read-ahead. A step is found by arithmetic; only `shuffle_buffer` moves a cursor.
class feed {
 public:
  feed() = default;
  /// Throws `error(errc::argument)` where `steps(n)` can get no batch from the data.
  explicit feed(feed_facts facts);

  [[nodiscard]] const cut& mine() const noexcept { return facts_.mine; }
  /// The cut, where batches have no fixed number of samples.
  [[nodiscard]] const any_step_cut& uneven() const noexcept { return facts_.uneven; }
  [[nodiscard]] const std::optional<std::uint64_t>& fixed_steps() const noexcept {
    return facts_.fixed_steps;
  }
  /// Steps of an epoch, where they may differ of the one at hand; by sample those of a pass that this rank
  /// has a sample of.
  [[nodiscard]] std::uint64_t steps_per_epoch() const {
    return facts_.uneven.any() && bound_ != epoch_ ? facts_.uneven.bind(epoch_).steps() : end_;
  }
  /// The same of any epoch.
  [[nodiscard]] std::uint64_t steps_of(std::uint64_t epoch) const {
    return facts_.uneven.any() ? facts_.uneven.bind(epoch).steps() : end_;
  }
  /// The same of the epoch whose last step was the one before, if the feed has come from there.
  [[nodiscard]] std::uint64_t latest_steps() const {
    return step_ == 0 && bound_ != no_epoch && bound_ + 1 == epoch_ ? now_.steps() : steps_per_epoch();
  }
  /// Whether the epoch at hand has no more steps.
  [[nodiscard]] bool at_end() { return step_ >= end_ && is_end(); }
  /// This rank's samples of an epoch, before deciders; with steps(n) and behind order stages after batch, its
  /// slots; an equal share where batches have no fixed number. Nothing where an epoch has no end, or where it
  /// is not known.
  [[nodiscard]] std::optional<std::uint64_t> samples_per_epoch() const;
  /// Rows of a batch, or of a chunk; about so many where batches have no fixed number.
  [[nodiscard]] std::uint64_t slots_per_block() const noexcept;

  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  /// By sample, with steps(n): the pass over the data in this epoch.
  [[nodiscard]] std::uint64_t pass() const noexcept { return pass_; }
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  [[nodiscard]] const position_buffer& cursor() const noexcept { return cursor_; }
  /// A pass over an epoch, where a cut needs one, ends when this becomes true; it outlives the feed and its
  /// copies. Then there are no more steps.
  void stop_at(const std::atomic<bool>& flag) noexcept { stop_ = &flag; }
  /// Whether `more` and `ready` say at once what they say: the epoch at hand is cut, or will not be.
  [[nodiscard]] bool is_cut() const noexcept {
    return !facts_.uneven.any() || bound_ == epoch_ || epoch_ >= limit_;
  }
  /// Epochs from this one on are not read ahead.
  void limit(std::uint64_t epochs) noexcept { limit_ = epochs; }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  [[nodiscard]] bool more() {
    if (epoch_ >= limit_) return false;
    if (facts_.uneven.any() && !bind_epoch()) return false;
    return end_ != 0 || facts_.by_sample;
  }

  /// The same, and that the next step can be made.
  [[nodiscard]] bool ready() noexcept;

  void seek(std::uint64_t epoch, std::uint64_t step, std::uint64_t pass = 0);
  /// The epoch and step of the next step as the data count them: through passes, `steps(n)` and the orders
  /// after batch.
  [[nodiscard]] position upstream() const { return locate(); }
  /// By sample: how many of this rank's samples stand at positions below `index`.
  [[nodiscard]] std::uint64_t ordinals_below(std::uint64_t index) const noexcept;
  /// What is wrong with a state, or nothing: whether it can be one of this plan.
  [[nodiscard]] std::string_view wrong_with(const state& s) const;
  /// Where batches have no fixed number of samples: how many all ranks have had of this epoch; else 0.
  [[nodiscard]] std::uint64_t samples_before() const;
  /// The step at which a state goes on: that after as many samples, which is another one for another number
  /// of ranks. Nothing where no step begins there.
  [[nodiscard]] std::optional<std::uint64_t> step_of(const state& s) const;
  /// Throws where a step of the epoch at hand cannot be made. Gives how many batches the epoch has, or
  /// nothing where only reading can tell.
  [[nodiscard]] std::optional<std::uint64_t> check_epoch() const;
  /// Puts the cursor where a state says it was before the step that `seek` named.
  void restore_cursor(std::uint64_t taken, std::uint64_t given, std::vector<std::uint64_t> held);

  /// Fills a placement with the next steps, up to `most` batches of one epoch or one chunk, and goes on.
  /// Throws where the next step cannot be made, and stays where it is.
  void prepare(placement& p, std::size_t most);
  /// Goes on without looking: what the trailing feed does when a batch, or so much of a chunk, is delivered.
  void advance(std::uint64_t steps = 1) {
    if (by_arithmetic_ || look(steps))
      go_on(steps);
    else
      step_ += steps;  // the run was stopped, and nobody knows yet whether the epoch ends there
  }
  /// Leaves the epoch (by sample, with `steps`, the pass) where it is and begins the next one.
  void next_pass() noexcept;
  /// Puts the cursor in front of the next step, so that it can be written down.
  void settle();

 private:
  static constexpr std::uint64_t no_end = std::uint64_t{1} << 62;
  static constexpr std::uint64_t no_epoch = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] position locate() const;
  void prepare_batches(placement& p, std::size_t most);
  void prepare_uneven(placement& p);
  void prepare_chunk(placement& p);
  /// Whether the epoch at hand is cut; else the run was stopped.
  bool bind_epoch() { return bound_ == epoch_ || bind_this_epoch(); }
  bool bind_this_epoch();
  [[nodiscard]] bool is_end();
  bool look(std::uint64_t steps);
  [[nodiscard]] std::uint64_t plain_steps(std::size_t most) const noexcept;
  void add_plain(placement& p, std::uint64_t count, position at);
  void go_on(std::uint64_t steps) noexcept {
    step_ += steps;
    if (step_ >= end_) next_pass();
  }
  [[nodiscard]] std::uint64_t cursor_inputs() const noexcept;
  void reach(position at);
  void draw(std::uint64_t steps, std::vector<std::uint64_t>* indices);
  void draw_step(std::uint64_t step, std::vector<std::uint64_t>* indices);

  feed_facts facts_;
  cut::whole_steps whole_;
  std::uint64_t in_pass_ = 0;  // steps of a pass over the data
  std::uint64_t end_ = 0;      // steps after which `next_pass` is due; 0 where they are not known yet
  bool by_arithmetic_ = true;  // else there is a cursor, or batches have no fixed number of samples
  std::uint64_t epoch_ = 0, pass_ = 0, step_ = 0, limit_ = 1;
  position_buffer cursor_;
  position cursor_place_{no_epoch, 0};  // the step that the cursor stands before
  // Where batches have no fixed number of samples:
  std::uint64_t usual_ = 1;  // slots of one
  any_epoch_cut now_;        // of epoch `bound_`
  std::uint64_t bound_ = no_epoch;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/feed/feed.ipp>
#endif
