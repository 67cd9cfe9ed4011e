// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/run/feed/front.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

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
    keep_marks(begin_at_, marks);
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
  template <class Ring, class Failed, class Waited>
  const std::vector<Item>* pull(std::uint64_t s, std::uint64_t epoch, std::uint64_t maximum, bool abandoned,
                                const Ring& r, std::uint64_t& count, bool& ended, Failed failed,
                                Waited waited, std::vector<std::uint64_t>* after = nullptr) noexcept {
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

}  // namespace penstock::inline v0_1
