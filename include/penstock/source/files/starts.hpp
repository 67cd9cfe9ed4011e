// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// Checks the shard starts given by the caller and shares them; null if there are none.
[[nodiscard]] shared<const std::vector<std::uint64_t>> shared_starts(std::string_view who, std::uint64_t size,
                                                                     std::vector<std::uint64_t> starts);

/// The fingerprint of samples made from a number and a seed: covers how many there are, the seed and
/// where shards begin.
[[nodiscard]] std::uint64_t fingerprint_of_made(std::string_view who, std::uint64_t size, std::uint64_t seed,
                                                const std::vector<std::uint64_t>* starts) noexcept;

inline shared<const std::vector<std::uint64_t>> shared_starts(std::string_view who, std::uint64_t size,
                                                              std::vector<std::uint64_t> starts) {
  if (starts.empty()) return nullptr;
  if (starts.size() < 2 || starts.front() != 0 || starts.back() != size ||
      !std::is_sorted(starts.begin(), starts.end()))
    throw error(errc::argument,
                {who, ": the starts of shards must ascend from 0 to the number of samples, ", size});
  return shared<const std::vector<std::uint64_t>>(new const std::vector<std::uint64_t>(std::move(starts)));
}

inline std::uint64_t fingerprint_of_made(std::string_view who, std::uint64_t size, std::uint64_t seed,
                                         const std::vector<std::uint64_t>* starts) noexcept {
  penstock::fingerprint sum;
  sum.add(who, size, seed);
  if (starts != nullptr)
    for (const std::uint64_t start : *starts) sum.add(start);
  return sum.value();
}

}  // namespace detail
}  // namespace penstock::inline v0_1
