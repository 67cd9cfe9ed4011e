// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/delivery/delivery_shell.hpp>

#include <penstock/order/packing.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE selection::verdict consumer_place::look() noexcept {
  is_dealt_ = false;
  if (to_skip_ != 0) {
    --to_skip_;
    return selection::verdict::drop;
  }
  const selection::verdict seen = rules_.rows.look(survivors_);
  if (seen != selection::verdict::pass) return seen;
  ++passed_;
  is_dealt_ = rules_.deals && rules_.ranks > 1;
  before_it_ = dealt_;
  if (dealt_ >= done_ && rules_.rows.ours(dealt_)) return seen;
  ++dealt_;
  return selection::verdict::drop;
}

PENSTOCK_INLINE void consumer_place::begin_pass(const feed& at) noexcept {
  survivors_ = row_ = to_skip_ = passed_ = 0;
  if (at.pass() == 0) step_ = beyond_ = dealt_ = done_ = window_ = window_rows_ = 0;
  front_.clear();
}

PENSTOCK_INLINE void consumer_place::seek(feed& at, state s) {
  if (rules_.dealt_in_rotation) {
    const std::uint64_t mine = at.ordinals_below(s.dealt);
    if (s.world != rules_.ranks || (s.rank != rules_.rank && mine != s.ordinal + s.rows)) {
      s.ordinal = mine;
      s.rows = s.survivors = s.given = 0;
      s.held.clear();
    }
  }
  at.seek(s.epoch, s.ordinal, s.pass);
  if (s.given != 0 || !s.held.empty()) at.restore_cursor(s.taken, s.given, std::move(s.held));
  begin_pass(at);
  front_ = std::move(s.front);
  to_skip_ = s.rows;
  survivors_ = s.survivors - std::min(s.survivors, s.rows);
  // an upper bound: whether any of them passed is unknown, and the next pass will tell
  passed_ = s.survivors;
  // Steps before this one are done, whichever rank did which part of them.
  if (rules_.batched) {
    step_ = s.step;
    dealt_ = s.dealt;
    done_ = rules_.deals && !rules_.packs ? s.step * rules_.global : 0;
    window_ = s.packed.empty() ? 0 : s.packed.front();
    window_rows_ = s.packed.empty() ? 0 : s.packed.back();
  } else {
    step_ = s.dealt / rules_.ranks;
    beyond_ = s.dealt % rules_.ranks;
    dealt_ = rules_.rows.passing(s.survivors);
    done_ = rules_.deals ? s.dealt : 0;
  }
}

PENSTOCK_INLINE void consumer_place::set(mark& here, const feed& delivered) const {
  here.epoch = delivered.epoch();
  here.pass = delivered.pass();
  here.ordinal = delivered.step();
  here.step = step_;
  here.rows = row_ + to_skip_;
  here.survivors = survivors_ + to_skip_;
  here.dealt = !rules_.batched ? step_ * rules_.ranks + beyond_ : rules_.deals ? dealt_ : 0;
  here.window = window_;
  here.window_rows = window_rows_;
  if (!front_.empty() || !here.front.empty()) here.front = front_;
}

PENSTOCK_INLINE void consumer_place::commit(const feed& delivered, std::uint64_t bad) {
  set(committed_, delivered);
  committed_.bad = bad;
}

PENSTOCK_INLINE void consumer_place::begin_window(feed& delivered) {
  set(from_, delivered);
  delivered.settle();
  from_feed_ = delivered;
}

