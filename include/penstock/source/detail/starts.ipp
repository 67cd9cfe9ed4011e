// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/detail/starts.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE shared<const std::vector<std::uint64_t>> shared_starts(std::string_view who,
                                                                       std::uint64_t size,
                                                                       std::vector<std::uint64_t> starts) {
  if (starts.empty()) return nullptr;
  if (starts.size() < 2 || starts.front() != 0 || starts.back() != size ||
      !std::is_sorted(starts.begin(), starts.end()))
    throw error(errc::argument,
                {who, ": the starts of shards must ascend from 0 to the number of samples, ", size});
  return shared<const std::vector<std::uint64_t>>(new const std::vector<std::uint64_t>(std::move(starts)));
}

PENSTOCK_INLINE std::uint64_t fingerprint_of_made(std::string_view who, std::uint64_t size,
                                                  std::uint64_t seed,
                                                  const std::vector<std::uint64_t>* starts) noexcept {
  penstock::fingerprint sum;
  sum.add(who, size, seed);
  if (starts != nullptr)
    for (const std::uint64_t start : *starts) sum.add(start);
  return sum.value();
}

}  // namespace penstock::inline v0_1::detail
