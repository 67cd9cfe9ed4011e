// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/block/column.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// What a worker does with a piece of a block: evaluates positions and writes what comes out to rows of the
/// block's columns.
///
/// `Light` plans make numbers of numbers: their loops shall vectorise, so nothing is looked at per sample but
/// once in a run of samples that takes some 20 us (`Counts::run`). In the others the stop flag is looked at
/// before each sample. A failure is kept in the block, for the lowest row; nothing is thrown.
/// `Bad` says what becomes of bad samples. Only handlers look at it: where it tolerates some, the loop that a
/// failure has left is entered again behind the bad sample, which is noted in the block.
template <class Chain, class Block, class Ring, bool Light, bool Ordered = false, class Bad = bad_is_fatal>
class evaluator {
 public:
  using worker = typename Chain::worker;

  evaluator(Chain chain, const Ring& stop, Bad bad = {}) : chain_(std::move(chain)), ring_(stop), bad_(bad) {}

  /// Evaluates the rows [first, last) of a batch, each to its place. With `times` the first one is timed.
  template <class Counts>
  void write_slots(Block& p, const batch_part& part, worker& w, Counts& counts, std::uint64_t first,
                   std::uint64_t last, bool times) const noexcept {
    std::uint64_t row = first;
    const auto index_of = [&](std::uint64_t r) {
      return p.listed ? p.indices[static_cast<std::size_t>(r)] : part.view[r - part.first];
    };
    bool again = false;
    do {
      try {
        if (times && row < last) {
          counts.begin_run(index_of(row), 1);
          evaluate_to_row(p, w, row, index_of(row), timed{});
          ++row;
        }
        if constexpr (Light) {
          while (row < last && !ring_.stopped()) {
            const std::uint64_t count = std::min(last - row, counts.run);
            counts.begin_run(index_of(row), count);
            write_light(p, part, w, row, row + count);
          }
        } else {
          for (; row < last; ++row) {
            if (ring_.stopped()) return;
            const std::uint64_t index = index_of(row);
            counts.begin_run(index, 1);
            evaluate_to_row(p, w, row, index, untimed{});
          }
        }
        counts.end_run();
        again = false;
      } catch (...) {
        counts.end_run();
        again = go_on_without(p, w, {p.epoch, index_of(row)}, slot_place{*this, p, w, row});
        ++row;
        times = false;
      }
    } while (Bad::tolerates && again);
  }

  /// Evaluates all positions of a chunk; what comes out goes to its rows, one after another.
  template <class Counts>
  void write_rows(Block& p, worker& w, Counts& counts, bool times) const noexcept {
    row_writer rows = begin_rows(p);
    const std::uint64_t valid = p.parts[0].valid;
    bool again = false;
    do {
      try {
        if (times && valid != 0) {
          counts.begin_run(p.index(0), 1);
          chain_.evaluate({p.epoch, p.index(0)}, w, rows, timed{});
          ++rows.slot;
        }
        if (Light && !Chain::has_parts && !p.listed) {
          while (rows.slot < valid) {
            if (ring_.stopped()) return;
            const std::uint64_t count = std::min(valid - rows.slot, counts.run);
            counts.begin_run(p.index(rows.slot), count);
            write_rows_light(p, w, rows, rows.slot + count);
          }
        } else {
          for (; rows.slot < valid; ++rows.slot) {
            if (ring_.stopped()) return;
            const std::uint64_t index = p.index(rows.slot);
            counts.begin_run(index, 1);
            chain_.evaluate({p.epoch, index}, w, rows, untimed{});
          }
        }
        counts.end_run();
        again = false;
      } catch (...) {
        counts.end_run();
        again = go_on_without(p, w, {p.epoch, p.index(rows.slot)}, chunk_place{*this, w, rows});
        ++rows.slot;
        times = false;
      }
    } while (Bad::tolerates && again);
    p.rows = rows.count;
  }

  /// The same for a chunk of samples that a forward source gave.
  template <class Item, class Counts>
  void write_items(Block& p, worker& w, Counts& counts, const std::vector<Item>& items,
                   bool times) const noexcept {
    row_writer rows = begin_rows(p);
    const batch_part& part = p.parts[0];
    bool again = false;
    do {
      try {
        for (; rows.slot < part.valid; ++rows.slot) {
          if (ring_.stopped()) return;
          detail::innermost(w).item = &items[static_cast<std::size_t>(rows.slot)];
          const position at{p.epoch, part.view[rows.slot]};
          counts.begin_run(at.index, 1);
          if (times && rows.slot == 0)
            chain_.evaluate(at, w, rows, timed{});
          else
            chain_.evaluate(at, w, rows, untimed{});
        }
        counts.end_run();
        again = false;
      } catch (...) {
        counts.end_run();
        again = go_on_without(p, w, {p.epoch, part.view[rows.slot]}, chunk_place{*this, w, rows});
        ++rows.slot;
      }
    } while (Bad::tolerates && again);
    p.rows = rows.count;
  }