PENSTOCK_INLINE void consumer_place::write(state& s, feed& delivered) const {
  s.epoch = committed_.epoch;
  s.pass = committed_.pass;
  s.ordinal = committed_.ordinal;
  s.step = committed_.step;
  s.rows = committed_.rows;
  s.survivors = committed_.survivors;
  s.dealt = committed_.dealt;
  s.bad = committed_.bad;
  s.front = committed_.front;
  s.packed.clear();
  if (committed_.window != 0 || committed_.window_rows != 0)
    s.packed = {committed_.window, committed_.window_rows};
  const auto is_there = [&](const feed& at) {
    return at.epoch() == s.epoch && at.pass() == s.pass && at.step() == s.ordinal;
  };
  if (is_there(delivered)) {
    delivered.settle();
    return write_cursor(s, delivered.cursor());
  }
  if (from_feed_ && is_there(*from_feed_)) return write_cursor(s, from_feed_->cursor());
  feed before = delivered;  // chunks have been used up since
  before.seek(s.epoch, s.ordinal, s.pass);
  before.settle();
  write_cursor(s, before.cursor());
}

PENSTOCK_INLINE void write_cursor(state& s, const position_buffer& cursor) {
  s.taken = cursor.taken();
  s.given = cursor.given();
  s.held.assign(cursor.held().begin(), cursor.held().end());
}

PENSTOCK_INLINE delivery_shell::delivery_shell(engine_shell& engine, tolerant_tally* tally,
                                               const delivery_calls& calls, void* self, delivery_setup setup,
                                               void (*destroy)(block*) noexcept)
    : setup_(std::move(setup)),
      place_(setup_.rules),
      gathered_(engine.depth(), destroy, engine.copies()),
      engine_(engine),
      tally_(tally),
      calls_(&calls),
      plan_part_(self) {}

PENSTOCK_INLINE delivery_shell::~delivery_shell() = default;

PENSTOCK_INLINE shared<delivery_shell> delivery_shell::kept(delivery_shell* made,
                                                            void (*destroy)(delivery_shell*) noexcept) {
  return std::shared_ptr<delivery_shell>(made, destroy);
}
PENSTOCK_INLINE void delivery_shell::keep_forever() noexcept { self_ = shared_from_this(); }

PENSTOCK_INLINE void delivery_shell::give_up(block& b, std::uint32_t shares) noexcept {
  if (!b.release(shares)) return;
  const shared<void> owner = std::move(b.owner);  // may be the pool's last owner
  auto& self = *static_cast<delivery_shell*>(owner.get());
  if (!self.engine_.home().here()) return;
  self.engine_.watch().let_go(&b);
  if (b.from_batches)
    self.gathered_.give_back(&b);
  else
    self.engine_.give_back(&b);
}

PENSTOCK_INLINE void delivery_shell::drop() noexcept {
  if (tally_ != nullptr) tally_->drop();
  leave_block();
  window_rows_ = window_row_ = last_pass_ = 0;
  if (filling_ != nullptr) gathered_.give_back(std::exchange(filling_, nullptr));
}

PENSTOCK_INLINE void delivery_shell::seek(const state& s) {
  if (!setup_.in_place && s.step != 0 && has_steps_of_epoch(s.step)) return go_to_epoch(s.epoch + 1);
  drop();
  last_pass_ = s.pass;
  if (tally_ != nullptr) tally_->restore(s.epoch, share_of_bad(s.bad, s.world, setup_.rules.ranks));
  engine_.reposition(
      [&](feed& at) {
        if (!setup_.in_place) return place_.seek(at, s);
        at.seek(s.epoch, at.step_of(s).value_or(s.step));
        if (s.given != 0 || !s.held.empty()) at.restore_cursor(s.taken, s.given, s.held);
      },
      s.front);
  commit();
}

PENSTOCK_INLINE void delivery_shell::write_state(state& s) {
  feed& delivered = engine_.delivered_feed();
  if (!setup_.in_place) {
    place_.write(s, delivered);
    if (s.step == 0 || !has_steps_of_epoch(s.step)) return;
    s.begin_epoch(s.epoch + 1);
    feed next = delivered;
    next.seek(s.epoch, 0);
    next.settle();
    return write_cursor(s, next.cursor());
  }
  delivered.settle();
  s.epoch = delivered.epoch();
  s.step = delivered.step();
  s.ordinal = delivered.samples_before();
  s.bad = bad_so_far();
  write_cursor(s, delivered.cursor());
}

