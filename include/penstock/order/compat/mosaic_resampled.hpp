// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/compat/detail/mosaic_draw.hpp>
#include <penstock/order/compat/detail/mosaic_shuffle.hpp>
#include <penstock/order/compat/mosaic.hpp>

#include <bit>

namespace penstock::inline v0_1 {

/// The order of `mosaic_resampled`. Copies share the tables of the epochs in use; the result of `bind` needs
/// no lock.
class mosaic_resampled_order {
  using table = detail::mosaic_ids;

 public:
  using bound = detail::mosaic_bound;
  static constexpr bool repeats = true;

  mosaic_resampled_order(order_input in, const mosaic_options& options, const mosaic_sampling& sampling)
      : draw_(detail::mosaic_shards(std::move(in)), sampling, options.shuffle, options.shuffle_seed),
        options_(detail::checked_mosaic(draw_.size(), options)),
        partition_(draw_.size(), options_) {
    detail::check_enough(draw_.size(), partition_, options_);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return partition_.size(); }
  [[nodiscard]] std::uint64_t lanes() const noexcept {
    return options_.physical_nodes * options_.ranks_per_node;
  }
  [[nodiscard]] order_input output() const { return {size(), nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const {
    return {epoch, partition_, tables_.get(epoch, [&] { return made(options_.epoch + epoch); })};
  }
  /// A sample's first position; empty if the epoch does not contain it. Searches the epoch.
  [[nodiscard]] std::optional<position> position_of(position upstream) const {
    return detail::first_position(*this, upstream);
  }

 private:
  [[nodiscard]] table made(std::uint64_t epoch) const {
    detail::mosaic_drawn drawn = draw_.of(epoch);
    if (!options_.shuffle) return std::move(drawn.samples);
    table ids = detail::mosaic_shuffle(drawn.starts, options_.num_canonical_nodes, options_.shuffle_seed,
                                       epoch, options_.shuffle_block_size)
                    .make(options_.shuffle_algo);
    for (std::uint32_t& id : ids) id = drawn.samples[id];
    return ids;
  }

  detail::mosaic_draw draw_;
  mosaic_options options_;
  detail::mosaic_partition partition_;
  detail::epoch_tables<table> tables_;
};

/// The stage `mosaic_resampled({...}, {...})`.
struct mosaic_resampled_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "mosaic_resampled";
  static constexpr bool varies_by_epoch = true;

  [[nodiscard]] mosaic_resampled_order make(order_input in) const {
    return {std::move(in), options, sampling};
  }
  [[nodiscard]] std::string describe() const {
    const std::string whole = mosaic_stage{options}.describe();
    std::string what = "mosaic_resampled(";
    if (sampling.epoch_size != 0) detail::append(what, {"epoch_size ", sampling.epoch_size, ", "});
    if (!sampling.streams.empty()) detail::append(what, {sampling.streams.size(), " streams, "});
    return what + whole.substr(whole.find('(') + 1);
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    mosaic_stage{options}.fingerprint(h);
    h.add(stage_name, sampling.epoch_size, static_cast<std::uint64_t>(sampling.method), sampling.granularity);
    for (const mosaic_stream& one : sampling.streams) {
      h.add(one.shards, one.choose.has_value(), one.choose.value_or(0));
      for (const std::optional<double>& weight : {one.proportion, one.repeat})
        h.add(weight.has_value(), std::bit_cast<std::uint64_t>(weight.value_or(0)));
    }
  }

  mosaic_options options;
  mosaic_sampling sampling;
};

/// `mosaic` with the sampling of MosaicML Streaming: epochs of a different size (`epoch_size`), and streams
/// that give a `proportion` of an epoch, are taken `repeat` times, or give `choose` samples.
///
/// The source's shards are those of all streams, one stream after another; each stream says how many are its
/// own. Samples may appear several times or not at all; which ones, and in which order, matches Streaming
/// epoch by epoch.
/// A sequencer; keeps every guarantee. It must come directly after its source, like `mosaic`.
/// Cost: a table of 4 bytes per sample for each epoch in use, built by the loop's thread when an epoch
/// begins; building takes as much again, and a pass over all samples of partly drawn shards. A sample costs a
/// few divisions and one look-up. `position_of` searches the epoch.
/// Throws what `mosaic` does, and `error(errc::argument)` if the weights are of mixed kinds, are not numbers,
/// or belong to different shards. Thread-safe.
/// Source of the rules: `streaming/base/stream.py`, `sampling.py` and `dataset.py` of version 0.13, and
/// numpy's `Generator.choice`.
///
///     auto loader = source | mosaic_resampled({.num_canonical_nodes = 1, .ranks_per_node = 8, .shuffle = true},
///                                             {.streams = {{.shards = 96, .proportion = 0.8},
///                                                          {.shards = 32, .proportion = 0.2}}});
[[nodiscard]] inline mosaic_resampled_stage mosaic_resampled(const mosaic_options& options,
                                                             mosaic_sampling sampling) {
  return {options, std::move(sampling)};
}

}  // namespace penstock::inline v0_1
