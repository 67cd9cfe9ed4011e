// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/next_samples.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/block/column.hpp>
#include <penstock/run/block/finish_columns.hpp>
#include <penstock/run/engine/workers/written_rows.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// A worker's part of a block: evaluates positions and writes the results to rows of the block's columns.
///
/// `Plain` plans turn numbers into numbers: whether the run was stopped is looked at once per 64 samples.
/// Other plans look before each sample. A failure is stored in the block, for the lowest row; nothing is
/// thrown. `Bad` says what becomes of bad samples. Only handlers look at it: if it tolerates some, the loop
/// that a failure interrupted resumes after the bad sample, which is recorded in the block.
template <class Chain, class Block, class Ring, bool Plain, class Bad = bad_is_fatal>
class evaluator {
 public:
  using worker = typename Chain::worker;

  /// `stages`: names of the source and the value stages, for errors; they outlive this.
  evaluator(Chain chain, const Ring& stop, Bad bad = {}, const std::vector<std::string>* stages = nullptr)
      : chain_(std::move(chain)), ring_(stop), bad_(bad), stages_(stages) {}

  [[nodiscard]] const Chain& chain() const noexcept { return chain_; }

  /// Evaluates the rows [first, last) of a batch, each in its place. With `times`, the first one is timed.
  template <class Counts>
  void write_slots(Block& p, const batch_rows& batch, worker& w, Counts& counts, std::uint64_t first,
                   std::uint64_t last, bool times) const noexcept {
    in_place rows{p, w, first};
    write(rows, batch, counts, last, times,
          [&p](std::uint64_t index, std::uint64_t) { return p.binding(index); });
  }
  /// Evaluates all positions of a chunk, writing the results to its rows one after another.
  template <class Counts>
  void write_rows(Block& p, worker& w, Counts& counts, bool times) const noexcept {
    append_all(p, w, counts, times, [&p](std::uint64_t index, std::uint64_t) { return p.binding(index); });
  }
  /// Evaluates a chunk of samples that a forward source produced.
  template <class Item, class Counts>
  void write_items(Block& p, worker& w, Counts& counts, const std::vector<Item>& items,
                   bool times) const noexcept {
    detail::innermost(w).items = items.data();
    append_all(p, w, counts, times, [](std::uint64_t, std::uint64_t slot) { return position{0, slot}; });
  }

  /// Puts the columns of a batch in order, like the function of that name; if bad samples are replaced, a
  /// substitute takes the place of a sample whose shape does not match.
  void finish_columns(Block& p, const batch_rows& batch, worker& w) const noexcept {
    if constexpr (Bad::replaces)
      detail::finish_tolerantly(p, batch, [&](bad_slot& one) {
        find_substitute(one, in_place{p, w, one.row});
      });
    else
      penstock::finish_columns<Bad>(p, batch);
  }
  /// Before `finish_columns`: gives the columns the shape of the first good sample of the global step by
  /// position, the same on every rank; none if no sample is good. One of another rank is evaluated into
  /// `aside`, columns for one row. Throws if that fails and is not tolerated.
  template <class Orders, class Columns>
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

  /// The name of the stage whose function threw last; forgets it.
  [[nodiscard]] std::string_view failed_stage(worker& w) const noexcept {
    const std::uint32_t number = std::exchange(detail::root_of(w).failed, detail::worker_root::no_stage);
    return stages_ != nullptr && number < stages_->size() ? std::string_view((*stages_)[number])
                                                          : std::string_view();
  }

 private:
  using in_place = rows_in_place<Block, worker>;
  using appended = rows_appended<Block, worker, Chain::has_pieces>;

  /// Evaluates a whole chunk.
  template <class Counts, class SourceOf>
  void append_all(Block& p, worker& w, Counts& counts, bool times, SourceOf source_of) const noexcept {
    // room for a row per slot; the vector keeps its capacity
    appended rows{p, w, 0, 0, std::min<std::uint64_t>(p.slots, p.sources.size())};
    write(rows, p.batches[0], counts, p.batches[0].valid, times, source_of);
    p.rows = rows.count;
  }

