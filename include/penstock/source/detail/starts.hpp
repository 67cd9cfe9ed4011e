// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>

#include <cstdint>
#include <string_view>
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

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/starts.ipp>
#endif
