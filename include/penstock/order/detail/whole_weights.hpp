// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/order/detail/wide.hpp>
#include <penstock/order/weights.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The shortest decimal that reads back as x.
[[nodiscard]] inline std::string text_of_number(double x) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), x).ptr};
}

[[nodiscard]] inline error mix_error(std::initializer_list<piece> message) {
  return error(errc::argument, message).in_stage("mix");
}

/// Weights as whole numbers whose sum is at most 2^60. Exact where all are decimal fractions of up to 15
/// digits and the sum of the whole numbers fits; else rounded to 2^-50 or finer of the largest. Only
/// operations that every machine rounds alike. `place` says in messages which weights they are: " at knot 2".
template <class = void>
[[nodiscard]] std::vector<std::uint64_t> whole_weights(const std::vector<double>& values, bool zero_too,
                                                       std::string_view place = {}) {
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
  if (largest == 0) throw mix_error({"all weights", place, " are 0, and somebody must give samples"});
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
                       ", is too small beside ", text_of_number(largest)});
    whole.push_back(static_cast<std::uint64_t>(scaled));
  }
  return whole;
}

/// The integrals over samples of functions that are linear between knots and constant behind the last,
/// exactly.
/// Values are whole numbers of which `unit` are 1, unit <= 2^60; samples and results go up to 2^63.
class weight_integrals {
 public:
  struct result {
    std::uint64_t floor = 0;
    bool exact = true;
    [[nodiscard]] std::uint64_t ceil() const noexcept { return floor + (exact ? 0 : 1); }
  };

  weight_integrals() = default;
  /// The first knot is 0; `values` has those of all functions at the first knot, then at the second, ...
  weight_integrals(std::uint64_t unit, std::vector<std::uint64_t> knots, std::vector<std::uint64_t> values)
      : unit_(unit), knots_(std::move(knots)), values_(std::move(values)) {
    functions_ = values_.size() / knots_.size();
    before_.resize(values_.size());
    for (std::size_t i = functions_; i < values_.size(); ++i) {
      const std::size_t knot = i / functions_;
      before_[i] = before_[i - functions_] +
                   product(values_[i - functions_] + values_[i], knots_[knot] - knots_[knot - 1]);
    }
  }

  [[nodiscard]] std::uint64_t unit() const noexcept { return unit_; }
  [[nodiscard]] std::size_t functions() const noexcept { return functions_; }
  [[nodiscard]] const std::vector<std::uint64_t>& knots() const noexcept { return knots_; }
  [[nodiscard]] const std::vector<std::uint64_t>& values() const noexcept { return values_; }

  /// The last knot that is not behind sample p.
  [[nodiscard]] std::size_t knot_before(std::uint64_t p) const noexcept {
    return static_cast<std::size_t>(last_not_above(knots_.data(), knots_.size(), p));
  }
  [[nodiscard]] result at(std::size_t function, std::uint64_t p) const noexcept {
    return at(function, p, knot_before(p));
  }
  /// The integral over [0, p), where `knot` is the last that is not behind p. All is in halves of a unit.
  [[nodiscard]] result at(std::size_t function, std::uint64_t p, std::size_t knot) const noexcept {
    const std::size_t here = knot * functions_ + function;
    const std::uint64_t x = p - knots_[knot], value = values_[here];
    wide sum = before_[here] + product(2 * value, x);
    bool exact = true;
    if (knot + 1 != knots_.size() && values_[here + functions_] != value) {
      const std::uint64_t next = values_[here + functions_], length = knots_[knot + 1] - knots_[knot];
      // slope x^2 / length = (q + r / length) x, in parts that fit
      const auto [q, r] = divide(product(next > value ? next - value : value - next, x), length);
      const auto rest = divide(product(r, x), length);
      exact = rest.remainder == 0;
      const wide bend = product(q, x) + wide{0, rest.quotient};
      sum = next > value ? sum + bend : sum - bend - wide{0, exact ? 0u : 1u};
    }
    const auto whole = divide(sum, 2 * unit_);
    return {whole.quotient, exact && whole.remainder == 0};
  }

 private:
  std::uint64_t unit_ = 1;
  std::size_t functions_ = 0;
  std::vector<std::uint64_t> knots_, values_;
  std::vector<wide> before_;  // in halves of a unit: the trapezoids up to the knot
};

}  // namespace penstock::inline v0_1::detail
