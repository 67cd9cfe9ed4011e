// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/whole_weights.hpp>
#include <penstock/order/weights.hpp>

#include <optional>
#include <type_traits>

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
  [[nodiscard]] std::string describe() const {
    const auto list = [](const auto& numbers) {
      std::string line = "{";
      for (const auto n : numbers) {
        if (line.size() != 1) line += ", ";
        if constexpr (std::is_floating_point_v<decltype(n)>)
          line += text_of_number(n);
        else
          append(line, {n});
      }
      return line + "}";
    };
    std::string line(name());
    if (what == kind::choose) return line + list(counts);
    if (what != kind::schedule) return line + list(values);
    line += "{";
    for (const weight_knot& knot : knots)
      append(line, {(&knot == knots.data() ? "{" : ", {"), knot.sample, ", ", list(knot.weights), "}"});
    return line + "}";
  }

  kind what;
  std::vector<double> values;
  std::vector<weight_knot> knots;
  std::vector<std::uint64_t> counts;
};

struct mixing_options {
  std::optional<stopping> stop;
  std::optional<std::uint64_t> samples;  // per epoch
  std::uint64_t seed = 0;

  [[nodiscard]] std::string describe() const {
    constexpr std::string_view names[] = {"first_exhausted", "all_exhausted", "cycle"};
    std::string line;
    if (stop) append(line, {", ", names[static_cast<std::size_t>(*stop)]});
    if (samples) append(line, {", samples_per_epoch(", *samples, ")"});
    if (seed != 0) append(line, {", seed(", seed, ")"});
    return line;
  }
};

}  // namespace penstock::inline v0_1::detail
