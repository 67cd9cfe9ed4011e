// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/shard_names.hpp>

#include <penstock/core/message.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::uint64_t shard_name_values::same_until(std::uint64_t i) const noexcept {
  const auto place = shards_.locate(i);
  return place.first + shards_.shards()[place.shard].samples;
}

PENSTOCK_INLINE std::string shard_name_values::describe() const {
  return detail::text({"the names of ", shards_.shards().size(), " shards"});
}

}  // namespace penstock::inline v0_1