PENSTOCK_INLINE std::vector<position> delivery_shell::positions(const block& b, std::size_t first,
                                                                std::size_t count) {
  if (b.from_batches) return b.gathered.all();
  std::vector<position> all;
  all.reserve(count);
  for (std::size_t row = first; row < first + count; ++row)
    all.push_back({b.epoch, b.index(b.sources.empty() ? row : b.sources[row])});
  return all;
}

PENSTOCK_INLINE void delivery_shell::fail(const std::exception_ptr& what) {
  engine_.request_stop();
  try {
    std::rethrow_exception(what);
  } catch (error& e) {
    // An error found while collating, or thrown by a function, lacks its sample: the source did not see it.
    if (e.code() == errc::shape || e.code() == errc::exception || e.code() == errc::state) add_sample(e);
    throw;
  }
}

PENSTOCK_INLINE void delivery_shell::hold(block& b, std::uint32_t shares) {
  b.owner = shared_from_this();
  b.shares.store(shares, std::memory_order_relaxed);
  engine_.watch().hold(b);
}

PENSTOCK_INLINE void delivery_shell::take_back(block* b) noexcept {
  if (b == nullptr) return;
  if (b != block_) return give_up(*b, 1);
  --out_;
  if (used_up()) leave_block();
}

PENSTOCK_INLINE void delivery_shell::leave_block() noexcept {
  const std::uint32_t left = shares_ - std::exchange(out_, 0);
  block* const b = std::exchange(block_, nullptr);
  if (b != nullptr && left != 0) give_up(*b, left);
}

PENSTOCK_INLINE bool delivery_shell::take_block() {
  leave_block();
  block* b = nullptr;
  try {
    b = engine_.next();
  } catch (error& e) {  // a step that cannot be cut, because of a sample
    add_sample(e);
    throw;
  }
  if (b == nullptr) return false;
  if (setup_.in_place) {
    if (b->what == nullptr) {
      try {
        calls_->learn_from(plan_part_, *b);
        engine_.arrive(*b);
      } catch (...) {
        engine_.give_back_and_stop(b);  // the consumer must not skip this block
        throw;
      }
    }
    if (tally_ != nullptr) (b->bad.*calls_->tally->sort)();
  }
  shares_ = setup_.in_place ? static_cast<std::uint32_t>(b->batches.size()) : pieces;
  hold(*b, shares_);
  block_ = b;
  next_ = bad_ = 0;
  return true;
}

PENSTOCK_INLINE const batch_rows* delivery_shell::next_in_place(std::uint64_t epoch) {
  feed& delivered = engine_.delivered_feed();
  if (delivered.epoch() != epoch || engine_.stopped()) return nullptr;
  if (delivered.at_end()) {
    // the next one may have steps
    if (delivered.uneven().any() && !engine_.stopped()) go_to_epoch(epoch + 1);
    return nullptr;
  }
  if ((block_ == nullptr || used_up()) && !take_block()) return nullptr;
  block& b = *block_;
  const batch_rows& batch = b.batches[next_];
  if (tally_ != nullptr) pass_bad(b, batch);
  // a batch without slots fails too, if nothing tells its shape
  if (b.what != nullptr && b.bad_slot < batch.first + std::max<std::uint64_t>(1, batch.slots)) {
    const std::exception_ptr what = b.what;
    drop();
    fail(what);
  }
  delivered.advance();
  ++next_;
  ++out_;
  return &batch;
}

// Counts the bad samples of a batch about to be delivered. Throws if there are too many.
PENSTOCK_INLINE void delivery_shell::pass_bad(block& b, const batch_rows& batch) {
  const std::uint64_t end = std::min(batch.first + batch.slots, b.bad_slot);
  try {
    for (const bad_slot& one : b.bad.all())
      if (one.row >= batch.first && one.row < end) (tally_->*calls_->tally->see)(batch.delivered.epoch, one);
    if (b.bad_slot >= batch.first + batch.slots) count_bad(batch.delivered.epoch);
  } catch (...) {
    drop();
    fail(std::current_exception());
  }
}

