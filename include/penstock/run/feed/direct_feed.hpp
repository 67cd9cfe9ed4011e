// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/feed/position_buffer.hpp>
#include <penstock/run/state.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Which positions the next batch holds, for plans whose slots are known before anything is evaluated.
///
/// A value: a run keeps one that leads (the batches it opens), one that trails (what was delivered: the
/// state), and one for read-ahead. Step s of an epoch is found by arithmetic; only `shuffle_buffer` moves a
/// cursor.
template <class Plan>
class direct_feed {
  static constexpr std::uint64_t no_end = std::uint64_t{1} << 62;
  using parts = plan_parts<Plan>;
  using in = typename parts::in;
  using orders_type = decltype(make_sample_orders(std::declval<const Plan&>()));
  static auto make_steps_orders(const Plan& p, std::uint64_t steps) {
    return detail::chain_of_orders({steps, nullptr},
                                   detail::orders_between<in::batch, in::count>(p.stages()));
  }
  using steps_orders_type = decltype(make_steps_orders(std::declval<const Plan&>(), 0));

  /// What the copies share.
  struct arithmetic {
    orders_type orders;
    cut mine;
    steps_orders_type steps_orders;
  };

 public:
  using binding = typename orders_type::binding;
  using placement_type = placement<binding>;

  explicit direct_feed(const Plan& p) {
    auto orders = make_sample_orders(p);
    const auto& batch = detail::at<in::batch>(p.stages());
    const world part = world_of(p);
    cut mine{.size = orders.size(),
             .global = batch.global_size(part.size),
             .world = part.size,
             .rank = part.rank,
             .lanes = orders.lanes(),
             .policy = batch.at_end};
    mine.check();
    auto steps_orders = make_steps_orders(p, mine.steps());
    shared_ = std::shared_ptr<const arithmetic>(
        new const arithmetic{std::move(orders), mine, std::move(steps_orders)});
    whole_ = mine.whole();
    if constexpr (in::template has<steps_tag>)
      fixed_steps_ = detail::at<in::template place<steps_tag>>(p.stages()).count;
    if constexpr (parts::has_cursor) {
      const auto& buffer = detail::at<in::cursor>(p.stages());
      cursor_ = position_buffer(buffer.capacity, buffer.seed);
    }
    if (fixed_steps_ && shared_->steps_orders.size() == 0)
      throw error(errc::argument,
                  "steps(n): a pass over the data gives no batch; use a smaller batch or tail::keep")
          .in_stage("steps");
  }

