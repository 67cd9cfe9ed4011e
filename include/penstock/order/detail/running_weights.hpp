// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/detail/arithmetic.hpp>
#include <penstock/order/detail/fraction.hpp>
#include <penstock/order/detail/kept_list.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Weights as whole numbers, summed up, and a position to begin with for the draws of each of about as many
/// stretches as there are positions: a search is short then, and stays in one place of memory.
class running_weights {
 public:
  explicit running_weights(std::vector<std::uint64_t> before, std::uint64_t total)
      : before_(std::move(before)), total_(total), firsts_(before_.size()) {
    while (total_ >> shift_ > before_.size()) ++shift_;
    std::uint64_t at = 0;
    for (std::uint64_t stretch = 0; stretch <= ((total_ - 1) >> shift_) + 1; ++stretch) {
      while (at + 1 < before_.size() && before_[static_cast<std::size_t>(at + 1)] <= stretch << shift_) ++at;
      firsts_.add(at);
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return before_.size(); }
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  /// The position whose weight has the number `drawn`, which is below the total, in it.
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

/// 2^e as a double, for e that a double has.
[[nodiscard]] inline double power_of_two(int e) noexcept {
  double value = 1;
  for (; e > 0; --e) value *= 2;
  for (; e < 0; ++e) value /= 2;
  return value;
}

/// The weights of the positions before a stage; checked, and with a sum below 2^63.
template <sample_values Values>
[[nodiscard]] std::shared_ptr<const running_weights> run_up(const Values& values, const order_input& in) {
  using value_type = typename Values::value_type;
  constexpr bool floating = std::is_floating_point_v<value_type>;
  const source_places& places = *in.places;
  const auto refuse = [&](std::uint64_t i, std::string_view what) {
    throw error(errc::argument, {"the weight of sample ", places(i), " of ", values.describe(), " is ", what,
                                 "; weights are 0 or positive numbers"})
        .in_stage("weighted");
  };
  const auto weight = [&](std::uint64_t i) { return values[places(i)]; };
  [[maybe_unused]] double sum = 0;
  for (std::uint64_t i = 0; i < in.size; ++i) {
    const value_type w = weight(i);
    if constexpr (floating) {
      if (!(w >= 0) || w - w != 0) refuse(i, fraction_text(static_cast<double>(w)));
      sum += static_cast<double>(w);
    } else if constexpr (std::is_signed_v<value_type>) {
      if (w < 0) refuse(i, std::to_string(w));
    }
  }
  // Multiplying by a power of two loses no digit but those below 1. In two steps, each of which a double has.
  double first = 1, second = 1;
  if constexpr (floating) {
    if (!(sum - sum == 0)) {
      throw error(errc::argument, {"the weights of ", values.describe(),
                                   " add up to more than a double holds; divide them by a number"})
          .in_stage("weighted");
    }
    const int exponent = static_cast<int>(bits_of(sum) >> 52 & 2047) - 1022;  // sum < 2^exponent
    first = power_of_two((62 - exponent) / 2);
    second = power_of_two(62 - exponent - (62 - exponent) / 2);
  }
  std::vector<std::uint64_t> before;
  before.reserve(static_cast<std::size_t>(in.size));
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < in.size; ++i) {
    before.push_back(total);
    const value_type w = weight(i);
    std::uint64_t whole = 0;
    if constexpr (floating) {
      whole = static_cast<std::uint64_t>(static_cast<double>(w) * first * second);
      if (w > 0 && whole == 0) whole = 1;
    } else {
      whole = static_cast<std::uint64_t>(w);
    }
    if (whole >= (std::uint64_t{1} << 63) - total) {
      throw error(errc::argument,
                  {"the weights of ", values.describe(), " add up to 2^63 or more; divide them by a number"})
          .in_stage("weighted");
    }
    total += whole;
  }
  if (total == 0 && in.size != 0) {
    throw error(errc::argument,
                {"the weights of ", values.describe(), " are all 0; there is nothing that could be drawn"})
        .in_stage("weighted");
  }
  return std::shared_ptr<const running_weights>(
      new const running_weights(std::move(before), std::max<std::uint64_t>(1, total)));
}

}  // namespace penstock::inline v0_1::detail
