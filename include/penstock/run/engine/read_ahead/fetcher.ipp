// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/read_ahead/fetcher.hpp>

#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <functional>

namespace penstock::inline v0_1 {

// Whether a range is read together with those before it.
PENSTOCK_INLINE bool fetcher::joins(const piece& before, const range_list::entry& first,
                                    const range_list::entry& one) const noexcept {
  if (first.from.self() != one.from.self() || first.object != one.object) return false;
  const bool far = one.from.traits().latency;
  return one.offset <= before.end + options_.coalesce_gap_with(far) &&
         one.offset + one.size - before.begin <= std::min(options_.max_coalesced_with(far), store_.largest());
}

// Sorts the ranges by where they lie, joins nearby ones into pieces, and sorts these by first use.
PENSTOCK_INLINE void fetcher::plan(std::vector<range_list::entry>& wanted) {
  using entry = range_list::entry;
  std::sort(wanted.begin(), wanted.end(), [](const entry& a, const entry& b) {
    if (a.from.self() != b.from.self()) return std::less<>{}(a.from.self(), b.from.self());
    if (a.object != b.object) return a.object < b.object;
    return a.offset != b.offset ? a.offset < b.offset : a.row < b.row;
  });
  pieces_.clear();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const entry& one = wanted[i];
    const std::uint64_t end = one.offset + one.size;
    if (!pieces_.empty() && joins(pieces_.back(), wanted[pieces_.back().first], one)) {
      piece& before = pieces_.back();
      before.last = i + 1;
      before.end = std::max(before.end, end);
      before.row = std::min(before.row, one.row);
    } else {
      pieces_.push_back({i, i + 1, one.offset, end, one.row});
    }
  }
  std::sort(pieces_.begin(), pieces_.end(), [](const piece& a, const piece& b) {
    return a.row != b.row ? a.row < b.row : a.first < b.first;
  });
}

PENSTOCK_INLINE void fetcher::fetch(range_list& list) {
  std::vector<range_list::entry>& wanted = list.entries();
  store_.sweep();
  // Workers have come for some already.
  std::erase_if(wanted, [this](const range_list::entry& one) { return store_.is_taken(one.row); });
  if (wanted.empty()) return list.clear();
  const auto [low, high] = std::minmax_element(wanted.begin(), wanted.end(),
                                               [](const auto& a, const auto& b) { return a.row < b.row; });
  first_row_ = low->row;
  rows_.assign(detail::to_size(high->row - first_row_ + 1), {});
  for (const auto& one : wanted) ++rows_[detail::to_size(one.row - first_row_)].left;
  plan(wanted);
  std::size_t requests = 0;
  for (const piece& one : pieces_) requests += requests_for(one, wanted[one.first]);
  queue_.make_room(requests);  // nothing throws from here on
  bool goes_on = true;
  for (const piece& one : pieces_) {
    if (goes_on) goes_on = fetch(one, wanted);
    if (!goes_on)  // publish what was claimed, without the rest
      for (std::size_t i = one.first; i != one.last; ++i) settle(wanted[i].row, nullptr);
  }
  queue_.start();
  list.clear();
}

// Counts off a range of a row, with its part of a read or without one; the last one publishes the row.
PENSTOCK_INLINE void fetcher::settle(std::uint64_t row, const fetched_part* part) {
  row_state& state = rows_[detail::to_size(row - first_row_)];
  if (part != nullptr) {
    if (!state.claimed && !state.dropped) (store_.claim(row) ? state.claimed : state.dropped) = true;
    if (state.dropped || !store_.add(row, *part)) store_.release(*part->from);
  }
  if (--state.left == 0 && state.claimed) store_.publish(row);
}

// Publishes the rows that hold a part of the oldest read and still wait for another part: otherwise that
// read would never be released while the fetcher waits for room. Their workers read the rest.
PENSTOCK_INLINE void fetcher::show_rows_of_oldest() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    row_state& state = rows_[i];
    if (state.left == 0 || !state.claimed || !store_.needs_oldest(first_row_ + i)) continue;
    store_.publish(first_row_ + i);
    state.claimed = false;
    state.dropped = true;
  }
}

PENSTOCK_INLINE bool fetcher::fetch(const piece& one, const std::vector<range_list::entry>& wanted) {
  const auto users = static_cast<std::uint32_t>(one.last - one.first);
  if (one.end - one.begin > store_.largest()) {  // a worker reads it
    for (std::size_t i = one.first; i != one.last; ++i) settle(wanted[i].row, nullptr);
    return true;
  }
  const range_list::entry& first = wanted[one.first];
  const std::uint32_t requests = requests_for(one, first);
  range_store::read* room = store_.reserve(one.end - one.begin, users, requests);
  while (room == nullptr) {
    queue_.start();
    show_rows_of_oldest();
    if (!store_.wait_for_room()) return false;
    store_.sweep();
    room = store_.reserve(one.end - one.begin, users, requests);
  }
  for (std::size_t i = one.first; i != one.last; ++i) {
    const range_list::entry& each = wanted[i];
    const fetched_part part{
        each.from.self(), each.offset, each.size, room->bytes + (each.offset - one.begin), room, each.object};
    settle(each.row, &part);
  }
  if (room->users.load(std::memory_order_acquire) == 1)  // every user has already passed
    store_.release(*room);
  else
    request(one, first, *room);
  return true;
}

// Long ranges are requested in parts of equal size.
PENSTOCK_INLINE std::uint32_t fetcher::requests_for(const piece& one,
                                                    const range_list::entry& first) const noexcept {
  const std::uint64_t part = options_.part_size;
  if (part == 0 || !first.from.traits().latency) return 1;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (one.end - one.begin + part - 1) / part));
}

PENSTOCK_INLINE void fetcher::request(const piece& one, const range_list::entry& first,
                                      range_store::read& room) noexcept {
  const std::uint64_t size = one.end - one.begin, requests = requests_for(one, first);
  store_.begin(requests);
  request_queue::target* const to = queue_.target_of(first.from);
  for (std::uint64_t i = 0; i < requests; ++i) {
    const std::uint64_t begin = size / requests * i,
                        end = i + 1 == requests ? size : size / requests * (i + 1);
    if (to == nullptr)  // workers read for themselves
      store_.end(room, false);
    else
      queue_.add(*to, first.object, one.begin + begin, {room.bytes + begin, detail::to_size(end - begin)},
                 room, one.row);
  }
}

PENSTOCK_INLINE void fetcher::end_reads() noexcept {
  queue_.cancel();
  store_.wait_for_reads();
}

}  // namespace penstock::inline v0_1