PENSTOCK_INLINE bool delivery_shell::look_for_row(std::uint64_t epoch) {
  while (engine_.delivered_feed().epoch() == epoch) {
    if (block_ == nullptr && !take_block()) return false;
    const selection::verdict found = find_in_chunk();
    if (found == selection::verdict::pass) return true;
    // If it throws, the place is between two chunks: nothing may resume there.
    engine_.or_stop([&] { found == selection::verdict::end ? end_pass() : leave_chunk(); });
  }
  return false;
}

// pass: there is a row; drop: this chunk has no more; end: nothing more passes in this pass.
PENSTOCK_INLINE selection::verdict delivery_shell::find_in_chunk() {
  for (const std::uint64_t end = good_rows(); place_.row() < end; place_.go_by(1)) {
    see_bad(place_.row() + 1);
    const selection::verdict seen = place_.look();
    if (tally_ != nullptr && place_.is_dealt())
      calls_->see_dealt(plan_part_, *block_, place_.row(), place_.begins_step());
    if (seen != selection::verdict::drop) return seen;
  }
  return selection::verdict::drop;
}

// All rows of the chunk are used: reports its failure, or moves to the next chunk.
PENSTOCK_INLINE void delivery_shell::leave_chunk() {
  see_bad(good_rows() + 1);
  if (block_->what != nullptr) {
    const std::exception_ptr what = block_->what;
    leave_block();
    fail(what);
  }
  const std::uint64_t inputs = block_->batches[0].valid;
  if (!block_->last) {
    engine_.delivered_feed().advance(inputs);
    place_.next_chunk(block_->after);  // a chunk's memory is reused
    leave_block();
  } else if (setup_.forward) {
    end_pass();  // the end of the data was not known: chunks beyond it are dropped
  } else {
    check_pass();
    engine_.delivered_feed().advance(inputs);
    leave_block();
    place_.begin_pass(engine_.delivered_feed());
  }
}

// Ends this pass, wherever the feed is.
PENSTOCK_INLINE void delivery_shell::end_pass() {
  check_pass();
  feed next = engine_.delivered_feed();
  next.next_pass();
  next.limit(engine_.leading().limit());
  leave_block();
  engine_.reposition([&](feed& at) { at = next; });
  place_.begin_pass(next);
}

PENSTOCK_INLINE void delivery_shell::check_pass() {
  if (!setup_.has_steps || place_.any_passed()) return;
  engine_.request_stop();
  throw error(errc::argument, "steps(n): a whole pass over the data gave this rank no sample")
      .in_stage("steps");
}

PENSTOCK_INLINE void delivery_shell::see_bad(std::uint64_t end) {
  if (tally_ == nullptr) return;
  const auto& all = block_->bad.all();
  for (; bad_ < all.size() && all[bad_].row < end; ++bad_)
    if (!place_.done_before() && place_.window_rows_done() == 0)
      see(engine_.delivered_feed().epoch(), all[bad_]);
}

PENSTOCK_INLINE void delivery_shell::see_holes(block& out, std::uint64_t epoch) {
  if (tally_ == nullptr) return;
  (out.bad.*calls_->tally->sort)();
  for (const bad_slot& one : out.bad.all()) see(epoch, one);
}

PENSTOCK_INLINE void delivery_shell::see(std::uint64_t epoch, const bad_slot& one) {
  or_fail([&] { (tally_->*calls_->tally->see)(epoch, one); });
}

PENSTOCK_INLINE void delivery_shell::commit_bad(std::uint64_t epoch) {
  if (tally_ == nullptr) return;
  or_fail([&] { count_bad(epoch); });
}

