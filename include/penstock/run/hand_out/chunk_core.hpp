// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/order/tail.hpp>
#include <penstock/run/block/batch_handle.hpp>
#include <penstock/run/block/whole.hpp>
#include <penstock/run/feed/selection.hpp>
#include <penstock/run/hand_out/core_base.hpp>
#include <penstock/run/state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// What a run owns where samples go through chunks: the rows of the chunks, in order, are gathered into
/// batches or handed out one by one.
///
/// A batch of numbers that lies within one chunk is handed out as it is; others are copied, row by row of
/// each column.
template <class Plan>
class chunk_core : public core_base<Plan, chunk_core<Plan>> {
  using base = core_base<Plan, chunk_core<Plan>>;
  using parts = plan_parts<Plan>;

 public:
  using engine_type = typename base::engine_type;
  using block_type = typename base::block_type;
  using batch_type = batch_handle<chunk_core>;

  chunk_core(const Plan& p, const run_options& options, const std::stop_token& token)
      : base(p, options, token),
        batches_(engine.depth(), engine_type::destroy_block),
        ranks_(world_of(p).size) {
    if constexpr (parts::decided)
      rows_ = detail::select_between<parts::in::decider, parts::in::batch>(p.stages());
    if constexpr (parts::batched) {
      steps_ = detail::select_between<parts::in::batch, parts::in::count>(p.stages());
      const auto& batch = detail::at<parts::in::batch>(p.stages());
      const world part = world_of(p);
      global_size_ = batch.global_size(part.size);
      batch_size_ = batch.dealt_size(part.rank, part.size);
      if (parts::forward && global_size_ % part.size != 0)
        throw error(errc::argument, {"global_batch(", global_size_,
                                     ") over a source that can only be read forward needs a "
                                     "number of ranks that divides it, and ",
                                     part.size, " does not"})
            .in_stage("batch");
      rows_.deal_in_steps_of(global_size_);
      at_end_ = batch.at_end;
      const auto fixed = engine.leading().fixed_steps();
      if (fixed && steps_.passing(std::numeric_limits<std::uint64_t>::max()) < *fixed)
        throw error(errc::argument,
                    {"steps(", *fixed, "): a take after batch leaves fewer batches in an epoch; remove it"})
            .in_stage("steps");
    }
  }

  using base::engine;

  void give_back(block_type* p) noexcept {
    if (p->from_batches)
      batches_.give_back(p);
    else
      engine.give_back(p);
  }
  void take_back(batch_type& b) noexcept { b.reset(); }

  /// The next batch of `epoch`; an empty handle at its end or when the run was stopped. Throws what belongs
  /// to that batch.
  batch_type next_batch(std::uint64_t epoch) {
    while (engine.delivered_feed().epoch() == epoch && !engine.stopped() && !end_of_steps()) {
      const std::uint64_t number = filling_ == nullptr ? step_ : mark_.step;
      batch_part part;
      block_type* p = take_piece(epoch, part);
      if (p == nullptr) p = gather(epoch, part);
      if (p == nullptr) return {};
      part.delivered = {epoch, number};
      part.global = part.valid;
      if (engine.delivered_feed().epoch() == epoch) step_ = number + 1;
      batch_type made(p, part);
      if (steps_.look(number) == selection::verdict::pass) {
        base::count(*p, part);
        return made;
      }
    }
    return {};
  }

  /// The next row of a loop without batches, valid until the one after it is asked for; null at the epoch's
  /// end.
  auto* next_row(std::uint64_t epoch)
    requires(!parts::batched)
  {
    using row = whole<typename parts::element>;
    if (engine.stopped() || !find_row(epoch)) {
      if (!engine.stopped()) commit_seen(epoch);
      return static_cast<row*>(nullptr);
    }
    commit_seen(epoch);
    row& value = chunk_->columns.template column<0>()[static_cast<std::size_t>(row_)];
    use_rows(1);
    ++dealt_;
    ++step_;
    engine.delivered(1, detail::whole_size(value));
    return &value;
  }

