// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/order/compat/detail/numpy_generator.hpp>
#include <penstock/order/compat/mosaic_options.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/detail/epoch_tables.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// One epoch's shuffle, by the rules of `streaming/base/shuffle/` of MosaicML Streaming: the sample ids, by
/// position, that its functions return for shards that start at `starts`.
class mosaic_shuffle {
 public:
  using ids = std::vector<std::uint32_t>;

  mosaic_shuffle(const std::vector<std::uint64_t>& starts, std::uint64_t nodes, std::uint64_t seed,
                 std::uint64_t epoch, std::uint64_t block)
      : starts_(starts), nodes_(nodes), block_(block), fixed_(seed), draw_(seed + epoch) {}

  [[nodiscard]] ids make(mosaic_algorithm algorithm);

 private:
  /// A range [first, last) of samples or places.
  struct span {
    std::uint64_t first, last;
    [[nodiscard]] std::uint64_t size() const noexcept { return last - first; }
  };

  [[nodiscard]] std::vector<span> shards() const;

  static std::uint64_t append(ids& all, span one);
  void shuffle_last(ids& all, std::uint64_t count);

  /// The spans of each canonical node; a span that crosses a node's border is cut there.
  [[nodiscard]] std::vector<std::vector<span>> divided(std::vector<span> spans) const;

  [[nodiscard]] ids twice();

  [[nodiscard]] std::uint64_t block_draw() { return draw_.integer(block_ * 3 / 4, block_ * 5 / 4); }

  void in_blocks(const std::vector<std::vector<span>>& parts, ids& all);

  /// Moves each sample of a node by a random distance, then sorts.
  void strew(const std::vector<span>& part, ids& all, std::size_t begin);

  const std::vector<std::uint64_t>& starts_;
  std::uint64_t nodes_, block_;
  numpy_generator fixed_, draw_;
};

/// Sample ids by their places in the order.
using mosaic_ids = std::vector<std::uint32_t>;

/// Streaming's partition of samples over ranks (`streaming/base/partition/orig.py`), computed arithmetically:
/// the sample at a position, where the positions of all ranks are interleaved.
class mosaic_partition {
 public:
  mosaic_partition() = default;
  mosaic_partition(std::uint64_t samples, const mosaic_options& options);

  [[nodiscard]] std::uint64_t size() const noexcept { return (on_node_ + missing_) * physical_; }
  /// Whether there are too few samples for Streaming to pad a canonical node from its own.
  [[nodiscard]] bool too_few() const noexcept {
    return !tiled_ && padding_ != 0 && each_ + 1 < ratio_ + padding_;
  }

  /// Whether the sample at this position is a duplicate that gives all ranks equally many.
  [[nodiscard]] bool pads(std::uint64_t position) const noexcept {
    const std::uint64_t world = physical_ * ranks_, rank = position % world;
    const std::uint64_t on_node = position / world * ranks_ + rank % ranks_;
    if (on_node >= on_node_) return true;
    const std::uint64_t strewn = rank / ranks_ + on_node * physical_;
    const std::uint64_t node = strewn % canonical_, place = strewn / canonical_;
    if (tiled_) return node * (each_ + padding_) + place >= samples_;
    return place >= each_ || place >= (node + 1) * samples_ / canonical_ - node * samples_ / canonical_;
  }

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

/// An epoch of Streaming: the sample at each position. Without a table, samples stay in the partition's
/// order.
struct mosaic_bound {
  std::uint64_t epoch = 0;
  mosaic_partition partition;
  shared<const mosaic_ids> table;

