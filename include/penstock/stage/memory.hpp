// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>

namespace penstock::inline v0_1 {

/// Bounds the bytes of batches in flight, including their scratch. An annotation: when batches are large,
/// fewer are worked on at once, but always at least one.
struct memory_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "memory";
  std::uint64_t value{};

  void apply(run_options& options, bool /*after_batch*/) const { options.memory = value; }
  [[nodiscard]] std::string describe() const { return detail::text({"memory(", value, ")"}); }
};

[[nodiscard]] constexpr memory_stage memory(any_count value) { return {value.of("memory")}; }
/// With a unit: `memory(512_MiB)`.
[[nodiscard]] constexpr memory_stage memory(byte_count bytes) { return {bytes}; }

}  // namespace penstock::inline v0_1