  /// Lets go of what is begun and not handed out.
  void drop() noexcept {
    base::tally.drop();
    drop_chunk();
    if (filling_ != nullptr) batches_.give_back(std::exchange(filling_, nullptr));
  }

  /// Goes to a place; drops what was begun.
  void seek(state s) {
    drop();
    base::restore_bad(s);
    engine.reposition(
        [&](auto& feed) {
          if constexpr (!parts::batched && !parts::decided && !parts::forward) {
            const std::uint64_t mine = feed.ordinals_below(s.dealt);
            const bool same_ranks = s.world == ranks_;
            if (!same_ranks || (s.rank != world_of(engine.plan()).rank && mine != s.ordinal + s.rows)) {
              s.ordinal = mine;
              s.rows = s.survivors = s.given = 0;
              s.held.clear();
            }
          }
          feed.seek(s.epoch, s.ordinal, s.pass);
          if constexpr (parts::has_cursor && !parts::forward) {
            if (s.given != 0 || !s.held.empty()) feed.restore_cursor(s.taken, s.given, s.held);
          }
        },
        s.front);
    begin_pass();
    front_at_ = std::move(s.front);
    step_ = s.step;
    to_skip_ = s.rows;
    survivors_ = s.survivors - std::min(s.survivors, s.rows);
    passed_ = s.survivors;  // whether some of them passed is not known: one pass more will tell
    // Steps up to this one are done, whoever did which part of them.
    if constexpr (parts::batched) {
      dealt_ = s.dealt;
      done_ = deals ? s.step * global_size_ : 0;
    } else {
      step_ = s.dealt / ranks_;
      beyond_ = s.dealt % ranks_;
      dealt_ = rows_.passing(s.survivors);
      done_ = deals ? s.dealt : 0;
    }
  }
  void write_state(state& s) {
    if (filling_ == nullptr && !base::tally.pending()) {
      engine.delivered_feed().settle();
      write_place(s, engine.delivered_feed(), here());
      s.front = front_at_;
    } else {  // something was begun and not ended: the place before it
      const place& at = filling_ != nullptr ? mark_ : before_;
      auto before = engine.delivered_feed();
      before.seek(at.epoch, at.ordinal, at.pass);
      before.settle();
      write_place(s, before, at);
    }
  }

  static std::vector<position> positions(const block_type& p, std::size_t first, std::size_t count) {
    if (p.from_batches) return p.gathered;
    std::vector<position> all;
    all.reserve(count);
    for (std::size_t row = first; row < first + count; ++row)
      all.push_back({p.epoch, p.index(p.sources[row])});
    return all;
  }

 private:
  /// Whether ranks deal what deciders keep.
  static constexpr bool deals = parts::decided && !parts::shard_before_decider;
  static constexpr bool across_passes = parts::in::template has<steps_tag>;
  /// Shares of a chunk whose pieces nobody has counted yet.
  static constexpr std::uint32_t many = 1u << 30;

  /// Rows of the chunk at hand that may be used: those before its failure, if it has one.
  [[nodiscard]] std::uint64_t good_rows() const {
    return chunk_->what != nullptr ? std::min(chunk_->bad_slot, chunk_->rows) : chunk_->rows;
  }
  void use_rows(std::uint64_t count) {
    row_ += count;
    survivors_ += count;
  }
  /// Whether every row from here on is the next one of this rank.
  [[nodiscard]] bool all_pass() const noexcept { return rows_.trivial() && dealt_ >= done_; }
  void drop_chunk() noexcept {
    if (chunk_ != nullptr) base::give_up(*std::exchange(chunk_, nullptr), many - pieces_);
  }