  [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
    const std::uint64_t at = partition(index);
    return {epoch, table ? (*table)[static_cast<std::size_t>(at)] : at};
  }
  [[nodiscard]] bool pads(std::uint64_t index) const noexcept { return partition.pads(index); }
};

[[noreturn]] void refuse_mosaic(std::initializer_list<piece> why);

void check_enough(std::uint64_t samples, const mosaic_partition& partition, const mosaic_options& o);

/// The shard boundaries; a source without shards counts as one shard.
[[nodiscard]] shared<const std::vector<std::uint64_t>> mosaic_shards(order_input in);

/// The options with all defaults filled in, for an epoch of `samples` samples.
[[nodiscard]] mosaic_options checked_mosaic(std::uint64_t samples, mosaic_options o);

}  // namespace detail

/// The order of `mosaic`: the samples of all ranks. Rank r's samples are at positions r, r + ranks and so on,
/// which form its lane. Copies share the tables of the epochs in use; the result of `bind` needs no lock.
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
  [[nodiscard]] bound bind(std::uint64_t epoch) const {
    return {epoch, partition_, options_.shuffle ? shuffled(epoch) : nullptr};
  }
  /// A sample's first position; searches the epoch.
  [[nodiscard]] std::optional<position> position_of(position upstream) const {
    return detail::first_position(*this, upstream);
  }

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
  void fingerprint(auto& h) const {
    h.add(stage_name, options.num_canonical_nodes, options.physical_nodes, options.ranks_per_node,
          std::uint64_t{options.shuffle}, static_cast<std::uint64_t>(options.shuffle_algo),
          options.shuffle_seed, options.shuffle_block_size, options.epoch);
  }

  mosaic_options options;
};

/// The order of MosaicML Streaming over the shards of the source, sample for sample, so that you can resume a
/// run that started in Streaming: its shuffles `py1e`, `py1br`, `py1s`, `py2s` and `naive`, and its partition
/// over ranks.
///
/// `mosaic({...}) | shard(rank, world) | batch(b)` gives rank r the batches of Streaming's `StreamingDataset`
/// in a `DataLoader`, with any number of DataLoader workers; rank is physical node * ranks_per_node + rank on
/// the node. An epoch contains every sample once (`mosaic_resampled` has `epoch_size`, streams and their
/// weights); the batching method is `random`. As in Streaming, samples repeat if a rank would otherwise have
/// fewer than another. To resume at Streaming's position, set it in a state: `auto at = plan.open().state();
/// at.epoch = e; at.step = sample_in_epoch / (b * world);` and `plan.open(at)`. With fewer than two samples
/// per rank left, Streaming may repeat different samples at the end.
///
/// The number of nodes may change as in Streaming. If the new number and num_canonical_nodes divide one
/// another, pass the new number as `physical_nodes` (the partition `orig`). If they do not (the partition
/// `relaxed`), pass the original nodes, `shard` by the current ranks, and keep the global batch: each rank
/// then gets its samples of every full step; only Streaming divides a last step that is not full unevenly.
///
/// A sequencer; keeps every guarantee. It uses the source's shards, so it must come directly after the
/// source; a source without shards counts as one shard.
/// Cost: with `.shuffle`, a table of 4 bytes per sample for each epoch in use (one, or two during the change
/// of epoch), built by the loop's thread when an epoch begins: for 10 million samples, 1.1 s with py1e and
/// 0.13 to 0.27 s with the others (GCC 12, -O2). While building, py1e takes another 16 bytes for each sample
/// of a canonical node, and py2s twice the table. A sample costs a few divisions and one look-up.
/// `position_of` searches the epoch.
/// Throws `error(errc::argument)` if a number is missing or inconsistent with the others,
/// `error(errc::limit)` above 2^32 samples. Thread-safe.
/// Source of the order: `streaming/base/shuffle` and `streaming/base/partition` of version 0.13, and numpy's
/// `default_rng`.
///
///     auto loader = source | mosaic({.num_canonical_nodes = 2, .physical_nodes = 2, .ranks_per_node = 8,
///                                    .shuffle = true}) | shard(rank, 16) | batch(32);
[[nodiscard]] constexpr mosaic_stage mosaic(const mosaic_options& options) noexcept { return {options}; }

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/compat/mosaic.ipp>
#endif