  [[nodiscard]] const orders_type& orders() const { return shared_->orders; }
  [[nodiscard]] const cut& mine() const { return shared_->mine; }
  [[nodiscard]] std::uint64_t steps_per_epoch() const {
    return fixed_steps_ ? *fixed_steps_ : shared_->steps_orders.size();
  }
  /// This rank's samples of an epoch; with steps(n) and behind order stages after batch, its slots. Nothing
  /// where an epoch has no end.
  [[nodiscard]] std::optional<std::uint64_t> samples_per_epoch() const {
    const cut& c = mine();
    if (!fixed_steps_ && (c.size >= no_end || steps_per_epoch() >= no_end)) return std::nullopt;
    if (fixed_steps_ || !std::is_same_v<steps_orders_type, order_chain<>>)
      return steps_per_epoch() * whole_.slots;
    return whole_.count * whole_.slots + (c.steps() > whole_.count ? c.valid(whole_.count) : 0);
  }
  [[nodiscard]] std::uint64_t most_slots() const {
    // A last step that is divided anew may give a rank one more than a whole one does.
    return std::max(mine().slots(0), mine().slots(mine().steps() - 1));
  }
  [[nodiscard]] std::uint64_t slots_per_block() const { return std::max<std::uint64_t>(1, most_slots()); }

  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] std::uint64_t step() const { return step_; }
  [[nodiscard]] const position_buffer& cursor() const { return cursor_; }
  /// Epochs from this one on are not read ahead.
  void limit(std::uint64_t epochs) { limit_ = epochs; }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  [[nodiscard]] bool more() const { return epoch_ < limit_ && steps_per_epoch() != 0; }

  void seek(std::uint64_t epoch, std::uint64_t step) {
    epoch_ = epoch;
    step_ = step;
    if (step_ != 0 && step_ >= steps_per_epoch()) {
      ++epoch_;
      step_ = 0;
    }
    cursor_place_ = {no_epoch, 0};
  }
  /// The upstream epoch and global step of the next step: through `steps(n)` and the orders after batch.
  [[nodiscard]] position upstream() const { return locate(); }
  /// What is wrong with a state, or nothing: whether it can be one of this plan.
  [[nodiscard]] std::string_view wrong_with(const state& s) const {
    if (s.step > steps_per_epoch()) return "it has more steps than an epoch";
    if (!s.front.empty() || (s.pass | s.ordinal | s.rows | s.survivors | s.dealt) != 0)
      return "it counts samples where only batches are counted";
    if (s.taken == 0 && s.given == 0 && s.held.empty()) return {};
    if constexpr (parts::has_cursor) {
      direct_feed there = *this;
      there.seek(s.epoch, s.step);
      const position at = there.locate();
      const std::uint64_t each = parts::shard_before_cursor ? mine().slots(0) : mine().global;
      if (s.given == std::min(at.index * each, cursor_inputs()) &&
          cursor_.could_hold(cursor_inputs(), s.taken, s.given, s.held))
        return {};
    }
    return "what its shuffle_buffer holds does not go with its step";
  }
  /// Puts the cursor where a state says it was before the step that `seek` named.
  void restore_cursor(std::uint64_t taken, std::uint64_t given, std::vector<std::uint64_t> held) {
    const position at = locate();
    cursor_.restore(at.epoch, cursor_inputs(), taken, given, std::move(held));
    cursor_place_ = at;
  }

  /// Fills a placement with the next steps, up to `most` of one epoch, and goes on.
  void prepare(placement_type& p, std::size_t most) {
    const cut& c = mine();
    p.parts.clear();
    p.indices.clear();
    p.listed = parts::has_cursor;
    p.slots = 0;
    std::uint64_t low = std::numeric_limits<std::uint64_t>::max(), high = 0;
    position at = locate();
    p.epoch = at.epoch;
    if (const std::uint64_t plain = plain_steps(most); plain != 0) {
      low = at.index * c.global;
      high = low + plain * c.global;
      add_plain(p, plain, at);
      orders().rebind(p.binding, p.epoch, low, high);
      return;
    }
    do {
      const bool is_whole = at.index < whole_.count;  // all but the last step: nothing is divided
      batch_part& part = p.parts.emplace_back();
      part.first = p.slots;
      part.slots = is_whole ? whole_.slots : c.slots(at.index);
      part.valid = is_whole ? whole_.slots : c.valid(at.index);
      part.global = is_whole ? c.global : c.count(at.index);
      part.delivered = {epoch_, step_};
      if constexpr (parts::has_cursor) {
        move_cursor(at, &p.indices);
        p.indices.resize(static_cast<std::size_t>(part.first + part.slots));  // padding has no position
        for (std::uint64_t i = part.first; i < part.first + part.valid; ++i) {
          low = std::min(low, p.indices[static_cast<std::size_t>(i)]);
          high = std::max(high, p.indices[static_cast<std::size_t>(i)] + 1);
        }
      } else {
        part.view = is_whole ? step_view(at.index * c.global, c.global, c.lanes, whole_.begin, whole_.slots,
                                         whole_.slots)
                             : c.at(at.index);
        low = std::min(low, at.index * c.global);
        high = std::max(high, at.index * c.global + part.global);
      }
      p.slots += part.slots;
      go_on();
      if (p.parts.size() == most || !more()) break;
      at = locate();
    } while (at.epoch == p.epoch && p.parts.back().delivered.epoch == epoch_);
    if (low < high) orders().rebind(p.binding, p.epoch, low, high);
  }

  /// Goes on without looking: what the trailing feed does when a batch is delivered.
  void advance() {
    if constexpr (parts::has_cursor) move_cursor(locate(), nullptr);
    go_on();
  }

  /// Puts the cursor in front of the next step, so that it can be written down.
  void settle() {
    if constexpr (parts::has_cursor) {
      if (more_in_epoch()) reach(locate());
    }
  }

 private:
  static constexpr std::uint64_t no_epoch = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool more_in_epoch() const { return step_ < steps_per_epoch(); }

  /// The upstream epoch and step of the next step: through `steps(n)` and the order stages after batch.
  [[nodiscard]] position locate() const {
    const std::uint64_t in_pass = shared_->steps_orders.size();
    position at{epoch_, step_};
    if (fixed_steps_ && in_pass != 0) at = {epoch_ + (step_ / in_pass << 32), step_ % in_pass};
    if constexpr (std::is_same_v<steps_orders_type, order_chain<>>)
      return at;
    else
      return shared_->steps_orders.sample_at(at);
  }

  /// How many of the next steps are whole ones of the same pass, without lanes, buffer or steps(n).
  [[nodiscard]] std::uint64_t plain_steps(std::size_t most) const {
    if constexpr (parts::has_cursor || !std::is_same_v<steps_orders_type, order_chain<>>) return 0;
    if (fixed_steps_ || mine().lanes != 1 || step_ >= whole_.count) return 0;
    return std::min<std::uint64_t>(most, whole_.count - step_);
  }
  void add_plain(placement_type& p, std::uint64_t count, position at) {
    const std::uint64_t global = mine().global, slots = whole_.slots, epoch = epoch_;
    std::uint64_t base = at.index * global + whole_.begin, row = 0, step = step_;
    for (const std::uint64_t end = step + count; step != end; ++step, base += global, row += slots)
      p.parts.emplace_back(base, row, slots, global, position{epoch, step});
    p.slots = row;
    step_ = step - 1;
    go_on();
  }

  void go_on() {
    if (++step_ >= steps_per_epoch()) {
      ++epoch_;
      step_ = 0;
    }
  }

  /// How many ordinals go through the buffer in an epoch.
  [[nodiscard]] std::uint64_t cursor_inputs() const {
    const cut& c = mine();
    if constexpr (!parts::shard_before_cursor) return c.size;
    std::uint64_t whole = c.size / c.global, inputs = whole * (whole == 0 ? 0 : c.slots(0));
    return c.steps() > whole ? inputs + c.valid(whole) : inputs;
  }

  void reach(position at) {
    if (cursor_place_.epoch != at.epoch || cursor_place_.index > at.index) {
      cursor_.begin(at.epoch, cursor_inputs());
      cursor_place_ = {at.epoch, 0};
    }
    for (; at.index > cursor_place_.index; ++cursor_place_.index) draw_step(cursor_place_.index, nullptr);
  }
  void move_cursor(position at, std::vector<std::uint64_t>* indices) {
    reach(at);
    draw_step(at.index, indices);
    ++cursor_place_.index;
  }
  /// Draws what one global step takes (after `shard`: what this rank's part takes) and lists this rank's.
  void draw_step(std::uint64_t step, std::vector<std::uint64_t>* indices) {
    const cut& c = mine();
    const std::uint64_t valid = c.valid(step);
    if constexpr (parts::shard_before_cursor) {
      // a last step may have more than a whole one
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
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t ordinal = cursor_.next();
        if (indices != nullptr && i >= begin && i < begin + valid) indices->push_back(ordinal);
      }
    }
  }

  std::shared_ptr<const arithmetic> shared_;
  cut::whole_steps whole_;
  std::optional<std::uint64_t> fixed_steps_;
  std::uint64_t epoch_ = 0, step_ = 0, limit_ = 1;
  position_buffer cursor_;
  position cursor_place_{no_epoch, 0};  // the step that the cursor stands before
};

}  // namespace penstock::inline v0_1
