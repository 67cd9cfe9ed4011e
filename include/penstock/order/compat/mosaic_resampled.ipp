// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/compat/mosaic_resampled.hpp>

#include <penstock/core/message.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE mosaic_resampled_order::mosaic_resampled_order(order_input in, const mosaic_options& options,
                                                               const mosaic_sampling& sampling)
    : draw_(detail::mosaic_shards(std::move(in)), sampling, options.shuffle, options.shuffle_seed),
      options_(detail::checked_mosaic(draw_.size(), options)),
      partition_(draw_.size(), options_) {
  detail::check_enough(draw_.size(), partition_, options_);
}

PENSTOCK_INLINE mosaic_resampled_order::bound mosaic_resampled_order::bind(std::uint64_t epoch) const {
  return {epoch, partition_, tables_.get(epoch, [&] { return made(options_.epoch + epoch); })};
}

PENSTOCK_INLINE std::optional<position> mosaic_resampled_order::position_of(position upstream) const {
  const bound all = bind(upstream.epoch);
  for (std::uint64_t at = 0; at < size(); ++at)
    if (all(at).index == upstream.index) return position{upstream.epoch, at};
  return std::nullopt;
}

PENSTOCK_INLINE mosaic_resampled_order::table mosaic_resampled_order::made(std::uint64_t epoch) const {
  detail::mosaic_drawn drawn = draw_.of(epoch);
  if (!options_.shuffle) return std::move(drawn.samples);
  table ids = detail::mosaic_shuffle(drawn.starts, options_.num_canonical_nodes, options_.shuffle_seed, epoch,
                                     options_.shuffle_block_size)
                  .make(options_.shuffle_algo);
  for (std::uint32_t& id : ids) id = drawn.samples[id];
  return ids;
}

PENSTOCK_INLINE std::string mosaic_resampled_stage::describe() const {
  const std::string whole = mosaic_stage{options}.describe();
  std::string what = "mosaic_resampled(";
  if (sampling.epoch_size != 0) detail::append(what, {"epoch_size ", sampling.epoch_size, ", "});
  if (!sampling.streams.empty()) detail::append(what, {sampling.streams.size(), " streams, "});
  return what + whole.substr(whole.find('(') + 1);
}

}  // namespace penstock::inline v0_1
