// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_seed.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/detail/fraction.hpp>
#include <penstock/order/detail/position_list.hpp>
#include <penstock/order/sample_list.hpp>

#include <cmath>

namespace penstock::inline v0_1 {

namespace detail {

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

/// The running weights of the positions before a stage, checked, with a sum below 2^63. Floating-point
/// weights are scaled so that it is below 2^62.
template <sample_values Values>
[[nodiscard]] shared<const running_weights> run_up(const Values& values, const order_input& in) {
  using value_type = typename Values::value_type;
  constexpr bool floating = std::is_floating_point_v<value_type>;
  const source_places& places = *in.places;
  const auto refuse = [&](std::string_view why) {
    throw error(errc::argument, {"the weights of ", values.describe(), why}).in_stage("weighted");
  };
  const auto refuse_one = [&](std::uint64_t sample, std::string_view weight) {
    throw error(errc::argument, {"the weight of sample ", sample, " of ", values.describe(), " is ", weight,
                                 "; weights are 0 or positive numbers"})
        .in_stage("weighted");
  };
  [[maybe_unused]] double sum = 0, first = 1, second = 1;  // the scale is two factors that a double can hold
  for (std::uint64_t i = 0; i < in.size; ++i) {
    const value_type w = values[places(i)];
    if constexpr (floating) {
      if (!(w >= 0) || w - w != 0) refuse_one(places(i), fraction_text(static_cast<double>(w)));
      sum += static_cast<double>(w);
    } else if constexpr (std::is_signed_v<value_type>) {
      if (w < 0) refuse_one(places(i), std::to_string(w));
    }
  }
  if constexpr (floating) {
    if (!(sum - sum == 0)) refuse(" add up to more than a double holds; divide them all by a constant");
    // Multiplying by a power of two loses no digits except those below 1.
    const int exponent = static_cast<int>(bits_of(sum) >> 52 & 2047) - 1022;  // sum < 2^exponent
    first = std::ldexp(1.0, (62 - exponent) / 2);
    second = std::ldexp(1.0, 62 - exponent - (62 - exponent) / 2);
  }
  std::uint64_t total = 0;
  std::vector<std::uint64_t> before;
  before.reserve(detail::to_size(in.size));
  for (std::uint64_t i = 0; i < in.size; ++i) {
    const value_type w = values[places(i)];
    std::uint64_t weight = 0;
    if constexpr (floating)
      weight = std::max<std::uint64_t>(static_cast<std::uint64_t>(static_cast<double>(w) * first * second),
                                       static_cast<double>(w) > 0 ? 1 : 0);
    else
      weight = static_cast<std::uint64_t>(w);
    if (weight >= (std::uint64_t{1} << 63) - total)
      refuse(" add up to 2^63 or more; divide them all by a constant");
    before.push_back(total);
    total += weight;
  }
  if (total == 0 && in.size != 0)
    refuse(" are all 0, so there is nothing to draw; give at least one that is not");
  return shared<const running_weights>(
      new const running_weights(std::move(before), std::max<std::uint64_t>(1, total)));
}

}  // namespace detail

/// The options of `weighted`.
struct weighted_options {
  std::uint64_t num_samples = 0;  ///< positions per epoch, up to 2^62; 0: as many as before the stage
};

/// The order of `weighted(values, seed(7))`: num_samples with replacement.
class weighted_order {
 public:
  static constexpr bool repeats = true;

  struct bound {
    std::uint64_t epoch = 0, seed = 0;
    shared<const detail::running_weights> weights;

    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      return {epoch, (*weights)(rng(seed, epoch, index, stream).below(weights->total()))};
    }
  };

  weighted_order(shared<const detail::running_weights> weights, std::uint64_t seed, std::uint64_t num_samples)
      : seed_(seed), size_(num_samples), weights_(std::move(weights)) {
    if (size_ > maximum) {
      throw error(errc::argument,
                  {size_, " num_samples are more than 2^62; write repeat() for epochs without end"})
          .in_stage("weighted");
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] order_input output() const { return {size_, nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const { return {epoch, seed_, weights_}; }
  /// The first position at which the epoch num_samples a sample; empty if it does not. Searches the
  /// num_samples.
  [[nodiscard]] std::optional<position> position_of(position upstream) const {
    if (upstream.index >= weights_->size()) return std::nullopt;
    return detail::first_position(*this, upstream);
  }

 private:
  static constexpr std::uint64_t maximum = std::uint64_t{1} << 62;
  static constexpr std::uint64_t stream = 0x7765696768746564u;  // no other stage of a chain uses this one

  std::uint64_t seed_, size_;
  shared<const detail::running_weights> weights_;
};

/// The stage `weighted(values, seed(7))`.
template <sample_values Values>
struct weighted_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "weighted";
  static constexpr bool varies_by_epoch = true;
  static constexpr bool wants_places = true;
  static_assert(std::is_arithmetic_v<typename Values::value_type>, "penstock: weights are numbers");

  [[nodiscard]] weighted_order make(const order_input& in) const {
    detail::check_places(in, values.size(), values.dataset(), values.describe(), stage_name);
    return {detail::run_up(values, in), seed, num_samples == 0 || in.size == 0 ? in.size : num_samples};
  }
  [[nodiscard]] constexpr std::uint64_t plan_seed() const noexcept { return seed; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"weighted(", values.describe(), ", seed ", seed,
                         num_samples == 0 ? "" : ", num_samples " + std::to_string(num_samples), ")"});
  }
  void fingerprint(auto& h) const { h.add(stage_name, seed, num_samples, values.fingerprint()); }

  Values values;
  std::uint64_t seed = 0;
  std::uint64_t num_samples = 0;
};

namespace detail {
struct weighted_fn {
  template <sample_values Values>
  [[nodiscard]] weighted_stage<Values> operator()(const Values& values, any_seed seed,
                                                  const weighted_options& options = {}) const {
    return {values, seed.value(), options.num_samples};
  }
  template <class T>
  [[nodiscard]] weighted_stage<sample_list<T>> operator()(std::vector<T> weights, any_seed seed,
                                                          const weighted_options& options = {}) const {
    return {sample_list<T>(std::move(weights)), seed.value(), options.num_samples};
  }
};
}  // namespace detail

/// Draws samples with replacement, in proportion to their weights: `weighted(weights, seed(7))`, or with
/// `{.num_samples = k}` for an epoch of k positions instead of one per sample.
///
/// Draw i of epoch e depends only on (seed, e, i): no generator state is advanced.
/// In: weights, given like the values of `subset` or as a vector; finite, not negative, not all 0. Whole
/// numbers are exact; floating-point weights are rounded to multiples of 2^-62 of their sum, and those that
/// are not 0 become at least one such multiple. Out: positions; the stages after it see one shard, and reads
/// are single and random. It replaces `shuffle` and may appear wherever `subset` may.
/// A sequencer; keeps every guarantee. Uses at most 16 bytes per sample, built when the plan is opened; a
/// position costs a random number and a short search (docs/order.md). `position_of` returns the first draw of
/// a sample and searches the num_samples.
/// Throws `error(errc::argument)` as `subset` does; for a weight that is negative, NaN or infinite, naming
/// its sample; for weights that are all 0; and for whole-number weights whose sum is 2^63 or more.
/// Thread-safe.
///
///     auto loader = source | weighted(importance, seed(7), {.num_samples = 100'000}) | shard(rank, world_size) | batch(256);
inline constexpr detail::weighted_fn weighted{};

}  // namespace penstock::inline v0_1