  /// Sees the bad samples that were left out before row `end` of the chunk; those of rows that a state says
  /// are done were counted.
  void see_bad([[maybe_unused]] std::uint64_t end) {
    if constexpr (parts::tolerant) {
      const auto& all = chunk_->bad.all();
      for (; bad_ < all.size() && all[bad_].row < end; ++bad_) {
        if (to_skip_ != 0) continue;
        settle_into(before_);
        base::try_or_fail([&] { base::tally.see(engine.delivered_feed().epoch(), all[bad_]); });
      }
    }
  }
  void commit_seen([[maybe_unused]] std::uint64_t epoch) {
    if constexpr (parts::tolerant) base::try_or_fail([&] { base::commit_bad(epoch); });
  }
  /// The holes that putting columns in order has left in a batch.
  void see_holes([[maybe_unused]] block_type& out, [[maybe_unused]] std::uint64_t epoch) {
    if constexpr (parts::tolerant) {
      out.bad.sort();
      for (const bad_slot& one : out.bad.all()) base::try_or_fail([&] { base::tally.see(epoch, one); });
    }
  }

  /// Where the rows stand: what a state says of them.
  struct place {
    std::uint64_t epoch, pass, ordinal, step, rows, survivors, dealt, bad;
    std::vector<std::uint64_t> front{};  // forward sources: where the front stood before the chunk at hand
  };
  [[nodiscard]] place here() noexcept {
    const auto& trail = engine.delivered_feed();
    return {trail.epoch(),   trail.pass(),          trail.step(), step_,
            row_ + to_skip_, survivors_ + to_skip_, dealt(),      bad_so_far()};
  }
  /// Notes the same, or the place before bad samples that were seen on the way to what comes next.
  void settle_into(place& into) {
    if (base::tally.pending()) {
      if (&into != &before_) into = before_;
      return;
    }
    std::vector<std::uint64_t> front = std::move(into.front);  // its memory is used again
    if constexpr (parts::forward) front = front_at_;
    into = here();
    into.front = std::move(front);
  }
  [[nodiscard]] std::uint64_t dealt() const noexcept {
    return !parts::batched ? step_ * ranks_ + beyond_ : deals ? dealt_ : 0;
  }
  [[nodiscard]] std::uint64_t bad_so_far() noexcept {
    if constexpr (parts::tolerant) return base::tally.count(engine.delivered_feed().epoch());
    return 0;
  }
  template <class Feed>
  static void write_place(state& s, const Feed& feed, const place& at) {
    s.epoch = at.epoch;
    s.pass = at.pass;
    s.ordinal = at.ordinal;
    s.step = at.step;
    s.rows = at.rows;
    s.survivors = at.survivors;
    s.dealt = at.dealt;
    s.bad = at.bad;
    s.front = at.front;
    base::write_cursor(s, feed.cursor());
  }

