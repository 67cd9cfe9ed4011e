// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/whole_weights.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string text_of_number(double x) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), x).ptr};
}

PENSTOCK_INLINE error mix_error(std::initializer_list<piece> message) {
  return error(errc::argument, message).in_stage("mix");
}

PENSTOCK_INLINE std::vector<std::uint64_t> whole_weights(const std::vector<double>& values, bool zero_too,
                                                         std::string_view place) {
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double w = values[i];
    if (std::isnan(w)) throw mix_error({"the weight of source ", i, place, " is not a number"});
    if (w < 0 || std::isinf(w))
      throw mix_error(
          {"the weight of source ", i, place, " is ", text_of_number(w), "; weights are finite, above 0"});
    if (w == 0 && !zero_too) {
      throw mix_error({"the weight of source ", i,
                       " is 0; leave the source out, or let it come in later with a "
                       "weight_schedule"});
    }
    largest = std::max(largest, w);
  }
  if (largest == 0)
    throw mix_error({"all weights", place, " are 0; give at least one source a weight above 0"});
  constexpr double fits = 0x1p52;
  double ten = 1;
  for (int digits = 0; digits <= 15 && largest * ten <= fits; ++digits, ten *= 10) {
    std::vector<std::uint64_t> whole;
    for (const double w : values) {
      const double scaled = std::nearbyint(w * ten);
      if (scaled / ten != w) break;
      whole.push_back(static_cast<std::uint64_t>(scaled));
    }
    if (whole.size() == values.size() && values.size() <= 256) return whole;
  }
  int exponent = 0;
  std::frexp(largest, &exponent);
  const int room = 59 - static_cast<int>(std::bit_width(values.size()));
  std::vector<std::uint64_t> whole;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double scaled = std::nearbyint(std::ldexp(values[i], room - exponent));
    if (scaled == 0 && values[i] != 0)
      throw mix_error({"the weight of source ", i, place, ", ", text_of_number(values[i]),
                       ", is too small compared with ", text_of_number(largest)});
    whole.push_back(static_cast<std::uint64_t>(scaled));
  }
  return whole;
}

PENSTOCK_INLINE weight_integrals::weight_integrals(std::uint64_t unit, std::vector<std::uint64_t> knots,
                                                   std::vector<std::uint64_t> values)
    : unit_(unit), knots_(std::move(knots)), values_(std::move(values)) {
  functions_ = values_.size() / knots_.size();
  before_.resize(values_.size());
  for (std::size_t i = functions_; i < values_.size(); ++i) {
    const std::size_t knot = i / functions_;
    before_[i] = before_[i - functions_] +
                 product(values_[i - functions_] + values_[i], knots_[knot] - knots_[knot - 1]);
  }
}

PENSTOCK_INLINE weight_integrals::result weight_integrals::at(std::size_t function, std::uint64_t p,
                                                              std::size_t knot) const noexcept {
  const std::size_t here = knot * functions_ + function;
  const std::uint64_t x = p - knots_[knot], value = values_[here];
  wide sum = before_[here] + product(2 * value, x);
  bool exact = true;
  if (knot + 1 != knots_.size() && values_[here + functions_] != value) {
    const std::uint64_t next = values_[here + functions_], length = knots_[knot + 1] - knots_[knot];
    // slope x^2 / length = (q + r / length) x, split so that each part fits
    const auto [q, r] = divide(product(next > value ? next - value : value - next, x), length);
    const auto rest = divide(product(r, x), length);
    exact = rest.remainder == 0;
    const wide bend = product(q, x) + wide{0, rest.quotient};
    sum = next > value ? sum + bend : sum - bend - wide{0, exact ? 0u : 1u};
  }
  const auto whole = divide(sum, 2 * unit_);
  return {whole.quotient, exact && whole.remainder == 0};
}

}  // namespace penstock::inline v0_1::detail
