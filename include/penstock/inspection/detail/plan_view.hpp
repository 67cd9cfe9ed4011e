// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/state.hpp>

#include <atomic>
#include <bit>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A set of numbers below a limit, one bit each. Any thread may call `set`; only one may call the rest.
class bit_set {
 public:
  bit_set() = default;
  explicit bit_set(std::uint64_t limit) : words_(detail::to_size((limit + 63) / 64), 0) {}

  /// Inserts a number; returns whether it was already in the set.
  bool set(std::uint64_t number) noexcept {
    const std::atomic_ref<std::uint64_t> word(words_[detail::to_size(number / 64)]);
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    return (word.fetch_or(bit, std::memory_order_relaxed) & bit) != 0;
  }
  /// Like `set`, while no other thread inserts.
  bool set_alone(std::uint64_t number) noexcept {
    std::uint64_t& word = words_[detail::to_size(number / 64)];
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    return (std::exchange(word, word | bit) & bit) != 0;
  }
  void clear() noexcept { words_.assign(words_.size(), 0); }
  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t all = 0;
    for (const std::uint64_t word : words_) all += static_cast<std::uint64_t>(std::popcount(word));
    return all;
  }

  /// Calls `f(first, count)` for each run of neighbours, in order.
  void for_each_run(auto f) const {
    std::uint64_t begin = 0, length = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == 0 && length == 0) continue;
      for (unsigned bit = 0; bit < 64; ++bit) {
        if ((words_[i] >> bit & 1) != 0) {
          if (length++ == 0) begin = i * 64 + bit;
        } else if (length != 0) {
          f(begin, std::exchange(length, 0));
        }
      }
    }
    if (length != 0) f(begin, length);
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// Where a run that stopped on some ranks would resume.
struct resumed_place {
  bool same = true;     ///< whether it resumes where it stopped
  std::string refused;  ///< why the plan rejects the state; empty if it does not
};

/// A plan whose batches are known without reading samples, in the form that inspections use: the numbers of
/// its order, and type-erased functions. Threads may call all of them concurrently, except `bind`.
class plan_view {
 public:
  /// The functions that depend on the plan's type; `self` is a `viewed_plan`.
  struct functions {
    void (*bind)(void* self, std::uint64_t epoch, std::uint64_t first, std::uint64_t last);
    void (*positions)(const void* self, std::span<const std::uint64_t> ordinals, position* found, char* pads);
    void (*look)(const void* self, std::uint64_t epoch, std::span<const std::uint64_t> ordinals,
                 position* found);
    std::optional<position> (*position_of)(const void* self, position sample);
    position (*sample_at)(const void* self, position at);
  };

  plan_view(void* self, const functions& called, const feed& at) : self_(self), called_(&called), feed_(at) {}

  /// Binds the ordinals [first, last) of an epoch for `positions`.
  void bind(std::uint64_t epoch, std::uint64_t first, std::uint64_t last) {
    called_->bind(self_, epoch, first, last);
  }
  /// The samples at bound ordinals and, if `padding` is not null, whether they are padding.
  void positions_at(std::span<const std::uint64_t> ordinals, position* found, char* padding = nullptr) const {
    called_->positions(self_, ordinals, found, padding);
  }
  /// The samples at some ordinals of an epoch, each bound separately.
  void look(std::uint64_t epoch, std::span<const std::uint64_t> ordinals, position* found) const {
    called_->look(self_, epoch, ordinals, found);
  }
  [[nodiscard]] std::optional<position> position_of(position sample) const {
    return called_->position_of(self_, sample);
  }
  [[nodiscard]] position sample_at(position at) const { return called_->sample_at(self_, at); }
  /// For steps of an epoch, the epoch and global step before the orders that come after `batch`.
  void upstream(std::uint64_t epoch, std::span<const std::uint64_t> of_steps, position* found) const {
    feed at = feed_;
    for (std::size_t i = 0; i < of_steps.size(); ++i) {
      at.seek(epoch, of_steps[i]);
      found[i] = at.upstream();
    }
  }
  /// Stops before a step on `ranks` ranks, and resumes from that state.
  [[nodiscard]] resumed_place resume(std::uint64_t epoch, std::uint64_t step, std::uint64_t ranks) const {
    feed before = feed_, after = feed_;
    before.seek(epoch, step);
    state where;
    where.epoch = before.epoch();
    where.step = before.step();
    where.world = ranks;
    if (buffer) {
      before.limit(epoch + 2);
      before.settle();
      where.taken = before.cursor().taken();
      where.given = before.cursor().given();
      where.held.assign(before.cursor().held().begin(), before.cursor().held().end());
    }
    std::string refused(after.wrong_with(where));
    after.seek(where.epoch, where.step);
    return {after.epoch() == before.epoch() && after.step() == before.step() &&
                after.upstream() == before.upstream(),
            std::move(refused)};
  }
  /// The ordinals of an epoch in the order in which the shuffle_buffer delivers them.
  [[nodiscard]] std::vector<std::uint64_t> drawn(std::uint64_t epoch) const {
    position_buffer order = *buffer;
    order.begin(epoch, positions);
    std::vector<std::uint64_t> ordinals(static_cast<std::size_t>(positions));
    for (std::uint64_t& ordinal : ordinals) ordinal = order.next();
    return ordinals;
  }

