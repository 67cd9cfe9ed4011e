// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/compat/mosaic.hpp>

#include <penstock/order/compat/detail/mosaic_shuffle.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE mosaic_partition::mosaic_partition(std::uint64_t samples, const mosaic_options& options)
    : samples_(samples),
      canonical_(options.num_canonical_nodes),
      physical_(options.physical_nodes),
      ranks_(options.ranks_per_node) {
  each_ = (samples_ + canonical_ - 1) / canonical_;
  ratio_ = canonical_ < physical_ ? physical_ / canonical_ : 1;
  padding_ = (ratio_ - each_ % ratio_) % ratio_;
  tiled_ = samples_ < canonical_ || (samples_ == canonical_ && canonical_ < physical_);
  on_node_ = canonical_ * (each_ + padding_) / physical_;
  missing_ = (ranks_ - on_node_ % ranks_) % ranks_;
}

PENSTOCK_INLINE bool mosaic_partition::pads(std::uint64_t position) const noexcept {
  const std::uint64_t world = physical_ * ranks_, rank = position % world;
  const std::uint64_t on_node = position / world * ranks_ + rank % ranks_;
  if (on_node >= on_node_) return true;
  const std::uint64_t strewn = rank / ranks_ + on_node * physical_;
  const std::uint64_t node = strewn % canonical_, place = strewn / canonical_;
  if (tiled_) return node * (each_ + padding_) + place >= samples_;
  return place >= each_ || place >= (node + 1) * samples_ / canonical_ - node * samples_ / canonical_;
}

PENSTOCK_INLINE void refuse_mosaic(std::initializer_list<piece> why) {
  throw error(errc::argument, why).in_stage("mosaic");
}

PENSTOCK_INLINE void check_enough(std::uint64_t samples, const mosaic_partition& partition,
                                  const mosaic_options& o) {
  if (samples == 0 || !partition.too_few()) return;
  refuse_mosaic({samples, " samples are too few for ", o.num_canonical_nodes, " canonical and ",
                 o.physical_nodes, " physical nodes; give fewer nodes"});
}

PENSTOCK_INLINE shared<const std::vector<std::uint64_t>> mosaic_shards(order_input in) {
  shared<const std::vector<std::uint64_t>> starts = std::move(in.starts);
  if (!starts) starts.reset(new const std::vector<std::uint64_t>(std::vector<std::uint64_t>{0, in.size}));
  if (starts->empty() || starts->front() != 0 || starts->back() != in.size)
    refuse_mosaic({"shard boundaries do not run from 0 to ", in.size});
  return starts;
}

PENSTOCK_INLINE mosaic_options checked_mosaic(std::uint64_t samples, mosaic_options o) {
  constexpr std::uint64_t max_ranks = std::uint64_t{1} << 24, max_samples = std::uint64_t{1} << 32;
  if (o.num_canonical_nodes == 0 || o.ranks_per_node == 0) {
    refuse_mosaic({o.ranks_per_node == 0 ? "ranks_per_node" : "num_canonical_nodes",
                   " is not given; write mosaic({.num_canonical_nodes = c, .physical_nodes = p, "
                   ".ranks_per_node = r}) with the numbers that Streaming had"});
  }
  if (o.num_canonical_nodes > max_ranks) refuse_mosaic({"num_canonical_nodes is not in [1, 2^24]"});
  if (o.physical_nodes == 0 || o.physical_nodes > max_ranks || o.ranks_per_node > max_ranks ||
      o.physical_nodes * o.ranks_per_node > max_ranks)
    refuse_mosaic({"physical_nodes * ranks_per_node is not in [1, 2^24]"});
  if (o.num_canonical_nodes % o.physical_nodes != 0 && o.physical_nodes % o.num_canonical_nodes != 0) {
    refuse_mosaic({"neither of ", o.num_canonical_nodes, " canonical and ", o.physical_nodes,
                   " physical nodes divides the other; give the physical nodes with which the run began"});
  }
  if (samples > max_samples) {
    throw error(errc::limit, {"mosaic orders at most 2^32 samples, not ", samples}).in_stage("mosaic");
  }
  if (o.shuffle_block_size == 0)
    o.shuffle_block_size = std::max<std::uint64_t>(4'000'000 / o.num_canonical_nodes, 1u << 18);
  if (o.shuffle_block_size > max_samples)
    refuse_mosaic({"shuffle_block_size ", o.shuffle_block_size, " is not in [1, 2^32]"});
  if (o.shuffle && o.shuffle_algo == mosaic_algorithm::py1br && o.shuffle_block_size == 1)
    refuse_mosaic({"py1br cannot use a shuffle_block_size of 1, nor can Streaming; give 2 or more"});
  if (o.shuffle && o.shuffle_algo == mosaic_algorithm::py1e && samples != 0 &&
      samples < o.num_canonical_nodes) {
    refuse_mosaic({"py1e needs a sample for each canonical node, and ", samples, " are fewer than ",
                   o.num_canonical_nodes, "; give fewer canonical nodes"});
  }
  return o;
}

}  // namespace penstock::inline v0_1::detail

namespace penstock::inline v0_1 {

PENSTOCK_INLINE mosaic_order::mosaic_order(order_input in, const mosaic_options& options)
    : samples_(in.size), options_(detail::checked_mosaic(in.size, options)), partition_(in.size, options_) {
  detail::check_enough(samples_, partition_, options_);
  starts_ = detail::mosaic_shards(std::move(in));
}

PENSTOCK_INLINE mosaic_order::bound mosaic_order::bind(std::uint64_t epoch) const {
  return {epoch, partition_, options_.shuffle ? shuffled(epoch) : nullptr};
}

PENSTOCK_INLINE shared<const mosaic_order::table> mosaic_order::shuffled(std::uint64_t epoch) const {
  return tables_.get(epoch, [&] {
    return detail::mosaic_shuffle(*starts_, options_.num_canonical_nodes, options_.shuffle_seed,
                                  options_.epoch + epoch, options_.shuffle_block_size)
        .make(options_.shuffle_algo);
  });
}

PENSTOCK_INLINE std::string mosaic_stage::describe() const {
  return detail::text({"mosaic(", options.num_canonical_nodes, " canonical nodes, ", options.physical_nodes,
                       " x ", options.ranks_per_node, " ranks, ",
                       options.shuffle ? to_string(options.shuffle_algo) : std::string_view("in order"),
                       options.shuffle ? ", seed " + std::to_string(options.shuffle_seed) : "",
                       options.epoch == 0 ? "" : ", epochs from " + std::to_string(options.epoch), ")"});
}

}  // namespace penstock::inline v0_1