PENSTOCK_INLINE void delivery_shell::count_bad(std::uint64_t epoch) {
  (tally_->*calls_->tally->commit)(epoch, calls_->place_of, plan_part_);
}

PENSTOCK_INLINE void delivery_shell::commit_end(std::uint64_t epoch) {
  if (engine_.stopped()) return;
  commit_bad(epoch);
  commit();
}

PENSTOCK_INLINE void delivery_shell::commit_batch(std::uint64_t epoch, std::uint64_t number) {
  if (engine_.delivered_feed().epoch() == epoch) place_.count_to(number + 1);
  if (!has_window_row()) return commit();
  place_.commit_window(window_row_, number + 1, bad_so_far());
}

PENSTOCK_INLINE void delivery_shell::begin_window_rows(std::uint64_t rows, std::uint64_t epoch) {
  const std::uint64_t done = place_.window_rows_done(), pass = engine_.delivered_feed().pass();
  if (done > rows) {
    engine_.request_stop();
    throw error(errc::state, {"the state says that ", done, " rows of a window of pack are done, and it has ",
                              rows, "; the samples have changed, or it was edited"})
        .in_stage("pack");
  }
  window_rows_ = rows;
  window_row_ = done;
  window_epoch_ = epoch;
  if (rows != 0 || pass < last_pass_) last_pass_ = pass;
  if (!setup_.has_steps || pass <= last_pass_ + 1) return;
  engine_.request_stop();
  throw error(
      errc::argument,
      "steps(n): all samples of a whole pass over the data are too long for a row of pack, and dropped")
      .in_stage("steps");
}

PENSTOCK_INLINE void delivery_shell::refuse_long_sample(position at, std::uint64_t length,
                                                        std::uint64_t capacity) {
  error e(errc::argument, {"this sample has ", length, " tokens, but a row holds ", capacity,
                           detail::how_to_pack_long_samples});
  e.in_stage("pack").add_context(at);
  calls_->name_sample(plan_part_, e, at);
  engine_.request_stop();
  throw e;
}

PENSTOCK_INLINE std::uint64_t delivery_shell::bad_so_far() {
  return tally_ == nullptr ? 0 : tally_->count(epoch());
}

/// Whether an epoch that has had so many batches gets no more, by steps(n) or by a take after batch.
PENSTOCK_INLINE bool delivery_shell::has_steps_of_epoch(std::uint64_t number) {
  const auto& fixed = engine_.leading().fixed_steps();
  return setup_.steps.look(number) == selection::verdict::end ||
         (fixed && setup_.steps.passing(number) >= *fixed);
}

PENSTOCK_INLINE bool delivery_shell::end_of_steps() {
  if (!has_steps_of_epoch(place_.number())) return false;
  go_to_epoch(epoch() + 1);
  return true;
}

PENSTOCK_INLINE void delivery_shell::go_to_epoch(std::uint64_t epoch) {
  state there;
  there.epoch = epoch;
  seek(there);
}

PENSTOCK_INLINE bool delivery_shell::is_at_beginning_of(std::uint64_t epoch) {
  if (!setup_.in_place) return place_.is_at_beginning_of(epoch);
  const feed& delivered = engine_.delivered_feed();
  return delivered.epoch() == epoch && delivered.step() == 0;
}

PENSTOCK_INLINE block* delivery_shell::take_piece(std::uint64_t epoch, batch_rows& batch) {
  if (!setup_.pieces || filling_ != nullptr || !place_.all_pass() || !find_row(epoch) ||
      good_rows() - place_.row() < setup_.batch_size)
    return nullptr;
  batch.first = place_.row();
  batch.slots = batch.valid = setup_.batch_size;
  see_bad(batch.first + batch.slots);
  commit_bad(epoch);
  place_.take(setup_.batch_size);
  ++out_;
  return block_;
}

}  // namespace penstock::inline v0_1
