// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/to_size.hpp>
#include <penstock/order/detail/wide.hpp>
#include <penstock/order/weights.hpp>

#include <optional>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The exact integrals, over samples, of functions that are linear between knots and constant after the last
/// one. Values are integers in units of 1 / `unit`, unit <= 2^60; samples and results go up to 2^63.
class weight_integrals {
 public:
  struct result {
    std::uint64_t floor = 0;
    bool exact = true;
    [[nodiscard]] std::uint64_t ceil() const noexcept { return floor + (exact ? 0 : 1); }
  };

  weight_integrals() = default;
  /// The first knot is 0; `values` holds the values of all functions at the first knot, then at the second,
  /// ...
  weight_integrals(std::uint64_t unit, std::vector<std::uint64_t> knots, std::vector<std::uint64_t> values);

  [[nodiscard]] std::uint64_t unit() const noexcept { return unit_; }
  [[nodiscard]] std::size_t functions() const noexcept { return functions_; }
  [[nodiscard]] const std::vector<std::uint64_t>& knots() const noexcept { return knots_; }
  [[nodiscard]] const std::vector<std::uint64_t>& values() const noexcept { return values_; }

  /// The last knot at or before sample p.
  [[nodiscard]] std::size_t knot_before(std::uint64_t p) const noexcept {
    return detail::to_size(last_not_above(knots_.data(), knots_.size(), p));
  }
  [[nodiscard]] result at(std::size_t function, std::uint64_t p) const noexcept {
    return at(function, p, knot_before(p));
  }
  /// The integral over [0, p), in halves of a unit; `knot` is the last knot at or before p.
  [[nodiscard]] result at(std::size_t function, std::uint64_t p, std::size_t knot) const noexcept;

 private:
  std::uint64_t unit_ = 1;
  std::size_t functions_ = 0;
  std::vector<std::uint64_t> knots_, values_;
  std::vector<wide> before_;  // in halves of a unit: the trapezoids up to each knot
};

/// The requested rule: one of weights, weight_schedule, proportions, repeats and choose.
struct mixing_rule {
  enum class kind { weights, schedule, proportions, repeats, choose };

  mixing_rule(const weights& w) : what(kind::weights), values(w.values()) {}          // NOLINT: implicit
  mixing_rule(const weight_schedule& s) : what(kind::schedule), knots(s.knots()) {}   // NOLINT: implicit
  mixing_rule(const proportions& p) : what(kind::proportions), values(p.values()) {}  // NOLINT: implicit
  mixing_rule(const repeats& r) : what(kind::repeats), values(r.values()) {}          // NOLINT: implicit
  mixing_rule(const choose& c) : what(kind::choose), counts(c.counts()) {}            // NOLINT: implicit

  [[nodiscard]] std::string_view name() const noexcept {
    constexpr std::string_view names[] = {"weights", "weight_schedule", "proportions", "repeats", "choose"};
    return names[static_cast<std::size_t>(what)];
  }

  /// The rule as a user would write it: "weights{0.7, 0.3}".
  [[nodiscard]] std::string describe() const;

  kind what;
  std::vector<double> values;
  std::vector<weight_knot> knots;
  std::vector<std::uint64_t> counts;
};

struct mixing_options {
  std::optional<stopping> stop;
  std::optional<std::uint64_t> samples;  // per epoch
  std::uint64_t seed = 0;

  [[nodiscard]] std::string describe() const;
};

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
