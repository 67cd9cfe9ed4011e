// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/running_weights.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE running_weights::running_weights(std::vector<std::uint64_t> before, std::uint64_t total)
    : before_(std::move(before)), total_(total), firsts_(before_.size()) {
  while (total_ >> shift_ > before_.size()) ++shift_;
  std::uint64_t at = 0;
  for (std::uint64_t stretch = 0; stretch <= ((total_ - 1) >> shift_) + 1; ++stretch) {
    while (at + 1 < before_.size() && before_[detail::to_size(at + 1)] <= stretch << shift_) ++at;
    firsts_.add(at);
  }
}

PENSTOCK_INLINE weight_summing::weight_summing(std::uint64_t count, std::string what)
    : what_(std::move(what)), count_(count) {
  before_.reserve(detail::to_size(count));
}

PENSTOCK_INLINE void weight_summing::scale_by(double sum) {
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

PENSTOCK_INLINE void weight_summing::add(double weight) {
  const auto whole = static_cast<std::uint64_t>(weight * first_ * second_);
  add(weight > 0 && whole == 0 ? 1 : whole);
}

PENSTOCK_INLINE void weight_summing::add(std::uint64_t weight) {
  if (weight >= (std::uint64_t{1} << 63) - total_) {
    throw error(errc::argument,
                {"the weights of ", what_, " add up to 2^63 or more; divide them all by a constant"})
        .in_stage("weighted");
  }
  before_.push_back(total_);
  total_ += weight;
}

PENSTOCK_INLINE shared<const running_weights> weight_summing::made() && {
  if (total_ == 0 && count_ != 0) {
    throw error(errc::argument, {"the weights of ", what_,
                                 " are all 0, so there is nothing to draw; give at least one that is not"})
        .in_stage("weighted");
  }
  return shared<const running_weights>(
      new const running_weights(std::move(before_), std::max<std::uint64_t>(1, total_)));
}

PENSTOCK_INLINE void weight_summing::refuse(std::uint64_t sample, std::string_view weight) const {
  throw error(errc::argument, {"the weight of sample ", sample, " of ", what_, " is ", weight,
                               "; weights are 0 or positive numbers"})
      .in_stage("weighted");
}

}  // namespace penstock::inline v0_1::detail
