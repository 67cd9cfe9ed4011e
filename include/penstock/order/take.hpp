// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/order/detail/places.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

namespace detail {
struct take_bound {
  std::uint64_t epoch = 0;
  [[nodiscard]] constexpr position operator()(std::uint64_t index) const noexcept { return {epoch, index}; }
};
}  // namespace detail

/// The order of `take(n)`: the first positions of every epoch.
class take_order : public detail::kept_order<detail::take_bound> {
 public:
  take_order(order_input in, std::uint64_t count) {
    size_ = std::min(in.size, count);
    places_ = std::move(in.places);
    if (!in.starts || size_ == in.size) {
      starts_ = std::move(in.starts);
      return;
    }
    shared<std::vector<std::uint64_t>> cut(new std::vector<std::uint64_t>());
    for (const std::uint64_t start : *in.starts) {
      if (start >= size_) break;
      cut->push_back(start);
    }
    if (cut->empty()) cut->push_back(0);
    if (cut->back() != size_) cut->push_back(size_);
    starts_ = std::move(cut);
  }

  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (upstream.index >= size_) return std::nullopt;
    return upstream;
  }
};

/// The stage `take(n)`.
struct take_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "take";
  static constexpr bool works_forward = true;
  static constexpr bool counts_only = true;

  [[nodiscard]] item_range kept() const noexcept { return {.end = count}; }
  [[nodiscard]] take_order make(order_input in) const { return take_order(std::move(in), count); }
  [[nodiscard]] std::string describe() const { return detail::text({"take(", count, ")"}); }
  void fingerprint(auto& h) const { h.add(stage_name, count); }

  std::uint64_t count = 0;
};

/// Keeps the first n positions of every epoch, counted over all ranks; keeps all of them if there are fewer.
/// After `shard` and a filter, each rank counts its own samples, because what the other ranks keep is
/// unknown there.
///
/// A sequencer; keeps every guarantee; costs nothing per sample; throws nothing; thread-safe. After a
/// shuffle the samples differ from epoch to epoch; before it they are the same in each.
///
///     auto smoke_test = source | shuffle | take(1000) | batch(8);
[[nodiscard]] constexpr take_stage take(any_count n) { return {n.of("take")}; }

}  // namespace penstock::inline v0_1
