// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/selection.hpp>

#include <atomic>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// The serial front of a source that can only be read forward: numbers its samples, and filters and reorders
/// them one by one where an indexed source uses arithmetic. Everything after it runs in parallel.
namespace penstock::inline v0_1 {

/// Takes the next of the numbers that a front saved.
[[nodiscard]] inline std::uint64_t take_mark(std::span<const std::uint64_t>& marks) {
  if (marks.empty()) throw error(errc::state, "the state has too few places of the source; it was edited");
  const std::uint64_t mark = marks.front();
  marks = marks.subspan(1);
  return mark;
}
/// Throws if a state has more of them than the fronts took.
inline void check_none_left(std::span<const std::uint64_t> marks) {
  if (!marks.empty()) throw error(errc::state, "the state has too many places of the source; it was edited");
}

/// A front that can save its place and return to it.
template <class T>
concept saving_front = requires(const T& front, std::vector<std::uint64_t>& marks) { front.save(marks); };
/// A reader that can report its place.
template <class T>
concept marking_reader = requires(const T& reader) { reader.mark(); };

/// Reads samples one after another. `rewind(epoch)` returns to the beginning; `next(item)` is false at the
/// end. `save(marks)` appends its place; `load(epoch, marks)` consumes as many marks and goes there. Fronts
/// around it show its reader, too.
template <class Reader, class Item>
class reader_front {
 public:
  explicit reader_front(Reader reader) : reader_(std::move(reader)) {}
  void rewind(std::uint64_t epoch) { reader_.rewind(epoch); }
  bool next(Item& item) { return reader_.next(item); }
  [[nodiscard]] const Reader& reader() const noexcept { return reader_; }
  void save(std::vector<std::uint64_t>& marks) const
    requires marking_reader<Reader>
  {
    const source_mark at = reader_.mark();
    marks.push_back(at.shard);
    marks.push_back(at.sample);
  }
  void load(std::uint64_t epoch, std::span<const std::uint64_t>& marks)
    requires marking_reader<Reader>
  {
    source_mark there;
    there.shard = take_mark(marks);
    there.sample = take_mark(marks);
    reader_.seek(epoch, there);
  }

 private:
  Reader reader_;
};

/// `take`, `skip` or `shard` on samples of a forward source: passes those that a selection accepts.
template <class Up, class Item>
class selected_front {
 public:
  selected_front(Up up, selection which) : up_(std::move(up)), which_(std::move(which)) {}
  void rewind(std::uint64_t epoch) {
    up_.rewind(epoch);
    number_ = 0;
  }
  [[nodiscard]] const auto& reader() const noexcept { return up_.reader(); }
  bool next(Item& item) {
    while (true) {
      const selection::verdict found = which_.look(number_);
      if (found == selection::verdict::end || !up_.next(item)) return false;
      const std::uint64_t number = number_++;
      if (found == selection::verdict::pass && which_.ours(number)) return true;
    }
  }

  void save(std::vector<std::uint64_t>& marks) const
    requires saving_front<Up>
  {
    up_.save(marks);
    marks.push_back(which_.mark_at(number_));
  }
  void load(std::uint64_t epoch, std::span<const std::uint64_t>& marks)
    requires saving_front<Up>
  {
    up_.load(epoch, marks);
    number_ = which_.number_at(take_mark(marks));
  }

 private:
  Up up_;
  selection which_;
  std::uint64_t number_ = 0;  // of the sample that `up_` gives next
};

/// `repeat` on samples of a forward source.
template <class Up, class Item>
class repeat_front {
 public:
  repeat_front(Up up, std::optional<std::uint64_t> times) : up_(std::move(up)), times_(times) {}
  void rewind(std::uint64_t epoch) {
    round_ = 0;
    first_ = times_ ? epoch * *times_ : 0;
    empty_ = true;
    if (more()) up_.rewind(first_);
  }
  [[nodiscard]] const auto& reader() const noexcept { return up_.reader(); }
  bool next(Item& item) {
    while (more()) {
      if (up_.next(item)) {
        empty_ = false;
        return true;
      }
      if (empty_) return false;  // repeating nothing, however often, gives nothing
      ++round_;
      empty_ = true;
      if (more()) up_.rewind(first_ + round_);
    }
    return false;
  }

  void save(std::vector<std::uint64_t>& marks) const
    requires saving_front<Up>
  {
    marks.push_back(round_);
    marks.push_back(empty_ ? 1 : 0);
    up_.save(marks);
  }
  void load(std::uint64_t epoch, std::span<const std::uint64_t>& marks)
    requires saving_front<Up>
  {
    first_ = times_ ? epoch * *times_ : 0;
    round_ = take_mark(marks);
    empty_ = take_mark(marks) != 0;
    up_.load(first_ + round_, marks);
  }

