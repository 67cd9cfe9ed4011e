// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/classes.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void classes::fill(const std::vector<std::uint32_t>& met,
                                   const std::vector<std::uint32_t>& rank) {
  starts_.assign(rank.size() + 1, 0);
  for (const std::uint32_t v : met) ++starts_[rank[v] + 1];
  for (std::size_t g = 1; g < starts_.size(); ++g) starts_[g] += starts_[g - 1];
  members_.resize(met.size());
  std::vector<std::uint64_t> next(starts_.begin(), starts_.end() - 1);
  for (std::size_t i = 0; i < met.size(); ++i) members_.set(next[rank[met[i]]]++, i);
}

PENSTOCK_INLINE std::uint64_t classes::largest() const noexcept {
  std::uint64_t maximum = 0;
  for (std::uint64_t g = 0; g < count(); ++g) maximum = std::max(maximum, size(g));
  return maximum;
}

PENSTOCK_INLINE std::uint64_t classes::smallest() const noexcept {
  std::uint64_t least = count() == 0 ? 0 : size(0);
  for (std::uint64_t g = 1; g < count(); ++g) least = std::min(least, size(g));
  return least;
}

PENSTOCK_INLINE std::optional<classes::place> classes::find(std::uint64_t at) const noexcept {
  for (std::uint64_t g = 0; g < count(); ++g) {
    const std::uint64_t first = starts_[detail::to_size(g)];
    const std::uint64_t last = starts_[detail::to_size(g) + 1];
    const std::uint64_t i = members_.below(first, last, at);
    if (first + i < last && members_[first + i] == at) return place{g, i};
  }
  return std::nullopt;
}

}  // namespace penstock::inline v0_1::detail
