// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/mixing_rule.hpp>

#include <penstock/core/message.hpp>
#include <penstock/order/detail/whole_weights.hpp>

#include <type_traits>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string mixing_rule::describe() const {
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

PENSTOCK_INLINE std::string mixing_options::describe() const {
  constexpr std::string_view names[] = {"first_exhausted", "all_exhausted", "cycle"};
  std::string line;
  if (stop) append(line, {", ", names[static_cast<std::size_t>(*stop)]});
  if (samples) append(line, {", samples_per_epoch(", *samples, ")"});
  if (seed != 0) append(line, {", seed(", seed, ")"});
  return line;
}

}  // namespace penstock::inline v0_1::detail
