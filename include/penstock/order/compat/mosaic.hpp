// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/order/compat/mosaic_options.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/detail/epoch_tables.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// Samples by their places in the order.
using mosaic_ids = std::vector<std::uint32_t>;

/// Streaming's partition of samples over ranks (`streaming/base/partition/orig.py`), as arithmetic: which one
/// stands at a position, where the positions of all ranks are interleaved.
class mosaic_partition {
 public:
  mosaic_partition() = default;
  mosaic_partition(std::uint64_t samples, const mosaic_options& options);

  [[nodiscard]] std::uint64_t size() const noexcept { return (on_node_ + missing_) * physical_; }
  /// Whether there are so few samples that Streaming cannot pad a canonical node with its own.
  [[nodiscard]] bool too_few() const noexcept {
    return !tiled_ && padding_ != 0 && each_ + 1 < ratio_ + padding_;
  }

  /// Whether a sample that stands elsewhere stands here too, so that all ranks have as many.
  [[nodiscard]] bool pads(std::uint64_t position) const noexcept;

  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const noexcept {
    const std::uint64_t world = physical_ * ranks_, rank = position % world;
    std::uint64_t on_node = position / world * ranks_ + rank % ranks_;
    if (on_node >= on_node_) {
      const std::uint64_t over = on_node - on_node_;
      on_node = ranks_ + missing_ <= on_node_ + 1 ? on_node_ + 1 - ranks_ - missing_ + over : over % on_node_;
    }
    const std::uint64_t strewn = rank / ranks_ + on_node * physical_;
    return on_canonical(strewn % canonical_, strewn / canonical_);
  }

 private:
  [[nodiscard]] std::uint64_t on_canonical(std::uint64_t node, std::uint64_t place) const noexcept {
    if (tiled_) return (node * (each_ + padding_) + place) % samples_;
    if (place >= each_) place = place - ratio_ + 1 - padding_;
    const std::uint64_t first = node * samples_ / canonical_, last = (node + 1) * samples_ / canonical_;
    return first + place - (place + 1 == each_ && last - first < each_ ? 1 : 0);
  }

  std::uint64_t samples_ = 0, canonical_ = 1, physical_ = 1, ranks_ = 1;
  std::uint64_t each_ = 0, ratio_ = 1, padding_ = 0, on_node_ = 0, missing_ = 0;
  bool tiled_ = false;
};

/// An epoch of Streaming's: which sample stands at a position. Without a table they stand as they are.
class mosaic_bound {
  using table = mosaic_ids;

 public:
  mosaic_bound() = default;
  mosaic_bound(std::uint64_t epoch, const mosaic_partition& part, shared<const table> made)
      : epoch_(epoch), partition_(part), table_(made.get()), owner_(std::move(made)) {}

  [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
    const std::uint64_t at = partition_(index);
    return {epoch_, table_ == nullptr ? at : (*table_)[static_cast<std::size_t>(at)]};
  }
  [[nodiscard]] bool pads(std::uint64_t index) const noexcept { return partition_.pads(index); }

 private:
  std::uint64_t epoch_ = 0;
  mosaic_partition partition_;
  const table* table_ = nullptr;
  shared<const table> owner_;
};

[[noreturn]] void refuse_mosaic(std::initializer_list<piece> why);

void check_enough(std::uint64_t samples, const mosaic_partition& partition, const mosaic_options& o);
/// Where shards begin; without shards all samples are one.
[[nodiscard]] shared<const std::vector<std::uint64_t>> mosaic_shards(order_input in);

/// The options with what was left to us, for an epoch of so many samples.
[[nodiscard]] mosaic_options checked_mosaic(std::uint64_t samples, mosaic_options o);

}  // namespace detail

/// The order of `mosaic`: the samples of all ranks, rank r's at the positions r, r + ranks and so on, which
/// are its lane. Copies share the tables of the epochs in use; what `bind` returns needs no lock.
class mosaic_order {
  using table = detail::mosaic_ids;

 public:
  using bound = detail::mosaic_bound;

