// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/compat/mosaic.hpp>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE mosaic_shuffle::ids mosaic_shuffle::make(mosaic_algorithm algorithm) {
  if (algorithm == mosaic_algorithm::naive) {
    ids all;
    append(all, {0, starts_.back()});
    draw_.shuffle(all.begin(), all.size());
    return all;
  }
  if (algorithm == mosaic_algorithm::py2s) return twice();
  std::vector<span> spans = shards();
  fixed_.shuffle(spans.begin(), spans.size());
  std::vector<std::vector<span>> parts = divided(spans);
  for (auto& part : parts) draw_.shuffle(part.begin(), part.size());
  ids all;
  all.reserve(static_cast<std::size_t>(starts_.back()));
  if (algorithm == mosaic_algorithm::py1br) {
    in_blocks(parts, all);
    return all;
  }
  for (const auto& part : parts) {
    const std::size_t begin = all.size();
    for (const span& one : part) shuffle_last(all, append(all, one));
    if (algorithm == mosaic_algorithm::py1e) strew(part, all, begin);
  }
  return all;
}

PENSTOCK_INLINE std::vector<mosaic_shuffle::span> mosaic_shuffle::shards() const {
  std::vector<span> all;
  for (std::size_t i = 1; i < starts_.size(); ++i) all.push_back({starts_[i - 1], starts_[i]});
  return all;
}

PENSTOCK_INLINE std::uint64_t mosaic_shuffle::append(ids& all, span one) {
  for (std::uint64_t id = one.first; id < one.last; ++id) all.push_back(static_cast<std::uint32_t>(id));
  return one.size();
}

PENSTOCK_INLINE void mosaic_shuffle::shuffle_last(ids& all, std::uint64_t count) {
  draw_.shuffle(all.end() - static_cast<std::ptrdiff_t>(count), count);
}

PENSTOCK_INLINE std::vector<std::vector<mosaic_shuffle::span>> mosaic_shuffle::divided(
    std::vector<span> spans) const {
  std::vector<std::vector<span>> parts(static_cast<std::size_t>(nodes_));
  std::size_t next = 0;
  std::uint64_t before = 0;
  for (std::uint64_t node = 0; node < nodes_; ++node) {
    const std::uint64_t end = starts_.back() * (node + 1) / nodes_;
    auto& part = parts[detail::to_size(node)];
    for (; next < spans.size() && before + spans[next].size() <= end; ++next) {
      part.push_back(spans[next]);
      before += spans[next].size();
    }
    if (next < spans.size() && before < end) {
      const std::uint64_t border = spans[next].first + (end - before);
      part.push_back({spans[next].first, border});
      spans[next].first = border;
      before = end;
    }
  }
  return parts;
}

PENSTOCK_INLINE mosaic_shuffle::ids mosaic_shuffle::twice() {
  std::vector<span> order = shards();
  fixed_.shuffle(order.begin(), order.size());
  ids first;
  first.reserve(static_cast<std::size_t>(starts_.back()));
  std::vector<span> places;
  for (const span& shard : order) {
    const std::uint64_t begin = first.size(), count = append(first, shard);
    fixed_.shuffle(first.begin() + static_cast<std::ptrdiff_t>(begin), count);
    places.push_back({begin, begin + count});
  }
  ids all;
  all.reserve(first.size());
  for (auto& part : divided(places)) {
    draw_.shuffle(part.begin(), part.size());
    for (const span& one : part) {
      all.insert(all.end(), first.begin() + static_cast<std::ptrdiff_t>(one.first),
                 first.begin() + static_cast<std::ptrdiff_t>(one.last));
      shuffle_last(all, one.size());
    }
  }
  return all;
}

PENSTOCK_INLINE void mosaic_shuffle::in_blocks(const std::vector<std::vector<span>>& parts, ids& all) {
  std::vector<std::uint64_t> stagger(parts.size());
  for (auto& one : stagger) one = draw_.integer(0, block_ * 3 / 4);
  std::vector<span> blocks;
  for (std::size_t node = 0; node < parts.size(); ++node) {
    const std::uint64_t begin = all.size(), back = stagger[node];
    for (const span& one : parts[node]) append(all, one);
    blocks.clear();
    // Exactly as Streaming does it: the first two blocks overlap, and the end of a node may stay
    // unshuffled.
    for (std::uint64_t end = begin; end < all.size();) {
      const std::uint64_t size = block_draw();
      const std::uint64_t first = end >= begin + back ? end - back : begin;
      const std::uint64_t last = std::min<std::uint64_t>(end + size - back, all.size());
      blocks.push_back({first, last});
      end += last - first;
    }
    for (const span& one : blocks)
      draw_.shuffle(all.begin() + static_cast<std::ptrdiff_t>(one.first), one.size());
  }
}

PENSTOCK_INLINE void mosaic_shuffle::strew(const std::vector<span>& part, ids& all, std::size_t begin) {
  struct placed {
    double at;
    std::uint32_t id;
  };
  const auto count = static_cast<double>(all.size() - begin);
  std::vector<placed> places;
  places.reserve(all.size() - begin);
  for (const span& one : part) {
    const auto offset = static_cast<double>(places.size()), size = static_cast<double>(one.size());
    const double maximum = std::max(0.0, (static_cast<double>(block_draw()) - size) / 2);
    const double low = std::max(-maximum, -offset), range = std::min(maximum, count - offset - size) - low;
    for (std::uint64_t i = 0; i < one.size(); ++i) {
      const double shift = low + range * draw_.next_double();
      places.push_back({static_cast<double>(places.size()) + shift, all[begin + places.size()]});
    }
  }
  std::sort(places.begin(), places.end(), [](const placed& a, const placed& b) { return a.at < b.at; });
  for (std::size_t i = 0; i < places.size(); ++i) all[begin + i] = places[i].id;
}

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

}  // namespace detail

PENSTOCK_INLINE mosaic_order::mosaic_order(order_input in, const mosaic_options& options)
    : samples_(in.size), options_(detail::checked_mosaic(in.size, options)), partition_(in.size, options_) {
  detail::check_enough(samples_, partition_, options_);
  starts_ = detail::mosaic_shards(std::move(in));
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
