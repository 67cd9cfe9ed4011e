// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/block/column.hpp>

#include <exception>
#include <span>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

template <class Block>
void finish_strictly(Block& p, const batch_rows& batch) noexcept {
  const auto finish = [&](bool has_lead) {
    p.columns.finish(to_size(batch.first), to_size(batch.slots), to_size(batch.valid), has_lead);
  };
  try {
    finish(false);
  } catch (const slot_error& e) {
    slot_error found = e;
    p.columns.choose_lead(to_size(batch.valid));  // the first one may be the odd one out
    try {
      finish(true);
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

/// `settle(bad_slot&)` makes a hole in the place of a sample whose shape does not match the lead, or finds a
/// substitute.
template <class Block, class Settle>
void finish_tolerantly(Block& p, const batch_rows& batch, Settle settle) noexcept {
  while (true) {
    try {
      p.columns.finish(to_size(batch.first), to_size(batch.slots), to_size(batch.valid), !p.bad.empty());
      return;
    } catch (slot_error& e) {
      try {
        position at{p.epoch, p.index(e.slot)};
        std::span<const position> origins(&at, 1);
        if (p.from_batches) origins = p.gathered.of(to_size(e.slot));
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

}  // namespace detail

/// Puts the columns of a batch in order; a failure is stored in its block. If bad samples are tolerated, one
/// whose shape does not match the lead counts as bad and leaves a hole. The lead is the first good sample,
/// unless one was chosen before.
template <class Bad, class Block>
void finish_columns(Block& p, const batch_rows& batch) noexcept {
  if constexpr (Bad::tolerates)
    detail::finish_tolerantly(p, batch, [&](bad_slot& one) {
      p.columns.blank(detail::to_size(one.row));
      one.substitute.reset();
      one.hole = true;
    });
  else
    detail::finish_strictly(p, batch);
}

}  // namespace penstock::inline v0_1
