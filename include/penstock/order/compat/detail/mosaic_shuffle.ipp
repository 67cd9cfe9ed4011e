// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/compat/detail/mosaic_shuffle.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE mosaic_shuffle::mosaic_shuffle(const std::vector<std::uint64_t>& starts, std::uint64_t nodes,
                                               std::uint64_t seed, std::uint64_t epoch, std::uint64_t block)
    : starts_(starts), nodes_(nodes), block_(block), fixed_(seed), draw_(seed + epoch) {}

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

}  // namespace penstock::inline v0_1::detail
