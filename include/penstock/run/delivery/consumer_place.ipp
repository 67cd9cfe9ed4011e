// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/delivery/consumer_place.hpp>

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
  if (at.pass() == 0) step_ = beyond_ = dealt_ = done_ = 0;
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
    done_ = rules_.deals ? s.step * rules_.global : 0;
  } else {
    step_ = s.dealt / rules_.ranks;
    beyond_ = s.dealt % rules_.ranks;
    dealt_ = rules_.rows.passing(s.survivors);
    done_ = rules_.deals ? s.dealt : 0;
  }
}

PENSTOCK_INLINE void consumer_place::commit(const feed& delivered, std::uint64_t bad) {
  committed_.epoch = delivered.epoch();
  committed_.pass = delivered.pass();
  committed_.ordinal = delivered.step();
  committed_.step = step_;
  committed_.rows = row_ + to_skip_;
  committed_.survivors = survivors_ + to_skip_;
  committed_.dealt = !rules_.batched ? step_ * rules_.ranks + beyond_ : rules_.deals ? dealt_ : 0;
  committed_.bad = bad;
  if (!front_.empty() || !committed_.front.empty()) committed_.front = front_;
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
  if (delivered.epoch() == s.epoch && delivered.pass() == s.pass && delivered.step() == s.ordinal) {
    delivered.settle();
    return write_cursor(s, delivered.cursor());
  }
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

}  // namespace penstock::inline v0_1
