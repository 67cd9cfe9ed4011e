// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/order/detail/places.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

namespace detail {
struct skip_bound {
  std::uint64_t epoch = 0, skipped = 0;
  [[nodiscard]] constexpr position operator()(std::uint64_t index) const noexcept {
    return {epoch, index + skipped};
  }
};
}  // namespace detail

/// The order of `skip(n)`: all but the first positions of every epoch.
class skip_order : public detail::kept_order<detail::skip_bound> {
 public:
  skip_order(order_input in, std::uint64_t count) {
    const std::uint64_t skipped = std::min(in.size, count);
    made_.skipped = skipped;
    size_ = in.size - skipped;
    places_ = detail::places_behind(in.places, made_);
    if (!in.starts || skipped == 0) {
      starts_ = std::move(in.starts);
      return;
    }
    shared<std::vector<std::uint64_t>> cut(new std::vector<std::uint64_t>(1, 0));
    for (const std::uint64_t start : *in.starts) {
      if (start > skipped) cut->push_back(start - skipped);
    }
    starts_ = std::move(cut);
  }

  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (upstream.index < made_.skipped || upstream.index - made_.skipped >= size_) return std::nullopt;
    return position{upstream.epoch, upstream.index - made_.skipped};
  }
};

/// The stage `skip(n)`.
struct skip_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "skip";
  static constexpr bool works_forward = true;
  static constexpr bool counts_only = true;

  [[nodiscard]] item_range kept() const noexcept { return {.first = count}; }
  [[nodiscard]] skip_order make(order_input in) const { return skip_order(std::move(in), count); }
  [[nodiscard]] std::string describe() const { return detail::text({"skip(", count, ")"}); }
  void fingerprint(auto& h) const { h.add(stage_name, count); }

  std::uint64_t count = 0;
};

/// Drops the first n positions of every epoch, counted over all ranks; drops all of them if there are no
/// more. After `shard` and a filter, each rank counts its own samples, because what the other ranks keep
/// is unknown there.
///
/// A sequencer; keeps every guarantee; costs one addition per sample; throws nothing; thread-safe. Dropped
/// samples are never read.
///
/// the first 5000 stored samples are kept for validation
///     auto train = source | skip(5000) | shuffle;
///     auto valid = source | take(5000);
[[nodiscard]] constexpr skip_stage skip(any_count n) { return {n.of("skip")}; }

}  // namespace penstock::inline v0_1
