// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/order/concepts.hpp>

/// Shared parts of the orders that are the same in every epoch.
namespace penstock::inline v0_1::detail {

/// The places after an order that is the same in every epoch; `bound` is that order bound to any epoch.
template <class Bound>
[[nodiscard]] shared<const source_places> places_behind(const shared<const source_places>& before,
                                                        Bound bound) {
  if (!before) return nullptr;
  struct both {
    shared<const source_places> before;
    Bound bound;
  };
  const source_places& first = *before;
  shared<const both> owner(new const both{before, std::move(bound)});
  const auto find = [](const void* kept, std::uint64_t index) {
    const auto& step = *static_cast<const both*>(kept);
    return (*step.before)(step.bound(index).index);
  };
  return shared<const source_places>(new const source_places(first, find, std::move(owner)));
}

/// The shard boundaries after an order that drops positions but does not reorder them: `kept_before(p)` is
/// the number of kept positions below p.
[[nodiscard]] shared<const std::vector<std::uint64_t>> starts_behind(
    const shared<const std::vector<std::uint64_t>>& starts, const auto& kept_before) {
  if (!starts) return nullptr;
  shared<std::vector<std::uint64_t>> made(new std::vector<std::uint64_t>(1, 0));
  for (const std::uint64_t start : *starts) {
    const std::uint64_t kept = kept_before(start);
    if (kept != made->back()) made->push_back(kept);
  }
  if (made->size() == 1) made->push_back(0);
  return made;
}

/// Throws if the positions are endless.
inline void check_finite(const order_input& in, std::string_view stage) {
  if (in.size >= std::uint64_t{1} << 63) {
    throw error(errc::argument, {"an endless order has no parts; write ", stage, " before repeat()"})
        .in_stage(stage);
  }
}

/// The base of orders that keep some positions, the same ones in every epoch, in their original order.
/// `Bound`
/// is such an order bound to its member `epoch`.
template <class Bound>
class kept_order {
 public:
  using bound = Bound;

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] order_input output() const { return {size_, starts_, places_}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const noexcept {
    bound made = made_;
    made.epoch = epoch;
    return made;
  }
  [[nodiscard]] position_range reach(position_range after) const noexcept {
    return {bind(after.first.epoch)(after.first.index), bind(after.last.epoch)(after.last.index)};
  }

 protected:
  bound made_{};
  std::uint64_t size_ = 0;
  shared<const std::vector<std::uint64_t>> starts_;
  shared<const source_places> places_;
};

}  // namespace penstock::inline v0_1::detail
