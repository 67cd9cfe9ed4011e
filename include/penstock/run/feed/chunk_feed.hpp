// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/feed/position_buffer.hpp>
#include <penstock/run/feed/selection.hpp>
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

/// The binding of plans whose samples have no positions in a source.
struct no_binding {};

/// Which samples the next chunk holds, for plans whose batches are known only when samples are there: behind
/// filter and unbatch, over forward-only sources, and in loops without batches.
///
/// A chunk is a run of this rank's *ordinals*: its positions in their order. Chunks may begin at any ordinal,
/// so that their size is no part of a state. A value, like `direct_feed`.
template <class Plan>
class chunk_feed {
  using parts = plan_parts<Plan>;
  using in = typename parts::in;
  static auto make_orders(const Plan& p) {
    if constexpr (parts::forward)
      return order_chain<>({}, {});
    else
      return make_sample_orders(p);
  }
  using orders_type = decltype(make_orders(std::declval<const Plan&>()));

 public:
  using binding = typename orders_type::binding;
  using placement_type = placement<binding>;

  chunk_feed(const Plan& p, std::uint64_t chunk)
      : orders_(new const orders_type(make_orders(p))), chunk_(chunk) {
    if constexpr (in::template has<steps_tag>)
      fixed_steps_ = detail::at<in::template place<steps_tag>>(p.stages()).count;
    if (fixed_steps_) {  // batches that a skip leaves out are counted too
      const auto after = detail::select_between<in::batch, in::count>(p.stages());
      most_steps_ = after.reaching(*fixed_steps_);
    }
    if constexpr (!parts::forward) {
      const world part = parts::shard_before_decider ? world_of(p) : world{};
      mine_ = {.size = orders_->size(),
               .global = part.size,
               .world = part.size,
               .rank = part.rank,
               // else each world-th position
               .lanes = parts::batched || parts::decided ? orders_->lanes() : 1,
               .policy = tail::pad};  // the last positions go to the first ranks, one each
      mine_.check();
      local_world_ = part.size;
      inputs_ = mine_.size / part.size + (part.rank < mine_.size % part.size ? 1 : 0);
      if constexpr (parts::has_cursor) {
        const auto& buffer = detail::at<in::cursor>(p.stages());
        cursor_ = position_buffer(buffer.capacity, buffer.seed);
      }
    }
  }

  [[nodiscard]] const orders_type& orders() const { return *orders_; }
  [[nodiscard]] std::uint64_t slots_per_block() const { return chunk_; }
  [[nodiscard]] std::optional<std::uint64_t> fixed_steps() const { return fixed_steps_; }
  /// This rank's samples per epoch, before deciders.
  [[nodiscard]] std::uint64_t inputs() const { return inputs_; }

