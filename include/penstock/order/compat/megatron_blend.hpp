// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/concepts.hpp>

#include <bit>
#include <optional>
#include <vector>

namespace penstock::inline v0_1 {

/// What Megatron was told of a blend, for `megatron_blend`.
struct megatron_blend_options {
  /// The weights of `--data-path`, one for each dataset; empty: their sizes.
  std::vector<double> weights = {};
  /// The number of samples that was asked for; 0, without weights only: all of them.
  std::uint64_t samples = 0;
};

/// The order of `megatron_blend`. Copies share its table.
class megatron_blend_order {
  using table = std::vector<std::uint32_t>;

 public:
  struct bound {
    std::uint64_t epoch = 0;
    shared<const table> samples;

    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      return {epoch, (*samples)[detail::to_size(index)]};
    }
  };

  megatron_blend_order(const order_input& in, const megatron_blend_options& options);

  [[nodiscard]] std::uint64_t size() const noexcept { return samples_->size(); }
  [[nodiscard]] order_input output() const { return {size(), nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const { return {epoch, samples_}; }
  /// A sample's position; empty if the blend does not contain it. Searches the table.
  [[nodiscard]] std::optional<position> position_of(position upstream) const;

 private:
  shared<const table> samples_;  // by position: the sample of the datasets together
};

/// The stage `megatron_blend({...})`.
struct megatron_blend_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "megatron_blend";

  [[nodiscard]] megatron_blend_order make(const order_input& in) const { return {in, options}; }
  [[nodiscard]] std::string describe() const {
    return detail::text(
        {"megatron_blend(", options.weights.size(), " weights, ", options.samples, " samples)"});
  }
  void fingerprint(auto& h) const {
    h.add(stage_name, options.samples);
    for (const double weight : options.weights) h.add(std::bit_cast<std::uint64_t>(weight));
  }

  megatron_blend_options options;
};

/// The order of Megatron-LM's `BlendedDataset`, sample for sample: which dataset each sample is from. Each
/// shard of the source is one dataset, as those of a `concat` of `megatron_gpt` are.
///
///     const std::vector<double> weights{0.3, 0.7};
///     const auto each = megatron_blend_samples(weights, 1000);
///     auto blend = concat(web, books) | megatron_blend({.weights = weights, .samples = 1000}) | batch(8);
///
/// `web` and `books` are then made with `.samples = each[0]` and `each[1]`, which are the numbers that
/// Megatron builds. With weights there are as many samples as Megatron's rounding makes of `samples`, and
/// `take(n)` ends at n; without, at most all of them.
/// A sequencer; keeps every guarantee.
/// Cost: a table of 4 bytes for each sample, built when the plan is opened by a look at each weight for each
/// sample. A sample costs one look-up; `position_of` searches the table.
/// Throws `error(errc::argument)` if there are not as many weights as shards, for a weight that is not a
/// number of 0 or more, for weights without `samples`, for more than 2^32 samples, and, as Megatron does, if
/// a dataset has fewer samples than the blend takes of it. Thread-safe.
/// Source: megatron/core/datasets/{blended_dataset,blended_megatron_dataset_builder}.py and helpers.cpp, of
/// megatron-core 0.16.1.
[[nodiscard]] inline megatron_blend_stage megatron_blend(megatron_blend_options options) {
  return {std::move(options)};
}

/// For each dataset of a blend the number of samples that Megatron asks of it, which is that of its share of
/// `samples` and `mid_level_dataset_surplus` more.
[[nodiscard]] std::vector<std::uint64_t> megatron_blend_samples(const std::vector<double>& weights,
                                                                std::uint64_t samples,
                                                                double surplus = 0.005);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/compat/megatron_blend.ipp>
#endif