  /// Makes row `row_` of `chunk_` the next one that passes; false at the epoch's end or when the run was
  /// stopped.
  bool find_row(std::uint64_t epoch) {
    while (engine.delivered_feed().epoch() == epoch) {
      if (chunk_ == nullptr) {
        chunk_ = engine.next();
        if (chunk_ == nullptr) return false;
        base::hand_out(*chunk_, many);
        pieces_ = 0;
        row_ = 0;
        bad_ = 0;
      }
      const selection::verdict found = find_in_chunk();
      if (found == selection::verdict::pass) return true;
      try {
        found == selection::verdict::end ? end_pass() : leave_chunk();
      } catch (...) {
        engine.request_stop();  // the place is between two chunks: nothing may go on from there
        throw;
      }
    }
    return false;
  }
  /// pass: there is a row; drop: this chunk has no more; end: nothing more passes in this pass.
  selection::verdict find_in_chunk() {
    for (const std::uint64_t end = good_rows(); row_ < end; use_rows(1)) {
      see_bad(row_ + 1);
      if (to_skip_ != 0) {
        --to_skip_;
        continue;
      }
      const auto seen = rows_.look(survivors_);
      if (seen == selection::verdict::end) return seen;
      if (seen == selection::verdict::drop) continue;
      ++passed_;
      if (dealt_ >= done_ && rows_.ours(dealt_)) return seen;
      ++dealt_;
    }
    return selection::verdict::drop;
  }
  /// All rows of the chunk are used: its failure is due now, or the next chunk is.
  void leave_chunk() {
    see_bad(good_rows() + 1);
    if (chunk_->what != nullptr) {
      const std::exception_ptr what = chunk_->what;
      drop_chunk();
      base::fail(what);
    }
    const bool last = chunk_->last;
    const std::uint64_t inputs = chunk_->parts[0].valid;
    if (!last) {
      engine.delivered_feed().advance(inputs);
      if constexpr (parts::forward) std::swap(front_at_, chunk_->after);  // a chunk's memory is used again
      drop_chunk();
      row_ = 0;
    } else if (parts::forward) {
      end_pass();  // nobody knew that the data end here: chunks beyond are dropped
    } else {
      check_pass();
      engine.delivered_feed().advance(inputs);
      drop_chunk();
      begin_pass();
    }
  }
  /// This pass is over wherever the feed is.
  void end_pass() {
    check_pass();
    auto next = engine.delivered_feed();
    next.next_pass();
    next.limit(engine.leading().limit());
    drop_chunk();
    engine.reposition([&](auto& feed) { feed = next; });
    begin_pass();
    front_at_.clear();
  }
  void check_pass() {
    if (!across_passes || passed_ != 0) return;
    engine.request_stop();
    throw error(errc::argument, "steps(n): a whole pass over the data gave this rank no sample")
        .in_stage("steps");
  }
  void begin_pass() noexcept {
    survivors_ = row_ = to_skip_ = passed_ = 0;
    if (engine.delivered_feed().pass() == 0) step_ = beyond_ = dealt_ = done_ = 0;
  }

  /// Whether this epoch has had its batches, by steps(n) or by a take after batch; if so the next epoch
  /// begins.
  bool end_of_steps() {
    const auto fixed = engine.leading().fixed_steps();
    const std::uint64_t number = filling_ == nullptr ? step_ : mark_.step;
    if (steps_.look(number) != selection::verdict::end && !(fixed && steps_.passing(number) >= *fixed))
      return false;
    state next;
    next.epoch = engine.delivered_feed().epoch() + 1;
    seek(next);
    return true;
  }

  /// A batch that is a piece of the chunk at hand as it is; null where it would not fit or must be moved.
  block_type* take_piece(std::uint64_t epoch, batch_part& part) {
    if constexpr (engine_type::plain && !engine_type::session_type::copies) {
      if (filling_ != nullptr || !all_pass() || !find_row(epoch) || good_rows() - row_ < batch_size_)
        return nullptr;
      part.first = row_;
      part.slots = part.valid = batch_size_;
      see_bad(row_ + batch_size_);
      commit_seen(epoch);
      use_rows(batch_size_);
      dealt_ += batch_size_;
      ++pieces_;
      return chunk_;
    } else {
      return nullptr;
    }
  }

