// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/mixing_rule.hpp>

namespace penstock::inline v0_1::detail {

/// The numbers of a mixture, computed once: how much of each source, how long an epoch is, in which order the
/// sources are cumulated, how long a block is.
///
/// Sources are cumulated in an order that we choose. A source between two others needs at least a whole
/// sample's share in every block from its first one on, or its rounded count could decrease; the counts of
/// the first and the last source never do. So the two ends go to the sources that need them most: those whose
/// weight returns to 0, the one that ends the epoch (at an end its count is exactly its size), and the
/// lightest.
class mixing_plan {
 public:
  static constexpr std::uint64_t maximum = std::uint64_t{1} << 63;

  mixing_plan(std::vector<std::uint64_t> sizes_of_sources, const mixing_rule& rule,
              const mixing_options& options);

  std::vector<std::uint64_t> sizes;
  /// The weights of each source alone, in the order given.
  weight_integrals own;
  /// Cumulated: function k is the sum of the first k sources of `order`.
  weight_integrals cumulated;
  /// The number of samples per epoch, and whether epochs are cut from one endless sequence.
  std::uint64_t samples = maximum;
  bool endless = false;
  /// How far each source's samples advance from one epoch to the next.
  std::vector<std::uint64_t> advance;
  std::vector<std::uint32_t> order;
  /// A block has 2^block_bits samples; the last one of an epoch may have up to twice as many.
  unsigned block_bits = least_bits;

  static constexpr unsigned least_bits = 10, max_bits = 31;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr std::uint64_t schedule_unit = std::uint64_t{1} << 60;
  static constexpr unsigned needs_end = 64;

  void check_sizes(const mixing_rule& rule) const;

  static void check_options(const mixing_rule& rule, const mixing_options& options);

  // ---- weights

  void constant(std::vector<std::uint64_t> whole);

  void scheduled(const std::vector<weight_knot>& knots);

  // ---- counts

  void counted(const mixing_rule& rule, const mixing_options& options);
  /// How many samples `factor` times a source are; exact for whole factors.
  [[nodiscard]] std::uint64_t times(double factor, std::size_t k) const;
  static void add(std::uint64_t& sum, std::uint64_t more);

  // ---- where an epoch ends

  void ending(const mixing_rule& rule, const mixing_options& options);

  // ---- order and blocks

  [[nodiscard]] std::size_t first_knot_with(std::size_t k) const;

  /// The bits of the smallest block in which source k, placed between two others, has a whole sample's share
  /// from its first block on; `needs_end` if its weight returns to 0.
  [[nodiscard]] unsigned bits_needed(std::size_t k) const;

  void order_sources(std::size_t limiting, bool at_the_end = true);

  void check_middle(std::uint32_t k, unsigned needed);
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/order/detail/mixing_plan.ipp>
#endif