  /// Evaluates the slots up to `last` of a part into `rows`, which stands at the first of them.
  /// `source_of(index, slot)` gives a sample's position in the source. With `times`, the first one is timed.
  template <class Rows, class Counts, class SourceOf>
  void write(Rows& rows, const batch_rows& batch, Counts& counts, std::uint64_t last, bool times,
             SourceOf source_of) const noexcept {
    const auto index_of = [&p = rows.p, &batch](std::uint64_t slot) {
      return p.listed ? p.indices[detail::to_size(slot)] : batch.view[slot - batch.first];
    };
    next_samples coming;
    bool again = false;
    do {
      try {
        while (rows.slot < last && !ring_.stopped()) {
          const std::size_t n = coming.find(rows.p.epoch, rows.slot, last - rows.slot, index_of, source_of);
          detail::innermost(chain_).look_ahead(coming.sources(n), detail::innermost(rows.w));
          if (write_at_once(rows, counts, coming, n, times)) continue;
          if (times) write_each(rows, counts, coming, 0, 1, timed{});
          write_each(rows, counts, coming, times ? 1 : 0, n, untimed{});
          times = false;
        }
        counts.end_run();
        again = false;
      } catch (...) {
        counts.end_run();
        again = go_on_without({rows.p.epoch, index_of(rows.slot)}, rows);
        ++rows.slot;
        times = false;
      }
    } while (Bad::tolerates && again);
  }
  template <class Rows, class Counts, class Timing>
  void write_each(Rows& rows, Counts& counts, const next_samples& coming, std::size_t i, std::size_t end,
                  Timing timing) const {
    const auto& source = detail::innermost(chain_);
    auto& at_source = detail::innermost(rows.w);
    detail::in_registers<Rows> into{rows};
    if constexpr (Plain) counts.begin_run(coming.index(i), end - i);
    for (; i < end; ++i, ++into.own.slot) {
      source.turn_of(coming.sources(end), i, at_source);
      if constexpr (!Plain) {
        if (ring_.stopped()) return;
        counts.begin_run(coming.index(i), 1);
        source.stand_at(rows.p.run_row + into.own.slot, at_source);
      }
      chain_.evaluate(coming[i], rows.w, into.own, timing);
    }
  }
  /// Evaluates as many samples as possible at once, if all lie one behind the other. Returns whether there
  /// were any.
  template <class Rows, class Counts>
  bool write_at_once(Rows& rows, Counts& counts, const next_samples& coming, std::size_t n,
                     bool& times) const {
    if constexpr (Chain::has_runs && Rows::makes_holes) {
      if (!coming.in_sequence(n)) return false;
      counts.begin_run(coming.index(0), n);
      const auto write_values = [&](const auto& values, std::uint64_t count) {
        if constexpr (requires { rows.p.columns.write_contiguous(std::size_t{}, std::size_t{}, values); }) {
          rows.p.columns.write_contiguous(detail::to_size(rows.slot), detail::to_size(count), values);
          return true;
        } else {
          return false;
        }
      };
      const position first = coming[0].source;
      const std::uint64_t taken = times ? chain_.evaluate_run(first, n, rows.w, write_values, timed{})
                                        : chain_.evaluate_run(first, n, rows.w, write_values, untimed{});
      rows.slot += taken;
      times = times && taken == 0;
      return taken != 0;
    }
    return false;
  }

  /// In a handler: whether the failure is a bad sample that the run tolerates; if so records it, otherwise
  /// records the failure.
  template <class Rows>
  bool go_on_without(position at, Rows& rows) const noexcept {
    const std::string_view stage = failed_stage(rows.w);
    if constexpr (Bad::tolerates) {
      try {
        try {
          throw;
        } catch (error& e) {
          if (!depends_on_bytes(e.code())) throw;
          e.add_context(at);
          rows.take_back();
          bad_slot one{rows.row(), at, e};
          if constexpr (Bad::replaces) {
            find_substitute(one, rows);
          } else if constexpr (Rows::makes_holes) {
            rows.leave_empty();
            one.hole = true;
          }
          rows.p.note_bad(one);
          return true;
        }
      } catch (...) {
        rows.p.fail_at(rows.row(), at, stage);
      }
    } else {
      rows.p.fail_at(rows.row(), at, stage);
    }
    return false;
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

  Chain chain_;
  const Ring& ring_;
  [[no_unique_address]] Bad bad_;
  const std::vector<std::string>* stages_;
};

}  // namespace penstock::inline v0_1