  std::uint64_t positions = 0;  ///< per epoch
  std::uint64_t samples = 0;    ///< in the source
  std::uint64_t steps = 0;      ///< per epoch, if all have equally many
  cut mine;
  any_step_cut uneven;                ///< set if batches have no fixed number of samples; see `feed_facts`
  std::vector<std::uint64_t> starts;  ///< the shard boundaries, then the number of samples
  bool repeats = false;               ///< whether a sample may be at several positions of an epoch
  bool pads = false;                  ///< whether some positions repeat samples to fill up
  bool changes_epoch = false;         ///< whether an epoch may span several epochs of the source
  std::optional<position_buffer> buffer;  ///< the shuffle_buffer

 private:
  void* self_;
  const functions* called_;
  feed feed_;
};

/// The plan underneath a `plan_view`; it must outlive its views.
template <class Plan>
class viewed_plan {
  using parts = plan_parts<Plan>;
  using orders_type = sample_orders_of<Plan>;

 public:
  explicit viewed_plan(const Plan& p) : orders_(make_sample_orders(p)), feed_(make_feed_facts(p, orders_)) {
    if (const auto starts = p.source().starts()) starts_ = *starts;
    samples_ = p.source().size();
    if (starts_.size() < 2) starts_ = {0, samples_};
    if constexpr (parts::has_cursor) {
      const auto& stage = detail::at<parts::in::cursor>(p.stages());
      buffer_ = position_buffer(stage.capacity, stage.seed);
    }
  }
  viewed_plan(const viewed_plan&) = delete;
  viewed_plan& operator=(const viewed_plan&) = delete;

  [[nodiscard]] plan_view view() {
    static constexpr plan_view::functions called{&bind, &positions, &look, &position_of, &sample_at};
    plan_view made(this, called, feed_);
    made.positions = orders_.size();
    made.samples = samples_;
    made.mine = feed_.mine();
    made.uneven = feed_.uneven();
    if (!made.uneven.any()) made.steps = feed_.steps_per_epoch();
    made.starts = starts_;
    made.repeats = orders_type::repeats;
    made.pads = orders_type::pads;
    made.changes_epoch = orders_type::changes_epoch;
    made.buffer = buffer_;
    return made;
  }

 private:
  static const viewed_plan& of(const void* self) { return *static_cast<const viewed_plan*>(self); }

  static void bind(void* self, std::uint64_t epoch, std::uint64_t first, std::uint64_t last) {
    auto& plan = *static_cast<viewed_plan*>(self);
    plan.orders_.rebind(plan.binding_, epoch, first, last);
  }
  static void positions(const void* self, std::span<const std::uint64_t> ordinals, position* found,
                        char* pads) {
    const auto& bound = of(self).binding_;
    for (std::size_t i = 0; i < ordinals.size(); ++i) found[i] = bound(ordinals[i]);
    if (pads == nullptr) return;
    for (std::size_t i = 0; i < ordinals.size(); ++i) pads[i] = bound.pads(ordinals[i]) ? 1 : 0;
  }
  static void look(const void* self, std::uint64_t epoch, std::span<const std::uint64_t> ordinals,
                   position* found) {
    typename orders_type::binding bound;
    for (std::size_t i = 0; i < ordinals.size(); ++i) {
      of(self).orders_.rebind(bound, epoch, ordinals[i], ordinals[i] + 1);
      found[i] = bound(ordinals[i]);
    }
  }
  static std::optional<position> position_of(const void* self, position sample) {
    return of(self).orders_.position_of(sample);
  }
  static position sample_at(const void* self, position at) { return of(self).orders_.sample_at(at); }
  orders_type orders_;
  feed feed_;
  typename orders_type::binding binding_;
  std::uint64_t samples_ = 0;
  std::vector<std::uint64_t> starts_;
  std::optional<position_buffer> buffer_;
};

}  // namespace penstock::inline v0_1::detail
