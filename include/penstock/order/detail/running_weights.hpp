// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/fraction.hpp>
#include <penstock/order/detail/position_list.hpp>

namespace penstock::inline v0_1::detail {

/// The running sums of whole-number weights. The range of draws is cut into about as many stretches as
/// there are positions, and the first position of each is stored, so that a search is short and local in
/// memory.
class running_weights {
 public:
  explicit running_weights(std::vector<std::uint64_t> before, std::uint64_t total);

  [[nodiscard]] std::uint64_t size() const noexcept { return before_.size(); }
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  /// The position whose share of the total contains `drawn`, which must be below the total.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t drawn) const noexcept {
    const std::uint64_t stretch = drawn >> shift_, first = firsts_[stretch];
    return first + last_not_above(before_.data() + first, firsts_[stretch + 1] - first + 1, drawn);
  }

 private:
  std::vector<std::uint64_t> before_;  // by position: the sum of the weights below it
  std::uint64_t total_;
  packed_numbers firsts_;
  std::uint32_t shift_ = 0;
};

/// Adds up weights for `running_weights`; scales floating-point weights first so that their sum is below
/// 2^62.
class weight_summing {
 public:
  /// `what` names the weights in messages.
  weight_summing(std::uint64_t count, std::string what);

  /// Chooses the scale of floating-point weights by their sum.
  void scale_by(double sum);
  void add(double weight);
  void add(std::uint64_t weight);
  [[nodiscard]] shared<const running_weights> made() &&;

  [[noreturn]] void refuse(std::uint64_t sample, std::string_view weight) const;

 private:
  std::string what_;
  std::vector<std::uint64_t> before_;
  std::uint64_t count_, total_ = 0;
  double first_ = 1, second_ = 1;  // the scale, in two factors that a double can hold
};

/// The running weights of the positions before a stage, checked, with a sum below 2^63.
template <sample_values Values>
[[nodiscard]] shared<const running_weights> run_up(const Values& values, const order_input& in) {
  using value_type = typename Values::value_type;
  constexpr bool floating = std::is_floating_point_v<value_type>;
  const source_places& places = *in.places;
  weight_summing weights(in.size, values.describe());
  [[maybe_unused]] double sum = 0;
  for (std::uint64_t i = 0; i < in.size; ++i) {
    const value_type w = values[places(i)];
    if constexpr (floating) {
      if (!(w >= 0) || w - w != 0) weights.refuse(places(i), fraction_text(static_cast<double>(w)));
      sum += static_cast<double>(w);
    } else if constexpr (std::is_signed_v<value_type>) {
      if (w < 0) weights.refuse(places(i), std::to_string(w));
    }
  }
  if constexpr (floating) weights.scale_by(sum);
  for (std::uint64_t i = 0; i < in.size; ++i)
    weights.add(static_cast<std::conditional_t<floating, double, std::uint64_t>>(values[places(i)]));
  return std::move(weights).made();
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/order/detail/running_weights.ipp>
#endif