  /// Keeps the exception that is being handled as the failure of a row, with the position if it is ours.
  static void note_failure(Block& p, std::uint64_t row, std::uint64_t index) noexcept {
    try {
      throw;
    } catch (error& e) {
      try {
        e.at_position({p.epoch, index});
        p.fail(row, std::current_exception());
      } catch (...) {  // memory is short: without the position then
        p.fail(row, std::make_exception_ptr(e));
      }
    } catch (...) {
      p.fail(row, std::current_exception());
    }
  }

  /// Puts the columns of a batch in order; a failure is kept in it. Where bad samples are tolerated, one
  /// whose shape does not go with the others is one, and leaves a hole; where they are replaced and there is
  /// a worker, another one takes its place.
  static void finish_columns(Block& p, const batch_part& part) noexcept {
    if constexpr (Bad::tolerates) {
      finish_tolerantly(p, part, [&](bad_slot& one) {
        p.columns.blank(static_cast<std::size_t>(one.row));
        one.substitute.reset();
        one.hole = true;
      });
      return;
    }
    try {
      p.columns.finish(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.slots),
                       static_cast<std::size_t>(part.valid));
    } catch (const slot_error& e) {
      slot_error found = e;
      p.columns.choose_lead(static_cast<std::size_t>(part.valid));  // an odd first one is not the measure
      try {
        p.columns.finish(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.slots),
                         static_cast<std::size_t>(part.valid), true);
      } catch (const slot_error& better) {
        found = better;
      } catch (...) {  // memory is short: the first one then
      }
      try {
        throw std::move(found.what);
      } catch (...) {
        note_failure(p, found.slot, p.index(found.slot));
      }
    } catch (...) {
      p.fail(part.first, std::current_exception());
    }
  }
  void finish_columns(Block& p, const batch_part& part, worker& w) const noexcept {
    if constexpr (Bad::replaces)
      finish_tolerantly(p, part, [&](bad_slot& one) {
        find_substitute(one, w, slot_place{*this, p, w, one.row});
      });
    else
      finish_columns(p, part);
  }

 private:
  /// A row of a batch, for what becomes of a bad sample.
  struct slot_place {
    static constexpr bool makes_holes = true;
    const evaluator& self;
    Block& p;
    worker& w;
    std::uint64_t number;

    [[nodiscard]] std::uint64_t row() const noexcept { return number; }
    void take_back() const noexcept { p.columns.unwrite(static_cast<std::size_t>(number)); }
    void leave_empty() const { p.columns.blank(static_cast<std::size_t>(number)); }
    void evaluate(position at) const { self.evaluate_to_row(p, w, number, at.index, looked_up{}); }
  };
  /// Where the rows of a chunk go; makes room where a stage made several of one.
  struct row_writer {
    Block& p;
    std::uint64_t count, room, slot;

    template <class V>
    void operator()(V&& value) {
      if (count == room) grow();
      p.columns.write(static_cast<std::size_t>(count), std::forward<V>(value));
      p.sources[static_cast<std::size_t>(count)] = static_cast<std::uint32_t>(slot);
      ++count;
    }
    void grow() {
      room = std::max<std::uint64_t>(16, room * 2);
      p.columns.grow(static_cast<std::size_t>(room), static_cast<std::size_t>(count));
      p.sources.resize(static_cast<std::size_t>(room));
    }
  };

  /// The rows that a sample of a chunk makes.
  struct chunk_place {
    static constexpr bool makes_holes = false;
    const evaluator& self;
    worker& w;
    row_writer& rows;

    [[nodiscard]] std::uint64_t row() const noexcept { return rows.count; }
    void take_back() const noexcept {
      Block& p = rows.p;
      for (; rows.count != 0 && p.sources[static_cast<std::size_t>(rows.count - 1)] == rows.slot;
           --rows.count)
        p.columns.unwrite(static_cast<std::size_t>(rows.count - 1));
    }
    void evaluate(position at) const { self.chain_.evaluate(at, w, rows, looked_up{}); }
  };

  /// In a handler: whether what failed is a bad sample that the run goes on without; it is noted then. Else
  /// the failure is.
  template <class Place>
  bool go_on_without(Block& p, worker& w, position at, Place where) const noexcept {
    if constexpr (Bad::tolerates) {
      try {
        try {
          throw;
        } catch (error& e) {
          if (!depends_on_bytes(e.code())) throw;
          e.at_position(at);
          where.take_back();
          bad_slot one{where.row(), at, e};
          if constexpr (Bad::replaces) {
            find_substitute(one, w, where);
          } else if constexpr (Place::makes_holes) {
            where.leave_empty();
            one.hole = true;
          }
          p.note_bad(one);
          return true;
        }
      } catch (...) {
        note_failure(p, where.row(), at.index);
      }
    } else {
      note_failure(p, where.row(), at.index);
    }
    return false;
  }

  /// Evaluates another sample to the place of a bad one; the next that was not tried yet and is good.
  template <class Place>
  void find_substitute(bad_slot& one, worker& w, const Place& where) const {
    one.substitute.reset();
    do {
      where.take_back();
      if (one.tries == Bad::most)
        throw detail::error_like(
            one.what, {"bad_samples::replace: ", one.tries,
                       " samples were drawn in place of a bad one, and all are bad; the first is: ",
                       one.what.message()});
      if (bad_.orders->size() < 2)
        throw detail::error_like(
            one.what,
            {"bad_samples::replace: an epoch of one sample has no other to take: ", one.what.message()});
      const position drawn = bad_.draw(one.at, one.tries++);
      detail::innermost(w).stand_at(bad_.orders->sample_at(drawn));
      try {
        where.evaluate(one.at);
        one.substitute = drawn;
      } catch (const error& e) {
        if (!depends_on_bytes(e.code())) throw;
      }
    } while (!one.substitute);
  }

  /// `settle(bad_slot&)` makes a hole or finds another sample for a slot whose shape does not go with the
  /// others.
  template <class Settle>
  static void finish_tolerantly(Block& p, const batch_part& part, Settle settle) noexcept {
    bool led = false;
    while (true) {
      try {
        p.columns.finish(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.slots),
                         static_cast<std::size_t>(part.valid), led || !p.bad.empty());
        return;
      } catch (slot_error& e) {
        if (!std::exchange(led, true)) {
          p.columns.choose_lead(static_cast<std::size_t>(part.valid));
          continue;
        }
        try {
          const position at = p.from_batches ? p.gathered[static_cast<std::size_t>(e.slot)]
                                             : position{p.epoch, p.index(e.slot)};
          e.what.at_position(at);
          if (bad_slot* const known = p.bad.find_replaced(e.slot)) {
            settle(*known);
          } else {
            bad_slot one{e.slot, at, e.what};
            settle(one);
            p.note_bad(one);
          }
        } catch (...) {
          return note_failure(p, e.slot, p.index(e.slot));
        }
      } catch (...) {
        return p.fail(part.first, std::current_exception());
      }
    }
  }

  /// Room for a row per slot; the vector keeps what it had.
  static row_writer begin_rows(Block& p) noexcept {
    return {p, 0, std::min<std::uint64_t>(p.slots, p.sources.size()), 0};
  }

  template <class Timing>
  void evaluate_to_row(Block& p, worker& w, std::uint64_t row, std::uint64_t index, Timing timing) const {
    chain_.evaluate(
        {p.epoch, index}, w,
        [&p, row]<class V>(V&& value) {
          p.columns.write(static_cast<std::size_t>(row), std::forward<V>(value));
        },
        timing);
  }

  /// The loop of `write_slots` with everything in registers. `row` is where it stands, also when something is
  /// thrown.
  void write_light(Block& p, const batch_part& part, worker& w, std::uint64_t& row,
                   std::uint64_t last) const {
    const step_view view = part.view;
    const std::uint64_t epoch = p.epoch, base = part.first;
    auto& columns = p.columns;
    std::uint64_t at = row;
    const auto loop = [&](auto index_of) {
      const auto evaluate_until = [&](std::uint64_t end, auto timing) {
        for (; at < end; ++at)
          chain_.evaluate(
              {epoch, index_of(at)}, w,
              [&columns, at]<class V>(V&& value) {
                columns.write(static_cast<std::size_t>(at), std::forward<V>(value));
              },
              timing);
      };
      if constexpr (Ordered) {
        while (at < last) {
          const std::uint64_t n = std::min<std::uint64_t>(last - at, 64);
          chain_.look_up(at, n, w, index_of);
          evaluate_until(at + n, looked_up{});
        }
      } else {
        evaluate_until(last, untimed{});
      }
    };
    try {
      if (p.listed)
        loop([indices = p.indices.data()](std::uint64_t r) { return indices[r]; });
      else if (view.contiguous())
        loop([shift = view[0] - base](std::uint64_t r) { return r + shift; });
      else
        loop([&view, base](std::uint64_t r) { return view[r - base]; });
    } catch (...) {
      row = at;
      throw;
    }
    row = at;
  }

  /// The loop of `write_rows` in registers, where no stage makes several of one: then there is always room
  /// for a row.
  void write_rows_light(Block& p, worker& w, row_writer& rows, std::uint64_t end) const {
    const step_view view = p.parts[0].view;
    const std::uint64_t epoch = p.epoch;
    auto& columns = p.columns;
    std::uint32_t* const sources = p.sources.data();
    std::uint64_t count = rows.count, slot = rows.slot;
    try {
      for (; slot < end; ++slot)
        chain_.evaluate(
            {epoch, view[slot]}, w,
            [&columns, sources, slot, &count]<class V>(V&& value) {
              columns.write(static_cast<std::size_t>(count), std::forward<V>(value));
              sources[count] = static_cast<std::uint32_t>(slot);
              ++count;
            },
            untimed{});
    } catch (...) {
      rows.count = count;
      rows.slot = slot;
      throw;
    }
    rows.count = count;
    rows.slot = slot;
  }

  Chain chain_;
  const Ring& ring_;
  [[no_unique_address]] Bad bad_;
};

}  // namespace penstock::inline v0_1
