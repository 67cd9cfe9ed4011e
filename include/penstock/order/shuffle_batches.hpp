// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/shuffle.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct shuffle_batches_before_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: shuffle_batches shuffles whole batches and comes before batch; write it after "
                  "batch(n), or shuffle to shuffle samples");
  }
};

}  // namespace mistakes

/// The stage `shuffle_batches(seed(7))`.
struct shuffle_batches_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "shuffle_batches";
  static constexpr bool varies_by_epoch = true;
  static constexpr bool works_on_batches = true;

  [[nodiscard]] shuffle_order make(const order_input& in) const { return {in, seed}; }
  [[nodiscard]] constexpr std::uint64_t plan_seed() const noexcept { return seed; }
  [[nodiscard]] std::string describe() const { return detail::text({"shuffle_batches(seed ", seed, ")"}); }
  void fingerprint(auto& h) const { h.add(stage_name, seed); }
  template <class Context>
  static consteval auto diagnose() {
    return mistakes::unless<Context::facts.batched, mistakes::shuffle_batches_before_batch>{};
  }

  std::uint64_t seed = 0;
};

/// Shuffles whole batches: in every epoch they come in a new order, computed from (seed, epoch), and the
/// samples of a batch stay together.
///
/// Use it where neighbours belong together, as sorted by length, or where a batch is one contiguous read.
/// To shuffle samples, write `shuffle(seed(7))` before `batch`.
/// A sequencer, behind `batch`; keeps every guarantee; costs 6 ns per batch. Throws `error(errc::argument)`
/// for an endless order. Thread-safe.
///
///     auto loader = source | batch(256) | shuffle_batches(seed(7));
[[nodiscard]] constexpr shuffle_batches_stage shuffle_batches(any_seed seed) { return {seed.value()}; }

}  // namespace penstock::inline v0_1
