// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>

#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// Says how many threads evaluate samples; 0 evaluates in the thread that asks for batches, with the same
/// bytes. An annotation: where it stands does not matter, the sequence does not change. Without it: the
/// processors this process may use, shared by the ranks of the node, less one, at least one.
struct workers_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "workers";
  unsigned value{};

  void apply(run_options& options, bool /*after_batch*/) const { options.workers = value; }
  [[nodiscard]] std::string describe() const { return detail::text({"workers(", value, ")"}); }
};

[[nodiscard]] constexpr workers_stage workers(unsigned value) { return {value}; }

}  // namespace penstock::inline v0_1
