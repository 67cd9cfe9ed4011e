// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_seed.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/detail/running_weights.hpp>
#include <penstock/order/sample_list.hpp>

namespace penstock::inline v0_1 {

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
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, seed, num_samples, values.fingerprint());
  }

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
