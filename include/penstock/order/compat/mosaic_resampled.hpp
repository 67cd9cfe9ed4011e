// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/order/compat/detail/numpy_generator.hpp>
#include <penstock/order/compat/detail/numpy_sum.hpp>
#include <penstock/order/compat/mosaic.hpp>
#include <penstock/order/compat/mosaic_options.hpp>

#include <bit>
#include <span>

namespace penstock::inline v0_1 {

namespace detail {

/// The samples of an epoch, shard by shard, and the start of each run that is shuffled like a shard.
struct mosaic_drawn {
  std::vector<std::uint32_t> samples;
  std::vector<std::uint64_t> starts{0};
};

/// Implements Streaming's `Stream.apply_weights`, `get_sampling` and `resample_streams`.
class mosaic_draw {
 public:
  mosaic_draw(shared<const std::vector<std::uint64_t>> starts, const mosaic_sampling& sampling, bool shuffle,
              std::uint64_t seed)
      : starts_(std::move(starts)),
        granularity_(sampling.granularity),
        balanced_(sampling.method == mosaic_sampling_method::balanced),
        shuffle_(shuffle),
        seed_(seed) {
    if (starts_->back() > maximum) too_many();
    if (granularity_ == 0) refuse({"a granularity of 0 takes no samples; give 1 or more"});
    std::vector<mosaic_stream> streams = sampling.streams;
    const std::uint64_t shards = starts_->size() - 1;
    if (streams.empty()) streams.push_back({.shards = shards});
    for (const mosaic_stream& one : streams) {
      if (one.shards > shards - first_.back())
        refuse({"the streams have more than the ", shards, " shards of the source"});
      first_.push_back(first_.back() + one.shards);
    }
    if (first_.back() != shards)
      refuse({"the streams have ", first_.back(), " of the ", shards, " shards of the source"});
    weigh(streams, sampling.epoch_size);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (samples_of(i) == 0 && choose_[i] != 0)
        refuse({"stream ", i, " has no samples, but ", choose_[i], " are to be taken"});
      if (choose_[i] > maximum || (size_ += choose_[i]) > maximum) too_many();
    }
  }

  /// The number of samples in an epoch.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  [[nodiscard]] mosaic_drawn of(std::uint64_t epoch) const {
    numpy_generator random(balanced_ ? seed_ + epoch : seed_);
    mosaic_drawn drawn;
    drawn.samples.reserve(static_cast<std::size_t>(size_));
    for (std::size_t stream = 0; stream < choose_.size(); ++stream) {
      const std::vector<std::uint64_t> counts = counts_of(stream, epoch);
      for (std::size_t i = 0; i < counts.size(); ++i) take(drawn, first_[stream] + i, counts[i], random);
    }
    return drawn;
  }

