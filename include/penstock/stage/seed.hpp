// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_seed.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// The seed of random stages (`map` with a generator). An annotation; without it the first shuffle's seed is
/// used, otherwise 0.
struct seed_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "seed";
  std::uint64_t value{};

  void apply(run_options& options, bool /*after_batch*/) const { options.seed = value; }
  [[nodiscard]] constexpr std::uint64_t plan_seed() const noexcept { return value; }
  [[nodiscard]] std::string describe() const { return detail::text({"seed(", value, ")"}); }
};

[[nodiscard]] constexpr seed_stage seed(any_seed value) { return {value.value()}; }

}  // namespace penstock::inline v0_1
