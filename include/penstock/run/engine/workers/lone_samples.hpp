// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/block/column.hpp>
#include <penstock/run/feed/placement.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Rows for samples whose rows are known: each goes to the row of its slot.
template <class Block, class Worker>
struct rows_in_place {
  static constexpr bool makes_holes = true;
  Block& p;
  Worker& w;
  std::uint64_t slot;

  template <class V>
  void operator()(V&& value) const {
    p.columns.write(detail::to_size(slot), std::forward<V>(value));
  }
  [[nodiscard]] std::uint64_t row() const noexcept { return slot; }
  void take_back() const noexcept { p.columns.unwrite(detail::to_size(slot)); }
  void leave_empty() const { p.columns.blank(detail::to_size(slot)); }
  void go_on_from(const rows_in_place& other) noexcept { slot = other.slot; }
};
/// Rows appended one after another, as many as each sample makes; grows where it made several.
template <class Block, class Worker, bool Several>
struct rows_appended {
  static constexpr bool makes_holes = false;
  Block& p;
  Worker& w;
  std::uint64_t slot = 0, count = 0, room;

  template <class V>
  void operator()(V&& value) {
    if (Several && count == room) grow();
    p.columns.write(detail::to_size(count), std::forward<V>(value));
    p.sources[detail::to_size(count)] = static_cast<std::uint32_t>(slot);
    ++count;
  }
  void grow() {
    room = std::max<std::uint64_t>(16, room * 2);
    p.columns.grow(detail::to_size(room), detail::to_size(count));
    p.sources.resize(detail::to_size(room));
  }
  [[nodiscard]] std::uint64_t row() const noexcept { return count; }
  void take_back() noexcept {
    for (; count != 0 && p.sources[detail::to_size(count - 1)] == slot; --count)
      p.columns.unwrite(detail::to_size(count - 1));
  }
  void go_on_from(const rows_appended& other) noexcept {
    slot = other.slot, count = other.count, room = other.room;
  }
};
/// The only row of columns that are no part of a block.
template <class Columns, class Worker>
struct row_beside_blocks {
  Columns& columns;
  Worker& w;

  template <class V>
  void operator()(V&& value) const {
    columns.write(0, std::forward<V>(value));
  }
  void take_back() const noexcept { columns.unwrite(0); }
};

namespace detail {

/// A loop's own copy of rows, whose state the compiler keeps in registers; they follow it, also if it throws.
template <class Rows>
struct in_registers {
  Rows& rows;
  Rows own = rows;
  ~in_registers() { rows.go_on_from(own); }
};

}  // namespace detail
/// Evaluates single samples out of their turn: a substitute for a bad one, and one of another rank that has
/// the shape that a batch is to have.
template <class Chain, class Bad>
class lone_samples {
 public:
  using worker = typename Chain::worker;

  /// `stages`: names of the source and the value stages, for errors; they outlive this.
  lone_samples(Chain chain, Bad bad, const std::vector<std::string>* stages)
      : chain_(std::move(chain)), bad_(bad), stages_(stages) {}

  [[nodiscard]] const Chain& chain() const noexcept { return chain_; }

  /// The name of the stage whose function threw last; forgets it.
  [[nodiscard]] std::string_view failed_stage(worker& w) const noexcept {
    const std::uint32_t number = std::exchange(detail::root_of(w).failed, detail::worker_root::no_stage);
    return stages_ != nullptr && number < stages_->size() ? std::string_view((*stages_)[number])
                                                          : std::string_view();
  }
  /// Evaluates substitutes in place of a bad sample until one is good.
  template <class Rows>
  void find_substitute(bad_slot& one, Rows&& rows) const {
    const detail::out_of_turn alone(detail::innermost(rows.w));
    one.substitute.reset();
    do {
      rows.take_back();
      if (one.tries == Bad::max_tries)
        throw detail::error_like(
            one.what, {"bad_samples::replace: ", one.tries,
                       " samples were drawn in place of a bad one, and all are bad; the first is: ",
                       one.what.message()});
      if (bad_.orders->size() < 2)
        throw detail::error_like(
            one.what,
            {"bad_samples::replace: an epoch of one sample has no other to take: ", one.what.message()});
      const position drawn = bad_.draw(one.at, one.tries++);
      try {
        chain_.evaluate({one.at, bad_.orders->sample_at(drawn)}, rows.w, rows, untimed{});
        one.substitute = drawn;
      } catch (const error& e) {
        (void)failed_stage(rows.w);
        if (!depends_on_bytes(e.code())) throw;
      }
    } while (!one.substitute);
  }
  /// Before `finish_columns`: gives the columns the shape of the first good sample of the global step by
  /// position, the same on every rank; none if no sample is good. One of another rank is evaluated into
  /// `aside`, columns for one row. Throws if that fails and is not tolerated.
  template <class Block, class Orders, class Columns>
  void find_lead(Block& p, const batch_rows& batch, worker& w, const Orders& orders, Columns& aside,
                 std::uint64_t& index) const {
    for (lead_candidates all(p, orders.size()); all.next(index);) {
      const auto row = detail::to_size(batch.first + p.row_of(batch, index));
      if (row != batch.first + batch.valid) {
        if (p.bad.holes(row, 1) == 0 && p.columns.can_lead(row))
          return p.columns.lead(p.columns.shapes_at(row));
      } else if (evaluate_aside({p.epoch, index}, w, orders, aside)) {
        return p.columns.lead(aside.shapes_at(0));
      }
    }
  }

 protected:
  Chain chain_;

 private:
  /// Evaluates the sample at a position, or its substitute; false if it is bad and that is tolerated.
  template <class Orders, class Columns>
  bool evaluate_aside(position at, worker& w, const Orders& orders, Columns& aside) const {
    const detail::out_of_turn alone(detail::innermost(w));
    aside.begin(1);
    const row_beside_blocks<Columns, worker> row{aside, w};
    try {
      chain_.evaluate({at, orders.sample_at(at)}, w, row, untimed{});
      aside.finish(0, 1, 1);
      return aside.can_lead(0);
    } catch (const slot_error& e) {
      if constexpr (Bad::tolerates) return false;
      throw error(e.what).add_context(at);
    } catch (error& e) {
      e.add_context(at);
      (void)failed_stage(w);
      if (!Bad::tolerates || !depends_on_bytes(e.code())) throw;
      if constexpr (Bad::replaces) {
        bad_slot one{0, at, e};
        find_substitute(one, row);
        return aside.can_lead(0);
      }
      return false;
    }
  }

  [[no_unique_address]] Bad bad_;
  const std::vector<std::string>* stages_;
};

}  // namespace penstock::inline v0_1
