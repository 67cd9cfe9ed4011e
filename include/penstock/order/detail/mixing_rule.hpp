// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/order/weights.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail {

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

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/order/detail/mixing_rule.ipp>
#endif