  /// A batch of rows that are copied together; null when there are none.
  block_type* gather(std::uint64_t epoch, batch_part& part) {
    if (filling_ == nullptr) {
      settle_into(mark_);
      if (!find_row(epoch)) {
        if (!engine.stopped()) commit_seen(epoch);
        return nullptr;
      }
      filling_ = take_batch();
      try {
        begin_filling(*filling_);
      } catch (...) {  // nothing is in it: asked again, it begins anew
        batches_.give_back(std::exchange(filling_, nullptr));
        throw;
      }
    }
    fill(*filling_, epoch);
    if (engine.stopped()) return nullptr;
    block_type& out = *filling_;
    part.valid = out.gathered.size();
    if (part.valid == 0 || (part.valid < batch_size_ && at_end_ == tail::drop)) {
      batches_.give_back(std::exchange(filling_, nullptr));
      commit_seen(epoch);
      return nullptr;
    }
    out.slots = part.slots = at_end_ == tail::pad ? batch_size_ : part.valid;
    if (part.slots > room_) out.columns.grow(static_cast<std::size_t>(part.slots), out.gathered.size());
    engine_type::evaluator_type::finish_columns(out, part);
    if (out.what != nullptr) base::fail(out.what);
    see_holes(out, epoch);
    engine.learn_from(out);
    try {
      engine.arrive(out);
    } catch (...) {
      engine.request_stop();  // as where batches are written in place
      throw;
    }
    commit_seen(epoch);
    base::hand_out(out, 1);
    return std::exchange(filling_, nullptr);
  }
  block_type* take_batch() {
    if (block* const out = batches_.take()) return static_cast<block_type*>(out);
    if (batches_.made() >= batches_.most() || (batches_.made() != 0 && !engine.room_for_another()))
      throw error(
          errc::argument,
          "you hold " + std::to_string(batches_.out()) + " of " + std::to_string(batches_.made()) +
              " batches and ask for another; let one go, or raise the depth with prefetch(n) after batch");
    block_type* const out = batches_.make([&] { return engine.make_block(); });
    out->from_batches = true;
    return out;
  }
  void begin_filling(block_type& out) {
    out.clear_failure();
    out.gathered.clear();
    out.indices.clear();
    engine.settle(out);
    out.columns.expect(engine.shapes());
    room_ = std::min<std::uint64_t>(batch_size_, 65'536);
    out.columns.begin(static_cast<std::size_t>(room_));
  }
  /// Goes on until the batch is full, or there is nothing more; what is there stays when something is thrown.
  void fill(block_type& out, std::uint64_t epoch) {
    while (out.gathered.size() < batch_size_ && find_row(epoch)) {
      const std::uint64_t filled = out.gathered.size();
      const std::uint64_t count = all_pass() ? std::min(good_rows() - row_, batch_size_ - filled) : 1;
      if (filled + count > room_) {
        const std::uint64_t more = std::min(batch_size_, std::max(2 * room_, filled + count));
        out.columns.grow(static_cast<std::size_t>(more), static_cast<std::size_t>(filled));
        room_ = more;
      }
      out.gathered.reserve(static_cast<std::size_t>(filled + count));
      if (filled == 0 && row_ == 0 && pieces_ == 0 && count == batch_size_ && count == chunk_->rows &&
          chunk_->what == nullptr)
        std::swap(out.columns, chunk_->columns);  // the chunk is the batch
      else
        out.columns.copy(static_cast<std::size_t>(filled), chunk_->columns, static_cast<std::size_t>(row_),
                         static_cast<std::size_t>(count));
      see_bad(row_ + count);
      chunk_->add_positions(out.gathered, row_, count);
      use_rows(count);
      dealt_ += count;
    }
    out.listed = true;  // errors of collating are of these positions
    out.epoch = out.gathered.empty() ? 0 : out.gathered.front().epoch;
    out.indices.clear();
    out.indices.resize(out.gathered.size());
    for (std::size_t i = 0; i < out.gathered.size(); ++i) out.indices[i] = out.gathered[i].index;
  }

  block_pool batches_;
  selection rows_, steps_;
  std::uint64_t ranks_, batch_size_ = 1, global_size_ = 1;
  tail at_end_ = tail::keep;
  block_type* chunk_ = nullptr;
  std::uint32_t pieces_ = 0;  // of the chunk, handed out as they are
  std::uint64_t row_ = 0, to_skip_ = 0, survivors_ = 0, step_ = 0;
  std::uint64_t passed_ = 0;            // survivors of this pass that take and skip let through
  std::uint64_t dealt_ = 0, done_ = 0;  // of this epoch and all ranks; below `done_` they are of steps before
  std::uint64_t beyond_ = 0;  // loops without batches: rows of all ranks on other ones, beyond whole steps
  std::size_t bad_ = 0;       // bad samples of the chunk that were seen
  block_type* filling_ = nullptr;        // a batch that is begun
  std::uint64_t room_ = 0;               // rows it has memory for
  place mark_{};                         // where it began
  place before_{};                       // before the bad samples that were seen and are not counted
  std::vector<std::uint64_t> front_at_;  // forward sources: where the front stood before the chunk at hand
};

}  // namespace penstock::inline v0_1
