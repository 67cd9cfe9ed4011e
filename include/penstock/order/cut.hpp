// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/order/detail/arithmetic.hpp>
#include <penstock/order/tail.hpp>

#include <algorithm>
#include <optional>

namespace penstock::inline v0_1 {

namespace detail {

/// The positions of one global step sorted by (p mod lanes, p). Converts between ordinals and offsets in the
/// step, both ways in O(1).
///
/// Of m consecutive positions, lane v holds those at offsets d, d + lanes, ..., where d = (v - first) mod
/// lanes. Lanes with d < m mod lanes have one more than the others. In the order of v, the lanes below the
/// first position's lane come first (their d is large), then the others; each of these two groups begins with
/// the lanes that have one more. Hence there are four runs of lanes of equal length.
class lane_sorted {
 public:
  constexpr lane_sorted() = default;
  constexpr lane_sorted(std::uint64_t first, std::uint64_t count, std::uint64_t lanes) noexcept
      : lanes_(lanes),
        below_(first % lanes),
        each_(count / lanes),
        by_each_(std::max<std::uint64_t>(1, each_)),
        by_more_(each_ + 1) {
    const std::uint64_t more = count % lanes, above = lanes - below_;
    wrapped_more_ = more > above ? more - above : 0;
    straight_more_ = std::min(more, above);
    ends_[0] = wrapped_more_ * (each_ + 1);
    ends_[1] = ends_[0] + (below_ - wrapped_more_) * each_;
    ends_[2] = ends_[1] + straight_more_ * (each_ + 1);
  }

  [[nodiscard]] constexpr std::uint64_t offset(std::uint64_t ordinal) const noexcept {
    const std::uint64_t above = lanes_ - below_;
    if (ordinal >= ends_[2]) return in_run(by_each_(ordinal - ends_[2]), straight_more_);
    if (ordinal >= ends_[1]) return in_run(by_more_(ordinal - ends_[1]), 0);
    if (ordinal >= ends_[0]) return in_run(by_each_(ordinal - ends_[0]), above + wrapped_more_);
    return in_run(by_more_(ordinal), above);
  }

  [[nodiscard]] constexpr std::uint64_t ordinal(std::uint64_t offset) const noexcept {
    const std::uint64_t above = lanes_ - below_;
    const std::uint64_t lane_offset = offset % lanes_, depth = offset / lanes_;
    const bool wrapped = lane_offset >= above;
    const std::uint64_t number = wrapped ? lane_offset - above : lane_offset;
    const std::uint64_t longer = wrapped ? wrapped_more_ : straight_more_;
    return (wrapped ? 0 : ends_[1]) + number * each_ + std::min(number, longer) + depth;
  }

 private:
  [[nodiscard]] constexpr std::uint64_t in_run(divider::result lane_and_depth,
                                               std::uint64_t run_begin) const noexcept {
    return run_begin + lane_and_depth.quotient + lane_and_depth.remainder * lanes_;
  }

  std::uint64_t lanes_ = 1, below_ = 0, each_ = 0, wrapped_more_ = 0, straight_more_ = 0;
  std::uint64_t ends_[3] = {0, 0, 0};
  divider by_each_, by_more_;
};

}  // namespace detail

/// One rank's part of one global step: maps slots to position indexes. Cheap to make; keep it while you fill
/// the step's slots.
class step_view {
 public:
  constexpr step_view() = default;
  /// The positions from `base`, all of them valid, without lanes.
  constexpr step_view(std::uint64_t base, std::uint64_t count) noexcept
      : base_(base), slots_(count), valid_(count) {}
  constexpr step_view(std::uint64_t first, std::uint64_t count, std::uint64_t lanes, std::uint64_t begin,
                      std::uint64_t slots, std::uint64_t valid) noexcept
      : base_(first + (lanes == 1 ? begin : 0)), begin_(begin), slots_(slots), valid_(valid) {
    if (lanes != 1) sorted_ = detail::lane_sorted(first, count, lanes);
  }

  /// The slots of this rank's batch; those from `valid()` on are padding.
  [[nodiscard]] constexpr std::uint64_t slots() const noexcept { return slots_; }
  [[nodiscard]] constexpr std::uint64_t valid() const noexcept { return valid_; }

  /// Whether slot s holds position `(*this)[0]` + s: true without lanes.
  [[nodiscard]] constexpr bool contiguous() const noexcept { return !sorted_; }
  /// The position in slot 0, if the slots are contiguous.
  [[nodiscard]] constexpr std::uint64_t base() const noexcept { return base_; }
  /// The position index in slot `slot`, which must be below `valid()`.
  [[nodiscard]] constexpr std::uint64_t operator[](std::uint64_t slot) const noexcept {
    return base_ + (sorted_ ? sorted_->offset(begin_ + slot) : slot);
  }

