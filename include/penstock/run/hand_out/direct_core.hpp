// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/block/batch_handle.hpp>
#include <penstock/run/hand_out/core_base.hpp>
#include <penstock/run/state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stop_token>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// What a run owns where batches are written in place: blocks of the engine are handed out batch by batch.
template <class Plan>
class direct_core : public core_base<Plan, direct_core<Plan>> {
  using base = core_base<Plan, direct_core<Plan>>;
  using parts = plan_parts<Plan>;

 public:
  using block_type = typename base::block_type;
  using batch_type = batch_handle<direct_core>;

  direct_core(const Plan& p, const run_options& options, const std::stop_token& token)
      : base(p, options, token) {}

  using base::engine;

  void give_back(block_type* p) noexcept { engine.give_back(p); }

  /// Takes back a batch that the consumer is done with, in the consumer's thread: those of one block are
  /// given up together.
  void take_back(batch_type& b) noexcept {
    block_type* p = b.forget();
    if (p == nullptr) return;
    if (p != counted_) return base::give_up(*p, 1);
    ++returned_;
    if (left_ == 0) settle_returned();
  }

  /// The next batch of `epoch`; an empty handle at its end or when the run was stopped. Throws what belongs
  /// to that batch.
  batch_type next_batch(std::uint64_t epoch) {
    auto& trail = engine.delivered_feed();
    if (trail.epoch() != epoch || trail.step() >= trail.steps_per_epoch() || engine.stopped()) return {};
    if (block_ == nullptr && !take_block()) return {};
    block_type& p = *block_;
    const batch_part& part = p.parts[p.parts.size() - left_];
    if constexpr (parts::tolerant) pass_bad(p, part);
    if (p.what != nullptr && p.bad_slot < part.first + part.slots) {
      const std::exception_ptr what = p.what;
      drop();
      base::fail(what);
    }
    trail.advance();
    base::count(p, part);
    if (--left_ == 0) block_ = nullptr;
    return batch_type(&p, part);
  }

  /// Lets go of what is begun and not handed out.
  void drop() noexcept {
    base::tally.drop();
    if (block_ != nullptr) {
      block_ = nullptr;
      returned_ += static_cast<std::uint32_t>(std::exchange(left_, 0));
    }
    settle_returned();
  }

  /// Goes to a place; drops what was begun.
  void seek(const state& s) {
    drop();
    base::restore_bad(s);
    engine.reposition([&](auto& feed) {
      feed.seek(s.epoch, s.step);
      if constexpr (parts::has_cursor) {
        if (s.given != 0 || !s.held.empty()) feed.restore_cursor(s.taken, s.given, s.held);
      }
    });
  }
  void write_state(state& s) {
    auto& trail = engine.delivered_feed();
    trail.settle();
    s.epoch = trail.epoch();
    s.step = trail.step();
    if constexpr (parts::tolerant) s.bad = base::tally.count(s.epoch);
    base::write_cursor(s, trail.cursor());
  }

  static std::vector<position> positions(const block_type& p, std::size_t first, std::size_t count) {
    std::vector<position> all;
    all.reserve(count);
    for (std::size_t row = first; row < first + count; ++row) all.push_back({p.epoch, p.index(row)});
    return all;
  }

 private:
  /// Counts the bad samples of a batch that is about to be handed out. Throws where they are too many.
  void pass_bad(block_type& p, const batch_part& part) {
    const std::uint64_t end = std::min(part.first + part.slots, p.bad_slot);
    try {
      for (const bad_slot& one : p.bad.all())
        if (one.row >= part.first && one.row < end) base::tally.see(part.delivered.epoch, one);
      if (p.bad_slot >= part.first + part.slots) base::commit_bad(part.delivered.epoch);
    } catch (...) {
      drop();
      base::fail(std::current_exception());
    }
  }

  void settle_returned() noexcept {
    const std::uint32_t shares = std::exchange(returned_, 0);
    if (shares != 0) base::give_up(*counted_, shares);
    counted_ = nullptr;
  }

  [[nodiscard]] bool take_block() {
    settle_returned();
    block_type* p = engine.next();
    if (p == nullptr) return false;
    if (p->what == nullptr) {
      try {
        engine.learn_from(*p);
        engine.arrive(*p);
      } catch (...) {
        engine.give_back_and_stop(p);  // what comes next is not what the consumer misses
        throw;
      }
    }
    if constexpr (parts::tolerant) p->bad.sort();
    left_ = p->parts.size();
    base::hand_out(*p, static_cast<std::uint32_t>(left_));
    block_ = counted_ = p;
    return true;
  }

  block_type* block_ = nullptr;  // of which batches are left to hand out
  std::size_t left_ = 0;
  block_type* counted_ = nullptr;  // the block of which `returned_` batches are back and not yet given up
  std::uint32_t returned_ = 0;
};

}  // namespace penstock::inline v0_1
