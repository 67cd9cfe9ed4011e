// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/video/frame_index.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void frame_index::clear(double units, double seconds) noexcept {
  packets_.clear();
  shown_.clear();
  ranks_.clear();
  keys_.clear();
  units_ = units;
  seconds_ = seconds;
  reordered_ = 0;
}

PENSTOCK_INLINE void frame_index::finish() {
  const auto count = static_cast<std::uint32_t>(packets_.size());
  shown_.clear();
  keys_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (packets_[i].shown) shown_.push_back(i);
    if (packets_[i].key || i == 0) keys_.push_back(i);
  }
  std::sort(shown_.begin(), shown_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return packets_[a].time != packets_[b].time ? packets_[a].time < packets_[b].time : a < b;
  });
  ranks_.assign(count, 0);
  for (std::uint32_t f = 0; f < frames(); ++f) ranks_[shown_[f]] = f;
  // The frames that are decoded before a packet and shown after it: no decoder can delay more than 16.
  reordered_ = 0;
  constexpr std::uint32_t window = 64;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!packets_[i].shown) continue;
    unsigned before = 0;
    for (std::uint32_t j = i > window ? i - window : 0; j < i; ++j)
      before += packets_[j].shown && ranks_[j] > ranks_[i] ? 1 : 0;
    reordered_ = std::max(reordered_, std::min(before, 16u));
  }
}

PENSTOCK_INLINE double frame_index::end_time() const noexcept {
  if (frames() == 0) return 0;
  const film_packet& last = packets_[shown_.back()];
  const auto time = static_cast<double>(last.time);
  auto duration = static_cast<double>(last.duration);
  if (duration <= 0 && frames() > 1)
    duration = time - static_cast<double>(packets_[shown_[frames() - 2]].time);
  return in_seconds(time + duration);
}

PENSTOCK_INLINE std::uint32_t frame_index::frame_at(double seconds) const noexcept {
  if (frames() == 0 || !(seconds >= begin_time()) || !(seconds < end_time())) return frames();
  std::uint32_t low = 0, high = frames();  // the first frame that begins after this second
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (time_of(middle) <= seconds)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}

PENSTOCK_INLINE decode_range frame_index::packets_for(std::uint32_t frame) const noexcept {
  const std::uint32_t last = shown_[frame];
  const auto after = std::upper_bound(keys_.begin(), keys_.end(), last);
  const std::uint32_t first = *(after - 1);  // packet 0 is always among them
  if (packets_[last].time < packets_[first].time) return {earlier(first, 1), last};
  return {first, last};
}

PENSTOCK_INLINE std::uint32_t frame_index::earlier(std::uint32_t first, std::uint32_t groups) const noexcept {
  const auto here = std::lower_bound(keys_.begin(), keys_.end(), first) - keys_.begin();
  return here <= static_cast<std::ptrdiff_t>(groups) ? 0 : keys_[static_cast<std::size_t>(here) - groups];
}

}  // namespace penstock::inline v0_1
