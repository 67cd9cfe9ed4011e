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

/// Decides which positions come next.
///
/// A feed stands before a step of an epoch, or of a pass over the data. If batches are known before anything
/// is evaluated, a step is a global batch, and a placement has several of them. Otherwise
/// (`feed_facts::by_sample`) a step is one sample of each rank, and a placement is a chunk: a run of this
/// rank's samples, which may start at any of them, so its size is not part of a state. The first chunks may
/// be smaller: a sample may take long, and all workers then have a part in the first batch.
///
/// A value type: a run has a leading feed (the blocks it opens), a trailing one (what was delivered: the
/// state), and one for read-ahead. Steps are found by arithmetic; only `shuffle_buffer` moves a cursor.
class feed {
 public:
  feed() = default;
  /// Throws `error(errc::argument)` if `steps(n)` can get no batch from the data.
  explicit feed(feed_facts facts);

  [[nodiscard]] const cut& mine() const noexcept { return facts_.mine; }
  /// The cut, if batches have no fixed number of samples.
  [[nodiscard]] const any_step_cut& uneven() const noexcept { return facts_.uneven; }
  [[nodiscard]] const std::optional<std::uint64_t>& fixed_steps() const noexcept {
    return facts_.fixed_steps;
  }
  /// Steps per epoch, or of the current epoch if epochs differ; by sample, the steps of a pass in which this
  /// rank has a sample.
  [[nodiscard]] std::uint64_t steps_per_epoch() const {
    return facts_.uneven.any() && bound_ != epoch_ ? facts_.uneven.bind(epoch_).steps() : end_;
  }
  /// Steps of a given epoch.
  [[nodiscard]] std::uint64_t steps_of(std::uint64_t epoch) const {
    return facts_.uneven.any() ? facts_.uneven.bind(epoch).steps() : end_;
  }
  /// Steps of the previous epoch if the feed has just finished it, otherwise of the current one.
  [[nodiscard]] std::uint64_t latest_steps() const {
    return step_ == 0 && bound_ != no_epoch && bound_ + 1 == epoch_ ? now_.steps() : steps_per_epoch();
  }
  /// Whether the current epoch has no more steps.
  [[nodiscard]] bool at_end() { return step_ >= end_ && is_end(); }
  /// This rank's samples per epoch, before filters; its slots, with steps(n) and after order stages that
  /// follow batch; an equal share if batches have no fixed number of samples. Empty if an epoch has no end or
  /// its length is unknown.
  [[nodiscard]] std::optional<std::uint64_t> samples_per_epoch() const;
  /// Rows of a batch or a chunk; an estimate if batches have no fixed number of samples.
  [[nodiscard]] std::uint64_t slots_per_block() const noexcept;

  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  /// By sample, with steps(n): the pass over the data in this epoch.
  [[nodiscard]] std::uint64_t pass() const noexcept { return pass_; }
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  [[nodiscard]] const position_buffer& cursor() const noexcept { return cursor_; }
  /// Once `flag` is true, a pass over an epoch that a cut needs ends early, and there are no more steps. The
  /// flag must outlive the feed and its copies.
  void stop_at(const std::atomic<bool>& flag) noexcept { stop_ = &flag; }
  /// Whether `more` and `ready` answer at once, because the current epoch is cut or will not be.
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
  /// The epoch and step of the next step as counted on the data: through passes, `steps(n)` and the orders
  /// after batch.
  [[nodiscard]] position upstream() const { return locate(); }
  /// By sample: the number of this rank's samples at positions below `index`.
  [[nodiscard]] std::uint64_t ordinals_below(std::uint64_t index) const noexcept;
  /// Says why a state cannot belong to this plan; empty if it can.
  [[nodiscard]] std::string_view wrong_with(const state& s) const;
  /// If batches have no fixed number of samples: how many of this epoch all ranks have had; otherwise 0.
  [[nodiscard]] std::uint64_t samples_before() const;
  /// The step at which a state resumes: the one that starts after as many samples; its number depends on the
  /// number of ranks. Empty if no step starts there.
  [[nodiscard]] std::optional<std::uint64_t> step_of(const state& s) const;
  /// Throws if a step of the current epoch cannot be made. Returns how many batches the epoch has, or nothing
  /// if only reading can tell.
  [[nodiscard]] std::optional<std::uint64_t> check_epoch() const;
  /// Moves the cursor to where a state says it was before the step given to `seek`.
  void restore_cursor(std::uint64_t taken, std::uint64_t given, std::vector<std::uint64_t> held);

  /// Fills a placement with the next steps, up to `maximum` batches of one epoch or one chunk, and advances.
  /// If the next step cannot be made, throws and stays where it is.
  void prepare(placement& p, std::size_t maximum);
  /// Advances without looking: for the trailing feed, when a batch or part of a chunk is delivered.
  void advance(std::uint64_t steps = 1) {
    if (by_arithmetic_ || look(steps))
      go_on(steps);
    else
      step_ += steps;  // the run was stopped, and whether the epoch ends there is still unknown
  }
  /// Leaves the epoch (by sample with `steps`, the pass) at any point and starts the next one.
  void next_pass() noexcept;
  /// Moves the cursor to the next step, so that it can be saved.
  void settle();

 private:
  static constexpr std::uint64_t no_end = std::uint64_t{1} << 62;
  static constexpr std::uint64_t no_epoch = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] position locate() const;
  void prepare_batches(placement& p, std::size_t maximum);
  void prepare_uneven(placement& p);
  void prepare_chunk(placement& p);
  [[nodiscard]] std::uint64_t next_chunk() const noexcept;
  /// Whether the current epoch is cut; false if the run was stopped.
  bool bind_epoch() { return bound_ == epoch_ || bind_this_epoch(); }
  bool bind_this_epoch();
  [[nodiscard]] bool is_end();
  bool look(std::uint64_t steps);
  [[nodiscard]] std::uint64_t plain_steps(std::size_t maximum) const noexcept;
  void add_plain(placement& p, std::uint64_t count, position at);
  void go_on(std::uint64_t steps) noexcept {
    step_ += steps;
    if (step_ >= end_) next_pass();
  }
  [[nodiscard]] std::uint64_t cursor_inputs() const noexcept;
  void reach(position at);
  void draw(std::uint64_t steps, placement* into);
  void draw_step(std::uint64_t step, placement* into);

  feed_facts facts_;
  cut::whole_steps whole_;
  std::uint64_t in_pass_ = 0;  // steps of a pass over the data
  std::uint64_t end_ = 0;      // steps after which `next_pass` is due; 0 while unknown
  bool by_arithmetic_ = true;  // false with a cursor, or if batches have no fixed number of samples
  std::uint64_t epoch_ = 0, pass_ = 0, step_ = 0, limit_ = 1;
  position_buffer cursor_;
  position cursor_place_{no_epoch, 0};  // the step that the cursor is before
  // If batches have no fixed number of samples:
  std::uint64_t usual_ = 1;  // slots of a typical batch
  any_epoch_cut now_;        // of epoch `bound_`
  std::uint64_t bound_ = no_epoch;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/feed/feed.ipp>
#endif
