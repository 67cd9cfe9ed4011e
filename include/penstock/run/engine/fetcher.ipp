// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/fetcher.hpp>

#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void range_list::clear() noexcept {
  entries_.clear();
  bytes_ = warm_ = 0;
}

PENSTOCK_INLINE void range_list::add(const entry& one) {
  entries_.push_back(one);
  bytes_ += one.size;
}

// Sorts the ranges by where they lie, joins nearby ones into pieces, and sorts these by first use.
PENSTOCK_INLINE void fetcher::plan(std::vector<range_list::entry>& wanted) {
  using entry = range_list::entry;
  std::sort(wanted.begin(), wanted.end(), [](const entry& a, const entry& b) {
    if (a.from.self() != b.from.self()) return std::less<>{}(a.from.self(), b.from.self());
    if (a.object != b.object) return a.object < b.object;
    return a.offset != b.offset ? a.offset < b.offset : a.turn < b.turn;
  });
  pieces_.clear();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const entry& one = wanted[i];
    const std::uint64_t end = one.offset + one.size;
    if (!pieces_.empty()) {
      piece& before = pieces_.back();
      const entry& neighbour = wanted[before.first];
      if (neighbour.from.self() == one.from.self() && neighbour.object == one.object &&
          one.offset <= before.end + most_between &&
          end - before.begin <= std::min(most_together, store_.largest())) {
        before.last = i + 1;
        before.end = std::max(before.end, end);
        before.turn = std::min(before.turn, one.turn);
        continue;
      }
    }
    pieces_.push_back({i, i + 1, one.offset, end, one.turn});
  }
  std::sort(pieces_.begin(), pieces_.end(), [](const piece& a, const piece& b) {
    return a.turn != b.turn ? a.turn < b.turn : a.first < b.first;
  });
}

PENSTOCK_INLINE void fetcher::fetch(range_list& list) {
  std::vector<range_list::entry>& wanted = list.entries();
  store_.sweep();
  if (wanted.empty()) return;
  const auto [low, high] = std::minmax_element(wanted.begin(), wanted.end(),
                                               [](const auto& a, const auto& b) { return a.turn < b.turn; });
  first_turn_ = low->turn;
  turns_.assign(detail::to_size(high->turn - first_turn_ + 1), {});
  for (const auto& one : wanted) ++turns_[detail::to_size(one.turn - first_turn_)].left;
  plan(wanted);
  requests_.reserve(pieces_.size());  // nothing throws from here on
  bool goes_on = true;
  for (const piece& one : pieces_) {
    if (goes_on) goes_on = fetch(one, wanted);
    if (!goes_on)  // publish what was claimed, without the rest
      for (std::size_t i = one.first; i != one.last; ++i) settle(wanted[i].turn, nullptr);
  }
  submit();
  list.clear();
}

// Counts off a range of a turn, with its part of a read or without one; the last one publishes the turn.
PENSTOCK_INLINE void fetcher::settle(std::uint64_t turn, const fetched_part* part) {
  turn_state& state = turns_[detail::to_size(turn - first_turn_)];
  if (part != nullptr) {
    if (!state.claimed && !state.dropped) (store_.claim(turn) ? state.claimed : state.dropped) = true;
    if (state.dropped || !store_.add(turn, *part)) store_.release(*part->from);
  }
  if (--state.left == 0 && state.claimed) store_.publish(turn);
}

// Publishes the turns that hold a part of the oldest read and still wait for another part: otherwise that
// read would never be released while the fetcher waits for room. Their workers read the rest.
PENSTOCK_INLINE void fetcher::show_turns_of_oldest() {
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    turn_state& state = turns_[i];
    if (state.left == 0 || !state.claimed || !store_.needs_oldest(first_turn_ + i)) continue;
    store_.publish(first_turn_ + i);
    state.claimed = false;
    state.dropped = true;
  }
}

PENSTOCK_INLINE bool fetcher::fetch(const piece& one, const std::vector<range_list::entry>& wanted) {
  const auto users = static_cast<std::uint32_t>(one.last - one.first);
  if (one.end - one.begin > store_.largest()) {  // a worker reads it
    for (std::size_t i = one.first; i != one.last; ++i) settle(wanted[i].turn, nullptr);
    return true;
  }
  range_store::read* room = store_.reserve(one.end - one.begin, users);
  while (room == nullptr) {
    submit();
    show_turns_of_oldest();
    if (!store_.wait_for_room()) return false;
    store_.sweep();
    room = store_.reserve(one.end - one.begin, users);
  }
  const range_list::entry& first = wanted[one.first];
  for (std::size_t i = one.first; i != one.last; ++i) {
    const range_list::entry& each = wanted[i];
    const fetched_part part{
        each.from.self(), each.offset, each.size, room->bytes + (each.offset - one.begin), room, each.object};
    settle(each.turn, &part);
  }
  if (room->users.load(std::memory_order_acquire) == 1) {  // every user has already passed
    store_.release(*room);
    return true;
  }
  if (asked_ == nullptr || asked_->itself.self() != first.from.self()) {
    submit();
    asked_ = find(first.from);
  }
  requests_.push_back({first.object,
                       one.begin,
                       {room->bytes, detail::to_size(one.end - one.begin)},
                       reinterpret_cast<std::uintptr_t>(room)});
  return true;
}

// The session, with its threads if it needs them; null if memory is short.
PENSTOCK_INLINE const fetcher::asked_session* fetcher::find(const fetched_session& session) {
  for (const asked_session& one : sessions_)
    if (one.itself.self() == session.self()) return &one;
  try {
    asked_session fresh{session, nullptr};
    if (!session.in_background())
      fresh.threads =
          std::make_unique<threaded_reads>(session.view(), std::span<const std::string>(), threads);
    return &sessions_.emplace_back(std::move(fresh));
  } catch (...) {
    return nullptr;
  }
}

PENSTOCK_INLINE void fetcher::submit() noexcept {
  if (requests_.empty()) return;
  store_.begin(requests_.size());
  const read_listener listener{this, &fetcher::done};
  if (asked_ == nullptr) {  // workers read for themselves
    for (const read_request& one : requests_) store_.end(read_of(one.tag), false);
  } else {
    if (asked_->threads)
      asked_->threads->read_many(requests_, listener);
    else
      asked_->itself.read_many(requests_, listener);
  }
  requests_.clear();
}

PENSTOCK_INLINE void fetcher::done(void* self, std::uint64_t tag, std::exception_ptr error) noexcept {
  static_cast<fetcher*>(self)->store_.end(read_of(tag), error == nullptr);
}

PENSTOCK_INLINE void fetcher::end_reads() noexcept {
  for (const asked_session& one : sessions_) {
    if (one.threads) one.threads->cancel();
    one.itself.cancel();
  }
  store_.wait_for_reads();
}

}  // namespace penstock::inline v0_1
