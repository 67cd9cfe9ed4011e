// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/compat/megatron_blend.hpp>

#include <penstock/core/error.hpp>
#include <penstock/order/compat/detail/numpy_sum.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

[[noreturn, gnu::cold]] PENSTOCK_INLINE void refuse_blend(std::initializer_list<piece> why) {
  throw error(errc::argument, why).in_stage("megatron_blend");
}

PENSTOCK_INLINE std::vector<double> normal_weights(std::vector<double> weights) {
  for (const double one : weights)
    if (!(one >= 0) || one > 0x1p53) refuse_blend({"a weight is not a number from 0 to 2^53"});
  const double sum = numpy_sum(weights);
  if (!(sum > 0)) refuse_blend({"all weights are 0"});
  for (double& one : weights) one /= sum;
  return weights;
}

// The next dataset: that which lacks most of its share after `before` samples. `lacking` are those to look
// at.
PENSTOCK_INLINE std::size_t furthest_behind(const std::vector<double>& weights,
                                            const std::vector<std::uint64_t>& taken,
                                            const std::vector<std::size_t>& lacking, std::uint64_t before) {
  const double so_far = std::max(static_cast<double>(before), 1.0);
  std::size_t found = lacking.front();
  double most = std::numeric_limits<double>::lowest();
  for (const std::size_t i : lacking) {
    // rounded by itself: fused with the subtraction, as compilers may do, it could choose another dataset
    const volatile double share = weights[i] * so_far;
    if (const double behind = share - static_cast<double>(taken[i]); behind > most) {
      most = behind;
      found = i;
    }
  }
  return found;
}

PENSTOCK_INLINE std::vector<std::uint64_t> blend_shares(const std::vector<double>& normal,
                                                        std::uint64_t samples, double surplus) {
  std::vector<std::uint64_t> shares;
  for (const double weight : normal)
    shares.push_back(static_cast<std::uint64_t>(
        std::ceil(std::ceil(static_cast<double>(samples) * weight) * (1 + surplus))));
  return shares;
}

}  // namespace detail

PENSTOCK_INLINE std::vector<std::uint64_t> megatron_blend_samples(const std::vector<double>& weights,
                                                                  std::uint64_t samples, double surplus) {
  if (samples > 0xffffffff || !(surplus >= 0) || surplus > 1000)
    detail::refuse_blend(
        {samples, " samples and a surplus of ", detail::number_text(surplus), " are too many"});
  return detail::blend_shares(detail::normal_weights(weights), samples, surplus);
}

PENSTOCK_INLINE megatron_blend_order::megatron_blend_order(const order_input& in,
                                                           const megatron_blend_options& options) {
  constexpr std::uint64_t maximum = 0xffffffff;
  if (in.size > maximum || options.samples > maximum)
    detail::refuse_blend({std::max(in.size, options.samples), " samples are more than 2^32 - 1"});
  const std::vector<std::uint64_t> firsts = in.starts ? *in.starts : std::vector<std::uint64_t>{0, in.size};
  const std::size_t count = firsts.size() - 1;
  const bool by_size = options.weights.empty(), all = by_size && options.samples == 0;
  if (!by_size && options.weights.size() != count)
    detail::refuse_blend({options.weights.size(), " weights do not fit ", count, " datasets"});
  if (!by_size && options.samples == 0) detail::refuse_blend({"weights need a number of samples"});
  if (count > 32767) detail::refuse_blend({count, " datasets are more than Megatron can number"});

  std::vector<double> weights = options.weights;
  std::uint64_t samples = in.size;
  if (by_size) {
    for (std::size_t i = 0; i < count; ++i) weights.push_back(static_cast<double>(firsts[i + 1] - firsts[i]));
    if (!all) samples = std::min(samples, options.samples);
  } else {
    weights = detail::normal_weights(std::move(weights));
    samples = 0;
    for (const std::uint64_t share : detail::blend_shares(weights, options.samples, 0)) samples += share;
    if (samples > maximum) detail::refuse_blend({samples, " samples are more than 2^32 - 1"});
  }
  if (in.size == 0) detail::refuse_blend({"the datasets have no samples"});
  weights = detail::normal_weights(std::move(weights));  // once more, as Megatron does

  std::vector<std::uint64_t> taken(count);
  std::vector<std::size_t> lacking(count);
  for (std::size_t i = 0; i < count; ++i) lacking[i] = i;
  table made;
  made.reserve(detail::to_size(samples));
  for (std::uint64_t before = 0; before < samples; ++before) {
    const std::size_t i = detail::furthest_behind(weights, taken, lacking, before);
    if (firsts[i] + taken[i] == firsts[i + 1])
      detail::refuse_blend({"the blend takes more samples of dataset ", i, " than the ", taken[i],
                            " it has; make it with as many as megatron_blend_samples says"});
    made.push_back(static_cast<std::uint32_t>(firsts[i] + taken[i]++));
    if (all && firsts[i] + taken[i] == firsts[i + 1]) std::erase(lacking, i);
  }
  samples_.reset(new const table(std::move(made)));
}

PENSTOCK_INLINE std::optional<position> megatron_blend_order::position_of(position upstream) const {
  const auto found = std::find(samples_->begin(), samples_->end(), upstream.index);
  if (found == samples_->end()) return std::nullopt;
  return position{upstream.epoch, static_cast<std::uint64_t>(found - samples_->begin())};
}

}  // namespace penstock::inline v0_1