 private:
  [[nodiscard]] bool more() const { return !times_ || round_ < *times_; }

  Up up_;
  std::optional<std::uint64_t> times_;
  std::uint64_t round_ = 0, first_ = 0;
  bool empty_ = true;
};

/// `shuffle_buffer` over still encoded samples.
template <class Up, class Item>
class buffer_front {
 public:
  buffer_front(Up up, std::uint64_t capacity, std::uint64_t seed)
      : up_(std::move(up)), capacity_(capacity), seed_(seed) {}
  void rewind(std::uint64_t epoch) {
    up_.rewind(epoch);
    epoch_ = epoch;
    given_ = 0;
    size_ = 0;
    ended_ = false;
  }
  [[nodiscard]] const auto& reader() const noexcept { return up_.reader(); }
  bool next(Item& item) {
    while (!ended_ && size_ < capacity_) {
      if (size_ == held_.size()) held_.emplace_back();
      if (up_.next(held_[size_]))
        ++size_;
      else
        ended_ = true;
    }
    if (size_ == 0) return false;
    const auto drawn = detail::to_size(buffer_draw(seed_, epoch_, given_++, size_));
    std::swap(item, held_[drawn]);
    if (!ended_ && !up_.next(held_[drawn])) ended_ = true;
    if (ended_) std::swap(held_[drawn], held_[--size_]);
    return true;
  }

 private:
  Up up_;
  std::uint64_t capacity_, seed_, epoch_ = 0, given_ = 0;
  std::size_t size_ = 0;
  std::vector<Item> held_;
  bool ended_ = false;
};

namespace detail {

/// The place of the first `shuffle_buffer` among the places [I, End), or End.
template <std::size_t I, std::size_t End, class... Stages>
inline constexpr std::size_t mixed_at = [] {
  std::size_t place = 0, found = End;
  ((found = found == End && place >= I && place < End && part_of_kind<Stages, cursor_tag> ? place : found,
    ++place),
   ...);
  return found;
}();

/// How samples have been dealt to ranks so far: take and skip count over all ranks together.
struct dealt_among {
  world ranks;
  bool repeated = false;  // repeated since then: who has how many of each round is no longer known

  /// This rank's part of the samples that a stage keeps of all; updates the deal for what follows.
  [[nodiscard]] item_range share(item_range all) {
    if (repeated && ranks.size > 1)
      throw error(errc::argument,
                  "take and skip count over all ranks, which is impossible after shard, shuffle_buffer and "
                  "repeat; write repeat before shuffle_buffer");
    const item_range mine{share(all.first), share(all.end)};
    ranks.rank = (ranks.rank + ranks.size - all.first % ranks.size) % ranks.size;
    return mine;
  }

 private:
  /// How many of the first `count` samples belong to this rank.
  [[nodiscard]] std::uint64_t share(std::uint64_t count) const noexcept {
    return count > ranks.rank ? (count - ranks.rank - 1) / ranks.size + 1 : 0;
  }
};

/// The order stages, applied to samples. Those before a `shuffle_buffer` work for all ranks, and samples are
/// dealt as late as possible, so that each rank gets what arithmetic would give it.
template <class Item, std::size_t I, std::size_t End, class Up, class... Stages>
auto nest_front(Up up, const light_tuple<Stages...>& stages, dealt_among dealt = {}) {
  if constexpr (I == End) {
    return up;
  } else {
    const auto& stage = at<I>(stages);
    using type = std::remove_cvref_t<decltype(stage)>;
    if constexpr (part_of_kind<type, shard_tag>) {
      constexpr std::size_t mixes = mixed_at<I, End, Stages...>;
      auto counted = nest_front<Item, I + 1, mixes>(std::move(up), stages);
      selection mine;
      mine.deal(stage.share.rank, stage.share.size);
      return nest_front<Item, mixes, End>(selected_front<decltype(counted), Item>(std::move(counted), mine),
                                          stages, dealt_among{stage.share});
    } else if constexpr (part_of_kind<type, cursor_tag>) {
      return nest_front<Item, I + 1, End>(buffer_front<Up, Item>(std::move(up), stage.capacity, stage.seed),
                                          stages, dealt);
    } else if constexpr (repeating_stage<type>) {
      dealt.repeated = true;
      return nest_front<Item, I + 1, End>(repeat_front<Up, Item>(std::move(up), stage.times), stages, dealt);
    } else if constexpr (counting_stage<type>) {
      return nest_front<Item, I + 1, End>(
          selected_front<Up, Item>(std::move(up), selection(dealt.share(stage.kept()))), stages, dealt);
    } else {
      return nest_front<Item, I + 1, End>(std::move(up), stages, dealt);
    }
  }
}

}  // namespace detail

/// The serial front, shared by workers: each takes samples for its chunk when the chunk's turn comes, in the
/// order of chunks.
///
/// Tickets are issued in order, so the worker whose turn it is is running: no deadlock. Once the end is
/// known, chunks get nothing until another epoch is requested. The items of a chunk are kept with its place
/// in the ring and reused.
template <class Front, class Item>
class serial_front {
 public:
  serial_front(Front front, std::size_t blocks) : front_(std::move(front)), items_(blocks) {}