  mosaic_order(order_input in, const mosaic_options& options);

  [[nodiscard]] std::uint64_t size() const noexcept { return partition_.size(); }
  [[nodiscard]] std::uint64_t lanes() const noexcept {
    return options_.physical_nodes * options_.ranks_per_node;
  }
  [[nodiscard]] order_input output() const { return {size(), nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const;
  /// Where a sample stands first; looks through the epoch.
  [[nodiscard]] std::optional<position> position_of(position upstream) const;

 private:
  [[nodiscard]] shared<const table> shuffled(std::uint64_t epoch) const;

  std::uint64_t samples_;
  mosaic_options options_;
  detail::mosaic_partition partition_;
  shared<const std::vector<std::uint64_t>> starts_;
  detail::epoch_tables<table> tables_;
};

/// The stage `mosaic({...})`.
struct mosaic_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "mosaic";
  static constexpr bool varies_by_epoch = true;

  [[nodiscard]] mosaic_order make(order_input in) const { return {std::move(in), options}; }
  [[nodiscard]] std::string describe() const;
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, options.num_canonical_nodes, options.physical_nodes, options.ranks_per_node,
          std::uint64_t{options.shuffle}, static_cast<std::uint64_t>(options.shuffle_algo),
          options.shuffle_seed, options.shuffle_block_size, options.epoch);
  }

  mosaic_options options;
};

namespace detail {
struct mosaic_fn {
  [[nodiscard]] constexpr mosaic_stage operator()(const mosaic_options& options) const noexcept {
    return {options};
  }
};
}  // namespace detail

/// The order of MosaicML Streaming over the shards of the source, sample for sample, so that a run that began
/// there goes on here: its shuffles `py1e`, `py1br`, `py1s`, `py2s` and `naive`, and its partition over
/// ranks.
///
/// `mosaic({...}) | shard(rank, world) | batch(b)` gives rank r the batches of Streaming's `StreamingDataset`
/// in a `DataLoader`, with any number of workers there; rank is physical node * ranks_per_node + rank on the
/// node. An epoch has every sample once (`mosaic_resampled` has `epoch_size`, streams and their
/// weights); the batching method is `random`. Where a rank would have less than another,
/// samples come twice, as there. Where the run stands in Streaming is a state: `auto at =
/// plan.open().state(); at.epoch = e; at.step = sample_in_epoch / (b * world);` and `plan.open(at)`; with
/// less than two samples a rank left, Streaming may repeat other ones at the end.
///
/// On another number of nodes, as Streaming has it: where it and num_canonical_nodes divide one another, give
/// it as `physical_nodes` (the partition `orig`). Where they do not (the partition `relaxed`), give the nodes
/// of the beginning, `shard` the ranks of now, and keep the global batch: each rank has its samples of every
/// full step. A last step that is not full is divided evenly here, and there as it comes.
///
/// A sequencer; keeps every guarantee. Shards are those of the source, so it stands right behind it; without
/// shards all samples are one.
/// Cost: with `.shuffle` a table of 4 bytes a sample for each epoch in use (one, two while one epoch goes
/// over into the next), made by the thread of the loop when an epoch begins: of 10 million samples in 1.1 s
/// with py1e, 0.13 to 0.27 s with the others (GCC 12, -O2). Meanwhile py1e takes 16 bytes more for each
/// sample of a canonical node, py2s twice the table. A sample costs some divisions and one look-up.
/// `position_of` looks through the epoch.
/// Throws `error(errc::argument)` where a number is missing or does not go with the others,
/// `error(errc::limit)` above 2^32 samples. Free for all threads.
/// Source of the order: `streaming/base/shuffle` and `streaming/base/partition` of version 0.13, and numpy's
/// `default_rng`.
///
///     auto loader = source | mosaic({.num_canonical_nodes = 2, .physical_nodes = 2, .ranks_per_node = 8,
///                                    .shuffle = true}) | shard(rank, 16) | batch(32);
inline constexpr detail::mosaic_fn mosaic{};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/compat/mosaic.ipp>
#endif
