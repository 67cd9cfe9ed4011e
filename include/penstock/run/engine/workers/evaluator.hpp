// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/block/column.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// A worker's part of a block: evaluates positions and writes the results to rows of the block's columns.
///
/// `Plain` plans turn numbers into numbers. Their loops must vectorise, so checks are made not per sample but
/// once per run of samples that takes about 20 us (`Counts::run`). Other plans check the stop flag before
/// each sample. A failure is stored in the block, for the lowest row; nothing is thrown. `Bad` says what
/// becomes of bad samples. Only handlers look at it: if it tolerates some, the loop that a failure
/// interrupted resumes after the bad sample, which is recorded in the block.
template <class Chain, class Block, class Ring, bool Plain, bool Ordered = false, class Bad = bad_is_fatal>
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
    write(rows, batch, counts, last, times, [](std::uint64_t) {});
  }
  /// Evaluates all positions of a chunk, writing the results to its rows one after another.
  template <class Counts>
  void write_rows(Block& p, worker& w, Counts& counts, bool times) const noexcept {
    append_all(p, w, counts, times, [](std::uint64_t) {});
  }
  /// Evaluates a chunk of samples that a forward source produced.
  template <class Item, class Counts>
  void write_items(Block& p, worker& w, Counts& counts, const std::vector<Item>& items,
                   bool times) const noexcept {
    append_all(p, w, counts, times, [&root = detail::innermost(w), all = items.data()](std::uint64_t slot) {
      root.item = all + slot;
    });
  }

  /// Puts the columns of a batch in order; a failure is stored in it. If bad samples are tolerated, a sample
  /// whose shape does not match the lead counts as bad and leaves a hole; if they are replaced and there is
  /// a worker, a substitute takes its place. The lead is the first good sample, unless `find_lead` found one.
  static void finish_columns(Block& p, const batch_rows& batch) noexcept {
    if constexpr (Bad::tolerates) {
      finish_tolerantly(p, batch, [&](bad_slot& one) {
        p.columns.blank(detail::to_size(one.row));
        one.substitute.reset();
        one.hole = true;
      });
      return;
    }
    try {
      p.columns.finish(static_cast<std::size_t>(batch.first), static_cast<std::size_t>(batch.slots),
                       static_cast<std::size_t>(batch.valid));
    } catch (const slot_error& e) {
      slot_error found = e;
      p.columns.choose_lead(static_cast<std::size_t>(batch.valid));  // the first one may be the odd one out
      try {
        p.columns.finish(static_cast<std::size_t>(batch.first), static_cast<std::size_t>(batch.slots),
                         static_cast<std::size_t>(batch.valid), true);
      } catch (const slot_error& better) {
        found = better;
      } catch (...) {  // out of memory: keep the first one
      }
      try {
        throw std::move(found.what);
      } catch (...) {
        p.fail_at(found.slot, {p.epoch, p.index(found.slot)}, {});
      }
    } catch (...) {
      p.fail(batch.first, std::current_exception());
    }
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
  void finish_columns(Block& p, const batch_rows& batch, worker& w) const noexcept {
    if constexpr (Bad::replaces)
      finish_tolerantly(p, batch, [&](bad_slot& one) { find_substitute(one, in_place{p, w, one.row}); });
    else
      finish_columns(p, batch);
  }

  /// The name of the stage whose function threw last; forgets it.
  [[nodiscard]] std::string_view failed_stage(worker& w) const noexcept {
    const std::uint32_t number = std::exchange(detail::root_of(w).failed, detail::worker_root::no_stage);
    return stages_ != nullptr && number < stages_->size() ? std::string_view((*stages_)[number])
                                                          : std::string_view();
  }

 private:
  /// Rows for samples whose rows are known: each goes to the row of its slot.
  struct in_place {
    static constexpr bool makes_holes = true, one_each = true;
    Block& p;
    worker& w;
    std::uint64_t slot;

    template <class V>
    void operator()(V&& value) const {
      p.columns.write(static_cast<std::size_t>(slot), std::forward<V>(value));
    }
    [[nodiscard]] std::uint64_t row() const noexcept { return slot; }
    void take_back() const noexcept { p.columns.unwrite(static_cast<std::size_t>(slot)); }
    void leave_empty() const { p.columns.blank(static_cast<std::size_t>(slot)); }

    /// The state of a loop over many slots, to be kept in registers.
    struct writer {
      decltype(Block::columns)& columns;
      template <class V>
      void write(std::uint64_t to, V&& value) const {
        columns.write(detail::to_size(to), std::forward<V>(value));
      }
    };
    [[nodiscard]] writer begin() const noexcept { return {p.columns}; }
    void end(const writer&, std::uint64_t reached) noexcept { slot = reached; }
  };
  /// The only row of columns that are no part of a block.
  template <class Columns>
  struct beside_blocks {
    Columns& columns;
    worker& w;

    template <class V>
    void operator()(V&& value) const {
      columns.write(0, std::forward<V>(value));
    }
    void take_back() const noexcept { columns.unwrite(0); }
  };
  /// Evaluates the sample at a position, or its substitute; false if it is bad and that is tolerated.
  template <class Orders, class Columns>
  bool evaluate_aside(position at, worker& w, const Orders& orders, Columns& aside) const {
    aside.begin(1);
    const beside_blocks<Columns> row{aside, w};
    try {
      detail::innermost(w).stand_at(orders.sample_at(at));
      chain_.evaluate(at, w, row, looked_up{});
      aside.finish(0, 1, 1);
      return aside.can_lead(0);
    } catch (const slot_error& e) {
      if constexpr (Bad::tolerates) return false;
      throw error(e.what).add_context(at);
    } catch (error& e) {
      e.add_context(at);
      (void)failed_stage(w);
      if constexpr (Bad::tolerates) {
        if (!depends_on_bytes(e.code())) throw;
        if constexpr (Bad::replaces) {
          bad_slot one{0, at, e};
          find_substitute(one, row);
          return aside.can_lead(0);
        } else {
          return false;
        }
      }
      throw;
    }
  }
  /// Rows appended one after another, as many as each sample makes; grows where it made several.
  struct appended {
    static constexpr bool makes_holes = false, one_each = !Chain::has_pieces;
    Block& p;
    worker& w;
    std::uint64_t slot, count, room;

    template <class V>
    void operator()(V&& value) {
      if (count == room) grow();
      begin_at(count).write(slot, std::forward<V>(value));
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

    /// Like the above; where each sample makes at most one row, there is always room.
    struct writer {
      decltype(Block::columns)& columns;
      std::uint32_t* const sources;
      std::uint64_t count;
      template <class V>
      void write(std::uint64_t of_slot, V&& value) {
        columns.write(detail::to_size(count), std::forward<V>(value));
        sources[count] = static_cast<std::uint32_t>(of_slot);
        ++count;
      }
    };
    [[nodiscard]] writer begin() const noexcept { return begin_at(count); }
    [[nodiscard]] writer begin_at(std::uint64_t row) const noexcept {
      return {p.columns, p.sources.data(), row};
    }
    void end(const writer& done, std::uint64_t reached) noexcept {
      count = done.count;
      slot = reached;
    }
  };

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
      detail::innermost(rows.w).stand_at(bad_.orders->sample_at(drawn));
      try {
        chain_.evaluate(one.at, rows.w, rows, looked_up{});
        one.substitute = drawn;
      } catch (const error& e) {
        (void)failed_stage(rows.w);
        if (!depends_on_bytes(e.code())) throw;
      }
    } while (!one.substitute);
  }

  /// `settle(bad_slot&)` makes a hole or finds a substitute for a slot whose shape does not match the others.
  template <class Settle>
  static void finish_tolerantly(Block& p, const batch_rows& batch, Settle settle) noexcept {
    while (true) {
      try {
        p.columns.finish(static_cast<std::size_t>(batch.first), static_cast<std::size_t>(batch.slots),
                         static_cast<std::size_t>(batch.valid), !p.bad.empty());
        return;
      } catch (slot_error& e) {
        try {
          position at{p.epoch, p.index(e.slot)};
          std::span<const position> origins(&at, 1);
          if (p.from_batches) origins = p.gathered.of(detail::to_size(e.slot));
          at = origins.front();
          e.what.add_context(at);
          if (bad_slot* const known = p.bad.find_replaced(e.slot)) {
            settle(*known);
          } else {
            bad_slot one{e.slot, at, e.what};
            settle(one);
            p.note_bad(one);
            one.hole = false;  // the row is a single hole, and all samples combined into it are lost
            for (std::size_t i = 1; i < origins.size(); ++i) {
              one.at = origins[i];
              p.note_bad(one);
            }
          }
        } catch (...) {
          return p.fail_at(e.slot, {p.epoch, p.index(e.slot)}, {});
        }
      } catch (...) {
        return p.fail(batch.first, std::current_exception());
      }
    }
  }

  /// Evaluates a whole chunk; `bring(slot)` puts the sample of a slot where the chain expects it.
  template <class Counts, class Bring>
  void append_all(Block& p, worker& w, Counts& counts, bool times, Bring bring) const noexcept {
    // room for a row per slot; the vector keeps its capacity
    appended rows{p, w, 0, 0, std::min<std::uint64_t>(p.slots, p.sources.size())};
    write(rows, p.batches[0], counts, p.batches[0].valid, times, bring);
    p.rows = rows.count;
  }

  /// Evaluates the slots up to `last` of a part into `rows`, which stands at the first of them; `bring` as
  /// above. With `times`, the first one is timed.
  template <class Rows, class Counts, class Bring>
  void write(Rows& rows, const batch_rows& batch, Counts& counts, std::uint64_t last, bool times,
             Bring bring) const noexcept {
    Block& p = rows.p;
    const auto index_of = [&](std::uint64_t slot) {
      return p.listed ? p.indices[detail::to_size(slot)] : batch.view[slot - batch.first];
    };
    const auto one = [&](auto timing) {
      const std::uint64_t index = index_of(rows.slot);
      bring(rows.slot);
      if constexpr (at_rows) detail::innermost(rows.w).fetched.stand_at(p.run_row + rows.slot);
      counts.begin_run(index, 1);
      chain_.evaluate({p.epoch, index}, rows.w, rows, timing);
      ++rows.slot;
    };
    [[maybe_unused]] const auto look_up = [&]() -> std::uint64_t {
      if constexpr (looks_up)
        return chain_.look_up(rows.slot, std::min<std::uint64_t>(last - rows.slot, 64), rows.w, index_of);
      else
        return 0;
    };
    bool again = false;
    do {
      try {
        if (times && rows.slot < last && !write_sequence(rows, batch, counts, last, timed{})) {
          if constexpr (looks_up) look_up();  // so that the one timed finds what the others find
          one(timed{});
        }
        while (rows.slot < last && !ring_.stopped()) {
          if constexpr (Plain && Rows::one_each) {
            const std::uint64_t count = std::min(last - rows.slot, counts.run);
            counts.begin_run(index_of(rows.slot), count);
            write_plain(rows, batch, rows.slot + count, bring);
          } else if constexpr (looks_up) {
            if (write_sequence(rows, batch, counts, last, untimed{})) continue;
            const std::uint64_t found = look_up();
            if (write_looked_up(rows, counts, index_of(rows.slot), found)) continue;
            const std::uint64_t end = rows.slot + found;
            while (rows.slot < end && !ring_.stopped()) one(looked_up_in_order{});
          } else {
            one(untimed{});
          }
        }
        counts.end_run();
        again = false;
      } catch (...) {
        counts.end_run();
        again = go_on_without({p.epoch, index_of(rows.slot)}, rows);
        ++rows.slot;
        times = false;
      }
    } while (Bad::tolerates && again);
  }

  /// Where a position is its sample, evaluates as many as possible of those up to `last` at once. Returns
  /// whether there were any.
  template <class Rows, class Counts, class Timing>
  bool write_sequence(Rows& rows, const batch_rows& batch, Counts& counts, std::uint64_t last,
                      Timing timing) const {
    if constexpr (!Ordered && writes_runs<Rows>) {
      if (rows.p.listed || !batch.view.contiguous()) return false;
      const std::uint64_t index = batch.view[rows.slot - batch.first];
      return write_contiguous(rows, counts, index, {rows.p.epoch, index}, last - rows.slot, timing);
    } else {
      return false;
    }
  }
  /// Evaluates the n samples that were looked up at once, if they lie one behind the other.
  template <class Rows, class Counts>
  bool write_looked_up(Rows& rows, Counts& counts, std::uint64_t index, std::uint64_t n) const {
    if constexpr (writes_runs<Rows>) {
      const auto& found = detail::innermost(rows.w);
      return found.in_sequence(n) && write_contiguous(rows, counts, index, found.places[0], n, untimed{});
    } else {
      return false;
    }
  }
  template <class Rows, class Counts, class Timing>
  bool write_contiguous(Rows& rows, Counts& counts, std::uint64_t index, position first, std::uint64_t n,
                        Timing timing) const {
    counts.begin_run(index, n);
    const std::uint64_t taken = chain_.evaluate_run(
        first, n, rows.w,
        [&](const auto& values, std::uint64_t count) {
          if constexpr (requires { rows.p.columns.write_contiguous(std::size_t{}, std::size_t{}, values); }) {
            rows.p.columns.write_contiguous(detail::to_size(rows.slot), detail::to_size(count), values);
            return true;
          } else {
            return false;
          }
        },
        timing);
    rows.slot += taken;
    return taken != 0;
  }

  /// The loop of `write` in registers, for at most one row per sample; `rows` follows it if something throws.
  template <class Rows, class Bring>
  void write_plain(Rows& rows, const batch_rows& batch, std::uint64_t last, Bring bring) const {
    Block& p = rows.p;
    worker& w = rows.w;
    const step_view view = batch.view;
    const std::uint64_t epoch = p.epoch, base = batch.first;
    auto into = rows.begin();
    std::uint64_t at = rows.slot;
    const auto loop = [&](auto index_of) {
      const auto evaluate_until = [&](std::uint64_t end, auto timing) {
        for (; at < end; ++at) {
          bring(at);
          chain_.evaluate(
              {epoch, index_of(at)}, w,
              [&into, at]<class V>(V&& value) { into.write(at, std::forward<V>(value)); }, timing);
        }
      };
      if constexpr (Ordered) {
        while (at < last) {
          const std::uint64_t n = chain_.look_up(at, std::min<std::uint64_t>(last - at, 64), w, index_of);
          evaluate_until(at + n, looked_up{});
        }
      } else {
        evaluate_until(last, untimed{});
      }
    };
    try {
      if (p.listed)
        loop([indices = p.indices.data()](std::uint64_t slot) { return indices[slot]; });
      else if (view.contiguous())
        loop([shift = view[0] - base](std::uint64_t slot) { return slot + shift; });
      else
        loop([&view, base](std::uint64_t slot) { return view[slot - base]; });
    } catch (...) {
      rows.end(into, at);
      throw;
    }
    rows.end(into, at);
  }

  /// Whether many rows may be written at once: each one has its slot.
  template <class Rows>
  static constexpr bool writes_runs = Chain::has_runs && std::is_same_v<Rows, in_place>;
  /// Whether a worker looks up several samples before it evaluates them one by one.
  static constexpr bool looks_up = ((Ordered && Chain::wants_look_up) || Chain::has_runs) && !Plain;
  static constexpr bool at_rows =
      detail::stands_at_rows<std::remove_reference_t<decltype(detail::innermost(std::declval<worker&>()))>>;

  Chain chain_;
  const Ring& ring_;
  [[no_unique_address]] Bad bad_;
  const std::vector<std::string>* stages_;
};

}  // namespace penstock::inline v0_1
