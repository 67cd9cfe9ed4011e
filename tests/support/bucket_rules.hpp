// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Rules of buckets over lengths, as `bucket_by` makes them.

#include <penstock/order/bucket_rule.hpp>

#include <cstdint>

namespace bucket_rules {

namespace ps = penstock;

inline constexpr auto by_seven = [](std::uint64_t i) -> std::uint64_t { return 1 + i % 7; };

template <bool Global = false, class Length>
auto rule_of(const Length& length, const ps::bucket_options& limits, const ps::bucket_edges& edges = {2, 4}) {
  using keys = ps::detail::length_keys<Length>;
  return ps::bucket_rule<keys, Global>{keys({length}, edges), limits};
}

}  // namespace bucket_rules
