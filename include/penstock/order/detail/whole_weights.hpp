// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/detail/wide.hpp>

#include <vector>

namespace penstock::inline v0_1::detail {

/// The shortest decimal that reads back as x.
[[nodiscard]] std::string text_of_number(double x);

[[nodiscard]] error mix_error(std::initializer_list<piece> message);

/// Converts weights to whole numbers whose sum is at most 2^60. Exact if all are decimal fractions of up to
/// 15 digits and the sum of the whole numbers fits; otherwise rounded to 2^-50 of the largest, or finer. Uses
/// only operations that every machine rounds identically. `place` tells messages which weights they are: " at
/// knot 2".
[[nodiscard]] std::vector<std::uint64_t> whole_weights(const std::vector<double>& values, bool zero_too,
                                                       std::string_view place = {});

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

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/order/detail/whole_weights.ipp>
#endif
