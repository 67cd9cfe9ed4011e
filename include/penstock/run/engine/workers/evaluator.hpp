// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/next_samples.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/block/finish_columns.hpp>
#include <penstock/run/engine/workers/lone_samples.hpp>

#include <span>

namespace penstock::inline v0_1 {

/// A worker's part of a block: evaluates positions and writes the results to rows of the block's columns.
///
/// `Plain` plans turn numbers into numbers: their loop must vectorise, so it looks only once per about
/// 20 us whether the run was stopped. Other plans look before each sample. `Ordered`: there is arithmetic
/// between a position and its sample. A failure is stored in the block, for the lowest row; nothing is
/// thrown. `Bad` says what becomes of bad samples. Only handlers look at it: if it tolerates some, the loop
/// that a failure interrupted resumes after the bad sample, which is recorded in the block.
template <class Chain, class Block, class Ring, bool Plain, bool Ordered = true, class Bad = bad_is_fatal>
class evaluator : public lone_samples<Chain, Bad> {
  using lone = lone_samples<Chain, Bad>;
  using lone::chain_;

 public:
  using worker = typename Chain::worker;

  /// `stages`: names of the source and the value stages, for errors; they outlive this.
  evaluator(Chain chain, const Ring& stop, Bad bad = {}, const std::vector<std::string>* stages = nullptr)
      : lone(std::move(chain), bad, stages), ring_(stop) {}

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
        this->find_substitute(one, in_place{p, w, one.row});
      });
    else
      penstock::finish_columns<Bad>(p, batch);
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
    bool again = false;
    do {
      try {
        if (!Plain || rows.p.listed || !batch.view.contiguous())
          write_runs(rows, counts, last, times, index_of, source_of);
        else
          write_runs(
              rows, counts, last, times,
              [shift = batch.view.base() - batch.first](std::uint64_t slot) { return slot + shift; },
              source_of);
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
  template <class Rows, class Counts, class IndexOf, class SourceOf>
  void write_runs(Rows& rows, Counts& counts, std::uint64_t last, bool& times, IndexOf index_of,
                  SourceOf source_of) const {
    [[maybe_unused]] next_samples coming;
    while (rows.slot < last && !ring_.stopped()) {
      const std::uint64_t slot = rows.slot, left = std::min(last - slot, Plain ? counts.run : last - slot);
      if constexpr (Plain && !Ordered) {
        write_run(rows, counts, left, times, index_of, std::span<const position, 0>{},
                  [=](std::uint64_t i) { return source_of(index_of(slot + i), slot + i); });
      } else {
        const std::size_t n =
            coming.find(left, [&](std::size_t i) { return source_of(index_of(slot + i), slot + i); });
        detail::innermost(chain_).look_ahead(coming.first(n), detail::innermost(rows.w));
        if (!write_at_once(rows, counts, index_of(slot), coming, n, times))
          write_run(rows, counts, n, times, index_of, coming.first(n),
                    [&coming](std::uint64_t i) { return coming[i]; });
      }
    }
  }
  /// Evaluates n samples; the positions in the source of those that are prefetched are `ahead`.
  template <class Rows, class Counts, class IndexOf, class Ahead, class SourceAt>
  void write_run(Rows& rows, Counts& counts, std::uint64_t n, bool& times, IndexOf index_of, Ahead ahead,
                 SourceAt source_at) const {
    const std::uint64_t first = rows.slot;
    const auto at = [=](std::uint64_t slot) { return source_at(slot - first); };
    if constexpr (Plain) counts.begin_run(index_of(first), n);
    if (std::exchange(times, false)) write_each(rows, counts, first, first + 1, index_of, ahead, at, timed{});
    write_each(rows, counts, first, first + n, index_of, ahead, at, untimed{});
  }
  // Not inlined: the loop has all registers for itself.
  template <class Rows, class Counts, class IndexOf, class Ahead, class SourceAt, class Timing>
  [[gnu::noinline]] void write_each(Rows& rows, Counts& counts, std::uint64_t first, std::uint64_t end,
                                    IndexOf index_of, Ahead ahead, SourceAt source_at, Timing timing) const {
    const auto& source = detail::innermost(chain_);
    auto& at_source = detail::innermost(rows.w);
    const std::uint64_t epoch = rows.p.epoch;
    detail::in_registers<Rows> into{rows};
    for (; into.own.slot < end; ++into.own.slot) {
      const std::uint64_t slot = into.own.slot, index = index_of(slot);
      source.turn_of(ahead, detail::to_size(slot - first), at_source);
      source.stand_at(rows.p.run_row + slot, at_source);
      if constexpr (!Plain) {
        if (ring_.stopped()) return;
        counts.begin_run(index, 1);
      }
      chain_.evaluate({{epoch, index}, source_at(slot)}, rows.w, into.own, timing);
    }
  }
  /// Evaluates as many samples as possible at once, if all lie one behind the other. Returns whether there
  /// were any.
  template <class Rows, class Counts>
  bool write_at_once(Rows& rows, Counts& counts, std::uint64_t index, const next_samples& coming,
                     std::size_t n, bool& times) const {
    if constexpr (Chain::has_runs && Rows::makes_holes) {
      if (!coming.in_sequence(n)) return false;
      counts.begin_run(index, n);
      const auto write_values = [&](const auto& values, std::uint64_t count) {
        if constexpr (requires { rows.p.columns.write_contiguous(std::size_t{}, std::size_t{}, values); }) {
          rows.p.columns.write_contiguous(detail::to_size(rows.slot), detail::to_size(count), values);
          return true;
        } else {
          return false;
        }
      };
      const position first = coming[0];
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
    const std::string_view stage = this->failed_stage(rows.w);
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
            this->find_substitute(one, rows);
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
  const Ring& ring_;
};

}  // namespace penstock::inline v0_1