  /// How many samples an epoch takes from each shard of a stream.
  [[nodiscard]] std::vector<std::uint64_t> counts_of(std::size_t stream, std::uint64_t epoch) const {
    const std::uint64_t all = samples_of(stream);
    std::vector<std::uint64_t> counts(detail::to_size(first_[stream + 1] - first_[stream]));
    if (all == 0) return counts;
    const auto size = [&](std::size_t i) { return shard_size(first_[stream] + i); };
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = size(i) * (choose_[stream] / all);
    std::uint64_t rest = choose_[stream] % all;
    if (rest == 0) return counts;
    // Cut each shard into picks, then shuffle the picks and take them until there are enough.
    std::vector<std::uint32_t> picks;
    for (std::size_t i = 0; i < counts.size(); ++i)
      picks.insert(picks.end(), detail::to_size((size(i) + granularity_ - 1) / granularity_),
                   static_cast<std::uint32_t>(i));
    // A shard's last pick may be short, so it must be recognisable after the shuffle.
    std::vector<std::uint32_t> order(picks.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
    numpy_generator(shuffle_ && balanced_ ? seed_ + epoch : seed_).shuffle(order.begin(), order.size());
    for (const std::uint32_t pick : order) {
      const std::size_t shard = picks[pick];
      const bool last = pick + 1 == picks.size() || picks[pick + 1] != picks[pick];
      const std::uint64_t whole = last ? (size(shard) - 1) % granularity_ + 1 : granularity_;
      const std::uint64_t taken = std::min(rest, whole);
      counts[shard] += taken;
      if ((rest -= taken) == 0) break;
    }
    return counts;
  }

 private:
  static constexpr std::uint64_t maximum = std::uint64_t{1} << 32;

  [[noreturn]] static void refuse(std::initializer_list<piece> why) {
    throw error(errc::argument, why).in_stage("mosaic_resampled");
  }

  [[noreturn]] static void too_many() {
    throw error(errc::limit, "a source, and an epoch of it, may have at most 2^32 samples")
        .in_stage("mosaic_resampled");
  }

  [[nodiscard]] std::uint64_t shard_size(std::uint64_t shard) const {
    return (*starts_)[detail::to_size(shard) + 1] - (*starts_)[detail::to_size(shard)];
  }
  [[nodiscard]] std::uint64_t samples_of(std::size_t stream) const {
    return (*starts_)[static_cast<std::size_t>(first_[stream + 1])] -
           (*starts_)[static_cast<std::size_t>(first_[stream])];
  }

  /// Takes `count` samples of a shard: all of them as often as they fit, then some once more.
  void take(mosaic_drawn& drawn, std::uint64_t shard, std::uint64_t count, numpy_generator& random) const {
    const std::uint64_t size = shard_size(shard);
    const auto first = static_cast<std::uint32_t>((*starts_)[detail::to_size(shard)]);
    if (count == 0) return;
    for (std::uint64_t times = count / size; times != 0; --times) {
      for (std::uint64_t i = 0; i < size; ++i) drawn.samples.push_back(first + static_cast<std::uint32_t>(i));
      drawn.starts.push_back(drawn.samples.size());
    }
    if (count % size == 0) return;
    std::vector<std::uint64_t> some = random.choice(size, count % size);
    std::sort(some.begin(), some.end());
    for (const std::uint64_t one : some) drawn.samples.push_back(first + static_cast<std::uint32_t>(one));
    drawn.starts.push_back(drawn.samples.size());
  }

  /// Determines how many samples each stream gives.
  void weigh(const std::vector<mosaic_stream>& streams, std::uint64_t epoch_size) {
    std::size_t relative = 0, absolute = 0;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const mosaic_stream& one = streams[i];
      relative += one.proportion.has_value();
      absolute += one.repeat.has_value() + one.choose.has_value();
      if (one.proportion.has_value() + one.repeat.has_value() + one.choose.has_value() > 1)
        refuse({"stream ", i, " has more than one of proportion, repeat and choose"});
      for (const double weight : {one.proportion.value_or(1), one.repeat.value_or(1)})
        if (!(weight >= 0) || weight > 0x1p53)
          refuse({"a weight of stream ", i, " is not a number from 0 to 2^53"});
    }
    if (relative != 0 && relative != streams.size())
      refuse({relative, " of ", streams.size(), " streams have a proportion; give it to all or none"});
    if (absolute != 0 && epoch_size != 0)
      refuse({"epoch_size goes with proportions, not with repeat and choose; leave one of them out"});
    if (relative != 0 || epoch_size != 0)
      return share(streams, epoch_size != 0 ? epoch_size : starts_->back());
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const double repeated = streams[i].repeat.value_or(1) * static_cast<double>(samples_of(i));
      if (repeated > 0x1p53) refuse({"stream ", i, " repeats to more than 2^53 samples"});
      choose_.push_back(streams[i].choose.value_or(static_cast<std::uint64_t>(repeated)));
    }
  }

  /// Divides an epoch in proportion; the samples lost to rounding go to randomly drawn streams.
  void share(const std::vector<mosaic_stream>& streams, std::uint64_t epoch_size) {
    if (epoch_size > maximum) too_many();
    std::vector<double> parts;
    for (std::size_t i = 0; i < streams.size(); ++i)
      parts.push_back(streams[i].proportion.value_or(static_cast<double>(samples_of(i))));
    const double all = numpy_sum(parts);
    if (!(all > 0)) refuse({"all proportions are 0"});
    std::uint64_t given = 0;
    for (const double part : parts) {
      choose_.push_back(static_cast<std::uint64_t>(static_cast<double>(epoch_size) * (part / all)));
      given += choose_.back();
    }
    if (given > epoch_size || epoch_size - given > streams.size())
      refuse({"the proportions do not divide ", epoch_size, " samples; give numbers of similar size"});
    for (const std::uint64_t stream : numpy_generator(seed_).choice(streams.size(), epoch_size - given))
      ++choose_[static_cast<std::size_t>(stream)];
  }

  shared<const std::vector<std::uint64_t>> starts_;
  std::uint64_t granularity_;
  bool balanced_, shuffle_;
  std::uint64_t seed_, size_ = 0;
  std::vector<std::uint64_t> first_{0}, choose_;
};

}  // namespace detail

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
  void fingerprint(auto& h) const {
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
