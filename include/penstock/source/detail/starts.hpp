// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// Checks where the caller says that shards begin, and shares it; null where there are none.
[[nodiscard]] inline std::shared_ptr<const std::vector<std::uint64_t>> shared_starts(
    std::string_view who, std::uint64_t size, std::vector<std::uint64_t> starts) {
  if (starts.empty()) return nullptr;
  if (starts.size() < 2 || starts.front() != 0 || starts.back() != size ||
      !std::is_sorted(starts.begin(), starts.end()))
    throw error(errc::argument,
                {who, ": the starts of shards must ascend from 0 to the number of samples, ", size});
  return std::shared_ptr<const std::vector<std::uint64_t>>(
      new const std::vector<std::uint64_t>(std::move(starts)));
}

}  // namespace detail
}  // namespace penstock::inline v0_1
