// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/pipe.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct steps_without_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>, "penstock: steps(n) counts batches; write batch(b) before it");
  }
};

}  // namespace mistakes

/// Fixes an epoch at `count` batches on every rank: restores `lockstep` after filter and unbatch.
///
/// If the data end sooner, they restart within the epoch, in a new order (upstream epoch e + pass * 2^32);
/// what is left after `count` batches is not delivered in this epoch. A pass over the data that gives this
/// rank nothing at all is an error. Write it anywhere after `batch`: `take`, `skip` and `repeat` of batches
/// count within one pass over the data, even if you write them after it.
struct steps_stage {
  using penstock_part = steps_tag;
  static constexpr std::string_view stage_name = "steps";
  std::uint64_t count = 0;

  [[nodiscard]] std::string describe() const { return detail::text({"steps(", count, ")"}); }
  void fingerprint(auto& h) const { h.add("steps", count); }
  template <class Context>
  static consteval auto diagnose() {
    return mistakes::unless<Context::facts.batched, mistakes::steps_without_batch>{};
  }
};

[[nodiscard]] inline steps_stage steps(any_count wanted) {
  const std::uint64_t count = wanted.of("steps");
  if (count == 0)
    throw error(errc::argument, "steps(0) makes an epoch of no batches; give it at least 1")
        .in_stage("steps");
  return {count};
}

}  // namespace penstock::inline v0_1