  /// Consumer, while no chunk is being worked on: the next chunk starts its epoch from the beginning, or at
  /// the place that a front's `save` recorded.
  void restart(std::span<const std::uint64_t> marks = {}) {
    begin_at_.assign(marks.begin(), marks.end());
    epoch_ = no_epoch;
  }
  /// Releases all waiters for good; the ring must have been stopped before.
  void stop() noexcept {
    next_chunk_.store(stop_mark, std::memory_order_seq_cst);
    next_chunk_.notify_all();
  }

  /// Takes up to `maximum` samples for chunk `s` of `epoch`. Returns the items and their number, or null if
  /// the run was stopped. `after` receives the front's place afterwards, if it can be resumed. `failed(n)` is
  /// called inside a handler when the source throws after n samples; `waited(ns)` reports how long the
  /// chunk's turn took to come.
  const std::vector<Item>* pull(std::uint64_t s, std::uint64_t epoch, std::uint64_t maximum, bool abandoned,
                                const auto& r, std::uint64_t& count, bool& ended, auto failed, auto waited,
                                std::vector<std::uint64_t>* after = nullptr) noexcept {
    const auto mine = static_cast<std::uint32_t>(s % stop_mark);
    const std::uint64_t begin = detail::now_ns();
    while (true) {
      const std::uint32_t seen = next_chunk_.load(std::memory_order_seq_cst);
      if (r.stopped_for_sure()) return nullptr;
      if (seen == mine) break;
      next_chunk_.wait(seen, std::memory_order_seq_cst);
    }
    waited(detail::now_ns() - begin);
    auto& items = items_[static_cast<std::size_t>(s % items_.size())];
    count = 0;
    if (!abandoned) {
      try {
        if (epoch_ != epoch) {
          go_to(epoch);
          epoch_ = epoch;
          ended_ = false;
        }
        if (items.size() < maximum) items.resize(detail::to_size(maximum));
        while (!ended_ && count < maximum && !r.stopped()) {
          if (front_.next(items[detail::to_size(count)]))
            ++count;
          else
            ended_ = true;
        }
        if constexpr (saves) {
          if (after != nullptr) {
            after->clear();
            front_.save(*after);
          }
        }
      } catch (...) {
        failed(count);
        ended_ = true;
      }
    }
    ended = ended_;
    next_chunk_.store(static_cast<std::uint32_t>((s + 1) % stop_mark), std::memory_order_seq_cst);
    if (r.stopped_for_sure()) next_chunk_.store(stop_mark, std::memory_order_seq_cst);
    next_chunk_.notify_all();
    return &items;
  }

  /// The reader of the source, which a worker may be using.
  [[nodiscard]] const auto& reader() const noexcept { return front_.reader(); }
  /// Whether the front can save its place.
  static constexpr bool saves = saving_front<Front>;

 private:
  void go_to(std::uint64_t epoch) {
    if constexpr (saves) {
      if (!begin_at_.empty()) {
        std::vector<std::uint64_t> marks;
        marks.swap(begin_at_);
        std::span<const std::uint64_t> rest(marks.data(), marks.size());
        front_.load(epoch, rest);
        return check_none_left(rest);
      }
    }
    front_.rewind(epoch);
  }

  static constexpr std::uint32_t stop_mark = 0xffffffffu;
  static constexpr std::uint64_t no_epoch = std::numeric_limits<std::uint64_t>::max();

  Front front_;
  std::vector<std::vector<Item>> items_;
  std::atomic<std::uint32_t> next_chunk_{0};
  std::vector<std::uint64_t> begin_at_;
  std::uint64_t epoch_ = no_epoch;
  bool ended_ = false;
};

/// The front of a plan over a forward-only source.
template <class Plan>
auto make_front(const Plan& p) {
  using reader = typename Plan::source_type::reader;
  using item = typename Plan::source_type::element;
  return detail::nest_front<item, 0, plan_parts<Plan>::first_orders_end>(
      reader_front<reader, item>(connect_source_of(p)), p.stages());
}

}  // namespace penstock::inline v0_1
