// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/run/feed/placement.hpp>
#include <penstock/run/feed/selection.hpp>

#include <atomic>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// The order stages after `batch`, type-erased: called once per step.
class step_orders {
 public:
  step_orders() = default;
  template <class Orders>
  explicit step_orders(Orders orders)
      : size_(orders.size()), sample_at_([](const void* chain, position at) {
          return static_cast<const Orders*>(chain)->sample_at(at);
        }) {
    owner_ = shared<const void>(new const Orders(std::move(orders)));
  }

  [[nodiscard]] bool any() const noexcept { return owner_ != nullptr; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Maps a step after them to the step before them.
  [[nodiscard]] position sample_at(position after) const { return sample_at_(owner_.get(), after); }

 private:
  std::uint64_t size_ = 0;
  position (*sample_at_)(const void*, position) = nullptr;
  shared<const void> owner_;
};

/// What a feed knows of its plan.
struct feed_facts {
  /// The cut into steps. With `by_sample`, a step is one sample of each rank.
  cut mine;
  /// Order stages after `batch`; none with `by_sample`.
  step_orders after_batch;
  /// The number given to `steps(n)`.
  std::optional<std::uint64_t> fixed_steps;
  /// With `by_sample` and `steps(n)`: batches of an epoch, including those that a skip leaves out.
  std::uint64_t max_steps = 0;
  /// With `by_sample`: samples of a chunk, at most.
  std::uint64_t chunk = 1;
  /// Samples of the first chunks; 0: as many as of all.
  std::uint64_t first_chunk = 0;
  /// Chunks of full size begin where batches do.
  bool chunks_are_batches = false;
  /// A `shuffle_buffer` over positions: its capacity and seed.
  std::uint64_t buffer_capacity = 1, buffer_seed = 0;
  bool has_buffer = false;
  bool shard_before_buffer = false;
  /// After filters, over forward sources, and in loops without batches; see `feed`.
  bool by_sample = false;
  /// The number of samples is unknown.
  bool forward = false;
  /// A loop without batches or filters: the total delivered to all ranks determines where each rank stands.
  bool dealt_in_rotation = false;
  /// The cut, if batches have no fixed number of samples. Of `mine`, only size, world and rank apply then.
  any_step_cut uneven;
};

/// The facts of a plan whose sample orders exist. `chunk`: samples per chunk, if there are chunks.
template <class Plan>
feed_facts make_feed_facts(const Plan& p, [[maybe_unused]] const sample_orders_of<Plan>& orders,
                           std::uint64_t chunk = 1) {
  using parts = plan_parts<Plan>;
  using in = typename parts::in;
  feed_facts made;
  made.chunk = chunk;
  made.by_sample = !parts::direct;
  made.forward = parts::forward;
  made.dealt_in_rotation = parts::dealt_in_rotation;
  if constexpr (in::template has<steps_tag>)
    made.fixed_steps = detail::at<in::template place<steps_tag>>(p.stages()).count;
  if constexpr (parts::has_cursor && !parts::forward) {
    const auto& buffer = detail::at<in::cursor>(p.stages());
    made.has_buffer = true;
    made.shard_before_buffer = parts::shard_before_cursor;
    made.buffer_capacity = buffer.capacity;
    made.buffer_seed = buffer.seed;
  }
  if constexpr (parts::direct) {
    const auto& batch = detail::at<in::batch>(p.stages());
    const world share = world_of(p);
    if constexpr (parts::facts.uneven) {
      made.mine = {.size = orders.size(), .world = share.size, .rank = share.rank};
      made.mine.check();
      const cut_input input{.world = share.size,
                            .rank = share.rank,
                            .dataset = p.source().fingerprint(),
                            .samples = p.source().size(),
                            .seed = *options_of(p).seed};
      if constexpr (parts::packed)
        made.uneven = any_step_cut(detail::at<in::packs>(p.stages()).cut_of(orders, p.stages(), input));
      else
        made.uneven = any_step_cut(batch.cut_of(orders, input));
    } else {
      made.mine = {.size = orders.size(),
                   .global = batch.global_size(share.size),
                   .world = share.size,
                   .rank = share.rank,
                   .lanes = orders.lanes(),
                   .policy = batch.at_end};
      made.mine.check();
      auto after = detail::chain_of_orders(
          {made.mine.steps(), nullptr},
          detail::orders_between<in::batch, in::count>(p.stages(), *options_of(p).seed));
      if constexpr (!std::is_same_v<decltype(after), order_chain<>>)
        made.after_batch = step_orders(std::move(after));
    }
  } else {
    if (made.fixed_steps)
      made.max_steps = detail::select_between<in::batch, in::count>(p.stages()).reaching(*made.fixed_steps);
    if constexpr (!parts::forward) {
      const world share = parts::shard_before_choosing ? world_of(p) : world{};
      made.mine = {.size = orders.size(),
                   .global = share.size,
                   .world = share.size,
                   .rank = share.rank,
                   // otherwise every world-th position
                   .lanes = parts::batched || parts::decided ? orders.lanes() : 1,
                   .policy = tail::pad};  // the last positions go to the first ranks, one each
      made.mine.check();
    }
  }
  return made;
}

struct state;

/// Which of `held` elements of a shuffle buffer comes out at place `ordinal` of epoch `epoch`. A pure
/// function, so that a buffer of positions and a buffer of samples produce the same sequence.
[[nodiscard]] constexpr std::uint64_t buffer_draw(std::uint64_t seed, std::uint64_t epoch,
                                                  std::uint64_t ordinal, std::uint64_t held) noexcept {
  const std::uint64_t word = mix64(ordinal ^ mix64(epoch ^ mix64(seed)));
  // The high half of a 32 x 64 bit product: a number below `held` (buffers have fewer than 2^32 elements).
  return ((word >> 32) * held) >> 32;
}

/// The cursor of `shuffle_buffer` over positions: holds ordinals, draws one, puts the next one in its place.
///
/// A value type: a run has up to three, including a leading one for the batches it opens and a trailing one
/// that is the state. Memory: 8 bytes per element.
class position_buffer {
 public:
  position_buffer() = default;
  position_buffer(std::uint64_t capacity, std::uint64_t seed) : capacity_(capacity), seed_(seed) {}