 private:
  std::uint64_t base_ = 0, begin_ = 0, slots_ = 0, valid_ = 0;
  std::optional<detail::lane_sorted> sorted_;  // set if there are lanes
};

/// Where a position index ends up: global step, rank, and slot in that rank's batch.
struct cut_place {
  std::uint64_t step = 0, rank = 0, slot = 0;
  friend constexpr bool operator==(const cut_place&, const cut_place&) = default;
};

/// The cut of an epoch into global steps, and of each step into the ranks' batches: computed from positions,
/// without reading data.
///
/// Global step s holds the positions [s * global, min((s + 1) * global, size)), regardless of the number of
/// ranks. Within a step, positions are sorted by (p mod lanes, p), so by p if lanes is 1; rank r of W takes
/// ordinals floor(G r / W) up to floor(G (r + 1) / W). For global = b * W, that is b each. If the last step
/// has m < G positions, `tail::keep` divides these m in the same way, `tail::pad` leaves the ordinals from m
/// on empty, and `tail::drop` leaves the step out. The number of steps is the same on all ranks.
/// Cost: `at` takes a few divisions, then one addition per slot (with lanes, one multiplication more). Stores
/// nothing; thread-safe.
/// `check` throws `error(errc::argument)` for an impossible cut; call it once.
/// The default model of `step_cut`, and the one that a feed holds by value.
///
///     const cut mine{.size = n, .global = 256 * world_size, .world = world_size, .rank = rank};
///     for (std::uint64_t s = 0; s < mine.steps(); ++s) {
///       const auto step = mine.at(s);
///       for (std::uint64_t slot = 0; slot < step.valid(); ++slot) load(step[slot]);
///     }
struct cut {
  std::uint64_t size = 0;    ///< positions per epoch
  std::uint64_t global = 1;  ///< positions per global step
  std::uint64_t world = 1;   ///< ranks
  std::uint64_t rank = 0;    ///< this rank
  std::uint64_t lanes = 1;   ///< lanes of the shuffle; 1: none
  tail policy = tail::keep;

  void check() const;

  /// The number of global steps per epoch.
  [[nodiscard]] constexpr std::uint64_t steps() const noexcept {
    return size / global + (policy != tail::drop && size % global != 0 ? 1 : 0);
  }
  /// The number of positions in step s, over all ranks.
  [[nodiscard]] constexpr std::uint64_t count(std::uint64_t step) const noexcept {
    return step >= steps() ? 0 : std::min(global, size - step * global);
  }
  /// The number of positions in the steps before step s.
  [[nodiscard]] constexpr std::uint64_t before(std::uint64_t step) const noexcept {
    return step >= steps() && policy == tail::drop ? steps() * global
           : step > size / global                  ? size
                                                   : step * global;
  }
  /// The number of slots in this rank's batch of step s.
  [[nodiscard]] constexpr std::uint64_t slots(std::uint64_t step) const noexcept {
    const std::uint64_t divided = divided_by_ranks(step);
    return detail::share(divided, rank + 1, world) - detail::share(divided, rank, world);
  }
  /// The number of those slots that hold a sample; these come first.
  [[nodiscard]] constexpr std::uint64_t valid(std::uint64_t step) const noexcept {
    const std::uint64_t divided = divided_by_ranks(step);
    return std::min(count(step), detail::share(divided, rank + 1, world)) -
           std::min(count(step), detail::share(divided, rank, world));
  }
  /// The properties that all whole steps share: their number, and this rank's part of each.
  struct whole_steps {
    std::uint64_t count = 0, begin = 0, slots = 0;
  };
  [[nodiscard]] constexpr whole_steps whole() const noexcept {
    const std::uint64_t begin = detail::share(global, rank, world);
    return {size / global, begin, detail::share(global, rank + 1, world) - begin};
  }
  /// The position index in a slot of step s; empty if the slot is padding or does not exist.
  [[nodiscard]] constexpr std::optional<std::uint64_t> index_of(std::uint64_t step,
                                                                std::uint64_t slot) const noexcept {
    if (slot >= valid(step)) return std::nullopt;
    return at(step)[slot];
  }
  /// The slots of step s, for the inner loop.
  [[nodiscard]] constexpr step_view at(std::uint64_t step) const noexcept {
    return {step * global, count(step), lanes, detail::share(divided_by_ranks(step), rank, world),
            slots(step),   valid(step)};
  }
  /// The inverse, over all ranks: empty for an index that is dropped or not below `size`.
  [[nodiscard]] constexpr std::optional<cut_place> slot_of(std::uint64_t index) const noexcept {
    const std::uint64_t step = index / global;
    if (index >= size || step >= steps()) return std::nullopt;
    const std::uint64_t offset = index - step * global, divided = divided_by_ranks(step);
    const std::uint64_t ordinal =
        lanes == 1 ? offset : detail::lane_sorted(step * global, count(step), lanes).ordinal(offset);
    const std::uint64_t owner = ((ordinal + 1) * world - 1) / divided;
    return cut_place{step, owner, ordinal - detail::share(divided, owner, world)};
  }

  /// The cut of an epoch; every epoch has this one.
  [[nodiscard]] constexpr cut bind(std::uint64_t) const noexcept { return *this; }
  /// This cut for another rank.
  [[nodiscard]] constexpr cut on(std::uint64_t ranks, std::uint64_t which) const noexcept {
    cut made = *this;
    made.world = ranks;
    made.rank = which;
    return made;
  }
  [[nodiscard]] constexpr std::uint64_t usual() const noexcept { return whole().slots; }

 private:
  /// The number of ordinals that the ranks divide: those of a whole step, or, for a last step that is kept,
  /// the ones it has.
  [[nodiscard]] constexpr std::uint64_t divided_by_ranks(std::uint64_t step) const noexcept {
    return step >= steps() ? 0 : policy == tail::keep ? count(step) : global;
  }
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/cut.ipp>
#endif
