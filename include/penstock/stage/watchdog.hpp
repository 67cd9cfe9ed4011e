// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>

#include <chrono>

namespace penstock::inline v0_1 {

/// How long the consumer may wait for a batch before a line reports what it is waiting for; 0 turns it off.
/// Default: 30 s. An annotation.
struct watchdog_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "watchdog";
  std::chrono::milliseconds value{};

  void apply(run_options& options, bool /*after_batch*/) const {
    options.watchdog_ms = static_cast<std::uint64_t>(value.count());
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"watchdog(", value.count(), " ms", ")"});
  }
};

[[nodiscard]] constexpr watchdog_stage watchdog(std::chrono::milliseconds value) { return {value}; }

}  // namespace penstock::inline v0_1
