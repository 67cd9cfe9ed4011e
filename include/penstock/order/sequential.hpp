// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/concepts.hpp>

namespace penstock::inline v0_1 {

/// The order of `sequential`: index i is index i.
class sequential_order {
 public:
  struct bound {
    std::uint64_t epoch = 0;
    [[nodiscard]] constexpr position operator()(std::uint64_t index) const noexcept { return {epoch, index}; }
  };

  explicit sequential_order(order_input in) noexcept : in_(std::move(in)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return in_.size; }
  [[nodiscard]] order_input output() const { return in_; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const noexcept { return {epoch}; }
  [[nodiscard]] position_range reach(position_range after) const noexcept { return after; }
  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (upstream.index >= in_.size) return std::nullopt;
    return upstream;
  }

 private:
  order_input in_;
};

/// The stage `sequential`.
struct sequential_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "sequential";
  static constexpr bool works_on_batches = true;

  [[nodiscard]] sequential_order make(order_input in) const { return sequential_order(std::move(in)); }
  [[nodiscard]] std::string describe() const { return "sequential"; }
  void fingerprint(auto& h) const { h.add(stage_name); }
};

/// Leaves the order as it is. It documents in the plan that reading in stored order is intended.
///
/// A sequencer; keeps every guarantee; costs nothing per sample; throws nothing; thread-safe.
///
///     auto loader = source | sequential | batch(256);
inline constexpr sequential_stage sequential{};

}  // namespace penstock::inline v0_1