  void begin(std::uint64_t epoch, std::uint64_t size);

  /// Resumes from a state: the ordinals held, and how many have gone in and come out.
  void restore(std::uint64_t epoch, std::uint64_t size, std::uint64_t taken, std::uint64_t given,
               std::vector<std::uint64_t> held);

  /// Whether a state could be the result of `size` ordinals and `given` draws.
  [[nodiscard]] bool could_hold(std::uint64_t size, std::uint64_t taken, std::uint64_t given,
                                std::vector<std::uint64_t> held) const;

  [[nodiscard]] bool empty() const noexcept { return held_.empty(); }

  /// The next ordinal; there must be one.
  std::uint64_t next() {
    const auto drawn = detail::to_size(buffer_draw(seed_, epoch_, given_++, held_.size()));
    const std::uint64_t out = held_[drawn];
    if (taken_ < size_) {
      held_[drawn] = taken_++;
    } else {
      held_[drawn] = held_.back();
      held_.pop_back();
    }
    return out;
  }

  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }
  [[nodiscard]] std::uint64_t given() const noexcept { return given_; }
  [[nodiscard]] std::span<const std::uint64_t> held() const noexcept;
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }

 private:
  std::uint64_t capacity_ = 1, seed_ = 0, epoch_ = 0, size_ = 0, taken_ = 0, given_ = 0;
  std::vector<std::uint64_t> held_;
};

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
  [[nodiscard]] std::uint64_t steps_of(std::uint64_t epoch) const {
    return facts_.uneven.any() ? facts_.uneven.bind(epoch).steps() : end_;
  }
  /// Steps of the previous epoch if the feed has just finished it, otherwise of the current one.
  [[nodiscard]] std::uint64_t latest_steps() const {
    return step_ == 0 && bound_ != no_epoch && bound_ + 1 == epoch_ ? now_.steps() : steps_per_epoch();
  }
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