  /// The same, where it is known and has an end.
  [[nodiscard]] std::optional<std::uint64_t> samples_per_epoch() const {
    if (parts::forward || fixed_steps_ || mine_.size >= std::uint64_t{1} << 62) return std::nullopt;
    return inputs_;
  }

  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] std::uint64_t pass() const { return pass_; }
  [[nodiscard]] std::uint64_t ordinal() const { return ordinal_; }
  [[nodiscard]] const position_buffer& cursor() const { return cursor_; }
  void limit(std::uint64_t epochs) { limit_ = epochs; }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  [[nodiscard]] bool more() const { return epoch_ < limit_; }

  /// How many of this rank's ordinals stand at positions below `index`; for loops without batches.
  [[nodiscard]] std::uint64_t ordinals_below(std::uint64_t index) const {
    const std::uint64_t whole = index / local_world_ + (mine_.rank < index % local_world_ ? 1 : 0);
    return std::min(whole, inputs_);
  }

  void seek(std::uint64_t epoch, std::uint64_t pass, std::uint64_t ordinal) {
    epoch_ = epoch;
    pass_ = pass;
    ordinal_ = ordinal;
    fresh_ = true;
  }
  /// What is wrong with a state, or nothing: whether it can be one of this plan.
  [[nodiscard]] std::string_view wrong_with(const state& s) const {
    if (fixed_steps_ ? s.step > most_steps_ : s.pass != 0) return "it has more steps or passes than an epoch";
    if (s.rows > s.survivors) return "it counts more rows in part than in all";
    const bool same_world = parts::batched || parts::decided || s.world == local_world_;
    if (s.front.empty() ? parts::forward && s.ordinal != 0 : !parts::forward)
      return "where the source stands does not go with its samples";
    if (parts::forward) return {};  // nobody knows how many there are
    if (same_world ? s.ordinal > inputs_ : s.ordinal > mine_.size || s.rows > mine_.size)
      return "it has more samples than the data";
    if (!same_world || (s.taken == 0 && s.given == 0 && s.held.empty())) return {};
    if constexpr (parts::has_cursor) {
      const std::uint64_t each = parts::shard_before_cursor ? 1 : local_world_;
      if (s.given == std::min(s.ordinal * each, cursor_inputs()) &&
          cursor_.could_hold(cursor_inputs(), s.taken, s.given, s.held))
        return {};
    }
    return "what its shuffle_buffer holds does not go with its samples";
  }
  void restore_cursor(std::uint64_t taken, std::uint64_t given, std::vector<std::uint64_t> held) {
    cursor_.restore(source_epoch(), cursor_inputs(), taken, given, std::move(held));
    fresh_ = false;
  }

  void prepare(placement_type& p, std::size_t /*most*/) {
    p.parts.assign(1, {});
    p.epoch = source_epoch();
    p.listed = false;
    p.last = false;
    batch_part& part = p.parts[0];
    part.delivered = {epoch_, ordinal_};
    if constexpr (parts::forward) {
      p.slots = part.slots = chunk_;  // how many there are is known when they are pulled
      part.view = step_view(ordinal_, chunk_, 1, 0, chunk_, chunk_);
      ordinal_ += chunk_;
    } else {
      const std::uint64_t count = std::min(chunk_, inputs_ - std::min(inputs_, ordinal_));
      p.slots = part.slots = part.valid = count;
      p.last = ordinal_ + count >= inputs_;
      p.indices.clear();
      if constexpr (parts::has_cursor) {
        p.listed = true;
        draw(count, &p.indices);
        bind_listed(p);
      } else if (local_world_ == 1 && mine_.lanes == 1) {
        part.view = step_view(ordinal_, count, 1, 0, count, count);
        orders_->rebind(p.binding, p.epoch, ordinal_, ordinal_ + count);
      } else {
        p.listed = true;
        for (std::uint64_t i = 0; i < count; ++i) p.indices.push_back(mine_.at(ordinal_ + i)[0]);
        bind_listed(p);
      }
      go_on(count);
    }
  }

  /// Goes on by `count` ordinals of one chunk, without looking.
  void advance(std::uint64_t count) {
    if constexpr (parts::has_cursor && !parts::forward) draw(count, nullptr);
    go_on(count);
  }
  /// Leaves the epoch (or, with `steps`, the pass) where it is and begins the next one.
  void next_pass() { seek(fixed_steps_ ? epoch_ : epoch_ + 1, fixed_steps_ ? pass_ + 1 : 0, 0); }
  void settle() {
    if constexpr (parts::has_cursor && !parts::forward) begin_if_fresh();
  }

 private:
  [[nodiscard]] std::uint64_t source_epoch() const { return epoch_ + (pass_ << 32); }
  [[nodiscard]] std::uint64_t cursor_inputs() const {
    return parts::shard_before_cursor ? inputs_ : mine_.size;
  }

  void bind_listed(placement_type& p) {
    if (p.indices.empty()) return;
    const auto [low, high] = std::minmax_element(p.indices.begin(), p.indices.end());
    orders_->rebind(p.binding, p.epoch, *low, *high + 1);
  }
  void go_on(std::uint64_t count) {
    ordinal_ += count;
    if (!parts::forward && ordinal_ >= inputs_) next_pass();  // nobody knows how many a forward source has
  }
  void begin_if_fresh() {
    if (!fresh_) return;
    cursor_.begin(source_epoch(), cursor_inputs());
    fresh_ = false;
    for (std::uint64_t i = 0; i < ordinal_; ++i) draw_one();
  }
  void draw(std::uint64_t count, std::vector<std::uint64_t>* indices) {
    begin_if_fresh();
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t index = draw_one();
      if (indices != nullptr) indices->push_back(index);
    }
  }
  /// The next position index of this rank.
  std::uint64_t draw_one() {
    if constexpr (parts::shard_before_cursor) {
      return mine_.at(cursor_.next())[0];
    } else {
      std::uint64_t found = 0;
      for (std::uint64_t rank = 0; rank < local_world_ && !cursor_.empty(); ++rank) {
        const std::uint64_t ordinal = cursor_.next();
        if (rank == mine_.rank) found = ordinal;
      }
      return found;
    }
  }

  std::shared_ptr<const orders_type> orders_;
  std::uint64_t chunk_;
  cut mine_;
  std::uint64_t local_world_ = 1, inputs_ = 0;
  std::optional<std::uint64_t> fixed_steps_;
  std::uint64_t most_steps_ = 0;
  std::uint64_t epoch_ = 0, pass_ = 0, ordinal_ = 0, limit_ = 1;
  position_buffer cursor_;
  bool fresh_ = true;
};

}  // namespace penstock::inline v0_1
