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
  explicit running_weights(std::vector<std::uint64_t> before, std::uint64_t total)
      : before_(std::move(before)), total_(total), firsts_(before_.size()) {
    while (total_ >> shift_ > before_.size()) ++shift_;
    std::uint64_t at = 0;
    for (std::uint64_t stretch = 0; stretch <= ((total_ - 1) >> shift_) + 1; ++stretch) {
      while (at + 1 < before_.size() && before_[detail::to_size(at + 1)] <= stretch << shift_) ++at;
      firsts_.add(at);
    }
  }

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
  weight_summing(std::uint64_t count, std::string what) : what_(std::move(what)), count_(count) {
    before_.reserve(detail::to_size(count));
  }

  /// Chooses the scale of floating-point weights by their sum.
  void scale_by(double sum) {
    if (!(sum - sum == 0)) {
      throw error(errc::argument, {"the weights of ", what_,
                                   " add up to more than a double holds; divide them all by a constant"})
          .in_stage("weighted");
    }
    const auto power_of_two = [](int e) {
      double value = 1;
      for (; e > 0; --e) value *= 2;
      for (; e < 0; ++e) value /= 2;
      return value;
    };
    // Multiplying by a power of two loses no digits except those below 1.
    const int exponent = static_cast<int>(bits_of(sum) >> 52 & 2047) - 1022;  // sum < 2^exponent
    first_ = power_of_two((62 - exponent) / 2);
    second_ = power_of_two(62 - exponent - (62 - exponent) / 2);
  }
  void add(double weight) {
    const auto whole = static_cast<std::uint64_t>(weight * first_ * second_);
    add(weight > 0 && whole == 0 ? 1 : whole);
  }
  void add(std::uint64_t weight) {
    if (weight >= (std::uint64_t{1} << 63) - total_) {
      throw error(errc::argument,
                  {"the weights of ", what_, " add up to 2^63 or more; divide them all by a constant"})
          .in_stage("weighted");
    }
    before_.push_back(total_);
    total_ += weight;
  }
  [[nodiscard]] shared<const running_weights> made() && {
    if (total_ == 0 && count_ != 0) {
      throw error(errc::argument, {"the weights of ", what_,
                                   " are all 0, so there is nothing to draw; give at least one that is not"})
          .in_stage("weighted");
    }
    return shared<const running_weights>(
        new const running_weights(std::move(before_), std::max<std::uint64_t>(1, total_)));
  }

  [[noreturn]] void refuse(std::uint64_t sample, std::string_view weight) const {
    throw error(errc::argument, {"the weight of sample ", sample, " of ", what_, " is ", weight,
                                 "; weights are 0 or positive numbers"})
        .in_stage("weighted");
  }

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
