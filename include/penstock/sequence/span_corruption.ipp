// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/sequence/span_corruption.hpp>

#include <cmath>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE noise_of noise_in(std::uint64_t tokens, const span_corruption_options& options) {
  if (tokens < 2) return {};
  // to the nearest even one, as numpy rounds
  const auto rounded = [](double x) { return static_cast<std::uint64_t>(std::nearbyint(x)); };
  const std::uint64_t noise =
      std::clamp(rounded(static_cast<double>(tokens) * options.rate), std::uint64_t{1}, tokens - 1);
  const double shorter = static_cast<double>(std::min(noise, tokens - noise));
  return {noise, std::max(rounded(shorter / options.mean_length), std::uint64_t{1})};
}

PENSTOCK_INLINE span_corruption_lengths lengths_of_corrupted(std::uint64_t tokens,
                                                             const span_corruption_options& options) {
  const noise_of noise = noise_in(tokens, options);
  const std::uint64_t end = options.end_token >= 0 ? 1 : 0;
  return {tokens, tokens - noise.tokens + noise.spans + end, noise.tokens + noise.spans + end};
}

PENSTOCK_INLINE void check_span_corruption(const span_corruption_options& options) {
  if (!(options.rate > 0 && options.rate < 1))
    throw error(errc::argument, "span_corruption: rate is a share of the tokens, above 0 and below 1");
  if (!(options.mean_length >= 1 && std::isfinite(options.mean_length)))
    throw error(errc::argument, "span_corruption: mean_length is at least one token, as in .mean_length = 3");
  if (options.sentinels == 0 || options.sentinel_step == 0 || options.sentinel < 0)
    throw error(
        errc::argument,
        "span_corruption: there is at least one sentinel, and each is another token, as in .sentinel = "
        "32'099, .sentinels = 100, .sentinel_step = -1");
  if (options.sentinels >= std::uint64_t{1} << 31 || options.sentinel_step > 1 << 20 ||
      options.sentinel_step < -(1 << 20) ||
      options.sentinel + static_cast<std::int64_t>(options.sentinels - 1) * options.sentinel_step < 0)
    throw error(errc::argument, {"span_corruption: ", options.sentinels, " sentinels from ", options.sentinel,
                                 " on, ", options.sentinel_step, " apart, are no tokens"});
}

PENSTOCK_INLINE void refuse_spans(std::uint64_t spans, std::uint64_t tokens, std::uint64_t sentinels) {
  throw error(errc::limit, {"span_corruption takes ", spans, " spans out of a sample of ", tokens,
                            " tokens, and there are ", sentinels,
                            " sentinels; cut samples shorter, or write a larger .mean_length"});
}

}  // namespace detail

PENSTOCK_INLINE span_corruption_lengths
compute_input_and_target_lengths(std::uint64_t inputs_length, const span_corruption_options& options) {
  detail::check_span_corruption(options);
  const auto fits = [&](std::uint64_t tokens) {
    return detail::lengths_of_corrupted(tokens, options).inputs <= inputs_length;
  };
  if (inputs_length >= std::uint64_t{1} << 40 || !fits(1))
    throw error(errc::argument,
                {"compute_input_and_target_lengths: no sample has inputs of ", inputs_length, " tokens"});
  std::uint64_t low = 1, high = 2;  // more tokens never have less inputs
  while (fits(high) && high < std::uint64_t{1} << 50) low = std::exchange(high, high * 2);
  while (high - low > 1) {
    const std::uint64_t between = low + (high - low) / 2;
    (fits(between) ? low : high) = between;
  }
  span_corruption_lengths lengths = detail::lengths_of_corrupted(low, options);
  if (options.rate == 0.5 && lengths.targets > lengths.inputs)
    lengths = detail::lengths_of_corrupted(low - 1, options);
  return lengths;
}

}  // namespace penstock::inline v0_1
