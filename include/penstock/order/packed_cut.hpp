// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/cost_cut.hpp>
#include <penstock/order/detail/packed_windows.hpp>

namespace penstock::inline v0_1 {

/// The cut of `pack(length, capacity)`: samples in rows of at most `capacity` tokens, and steps of rows. A
/// `step_cut`.
///
/// `Length` gives the length of a sample from its number in the source. Every window of consecutive positions
/// is packed by itself, and its rows come in a random order of (seed, epoch, window), or in their own with
/// `packing::in_order`. So row k of an epoch is the same on any number of ranks; a step has the next rows,
/// divided evenly, or by `deal_by`.
///
/// The first caller that needs an epoch makes one pass over it, which keeps 24 bytes for each window; what is
/// in the rows of a step is found by packing its windows again.
template <class Orders, class Length>
class packed_cut {
  struct source {
    Orders orders;
    Length length_of;
  };

 public:
  packed_cut(Orders orders, Length length, packed_facts facts, const cut_input& in)
      : windows_(make_windows(std::move(orders), std::move(length), facts, in)),
        rows_(facts.rows),
        world_(in.world),
        rank_(in.rank) {}

  /// Throws `pass_stopped` if `stop` becomes true while it passes over the epoch.
  [[nodiscard]] detail::packed_epoch bind(std::uint64_t epoch,
                                          const std::atomic<bool>* stop = nullptr) const {
    const std::uint64_t of_all = rows_.of_all(world_);
    return {windows_, windows_->table(epoch, of_all, stop), epoch, rows_, world_, rank_};
  }
  [[nodiscard]] packed_cut on(std::uint64_t world, std::uint64_t rank) const {
    packed_cut made = *this;
    made.world_ = world;
    made.rank_ = rank;
    return made;
  }
  /// Estimated from the lengths of some samples.
  [[nodiscard]] std::uint64_t usual() const {
    return windows_->usual_samples(std::max<std::uint64_t>(1, rows_.of_all(world_) / world_));
  }

 private:
  // Called once per window, not per sample.
  static void read_lengths(const void* self, std::uint64_t epoch, std::uint64_t first, std::uint64_t end,
                           detail::packed_lengths& into) {
    const source& here = *static_cast<const source*>(self);
    typename Orders::binding bound;
    here.orders.rebind(bound, epoch, first, end);
    const std::size_t n = detail::to_size(end - first);
    into.samples.resize(n);
    into.lengths.resize(n);
    for (std::size_t i = 0; i < n; ++i) into.samples[i] = bound(first + i).index;
    std::size_t i = 0;
    try {
      for (; i < n; ++i) into.lengths[i] = here.length_of(into.samples[i]);
    } catch (error& e) {
      e.in_part(detail::text({"the length of sample ", into.samples[i]}))
          .in_stage("pack")
          .add_context({epoch, first + i});
      throw;
    }
  }
  static std::shared_ptr<detail::packed_windows> make_windows(Orders orders, Length length,
                                                              const packed_facts& facts,
                                                              const cut_input& in) {
    const std::uint64_t positions = orders.size();
    std::shared_ptr<const source> lengths(new const source{std::move(orders), std::move(length)});
    return std::shared_ptr<detail::packed_windows>(
        new detail::packed_windows({std::move(lengths), &read_lengths, positions}, facts, in.seed));
  }

  std::shared_ptr<detail::packed_windows> windows_;
  row_batches rows_;
  std::uint64_t world_, rank_;
};

}  // namespace penstock::inline v0_1
