// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/random.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail {

/// A hash of bytes for fingerprints, eight at a time; the same on every machine of one byte order. Not for
/// adversaries.
[[nodiscard]] inline std::uint64_t hash_bytes(std::uint64_t seed, bytes_view bytes) noexcept {
  std::uint64_t hash = mix64(seed ^ bytes.size());
  while (!bytes.empty()) {
    const std::size_t n = std::min<std::size_t>(8, bytes.size());
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), n);
    hash = mix64(hash ^ word);
    bytes = bytes.subspan(n);
  }
  return hash;
}

/// The same of the first and the last MiB only: a fingerprint must not cost a pass over a dataset.
[[nodiscard]] inline std::uint64_t hash_ends(std::uint64_t seed, bytes_view bytes) noexcept {
  constexpr std::size_t part = 1u << 20;
  if (bytes.size() <= 2 * part) return hash_bytes(seed, bytes);
  return hash_bytes(hash_bytes(seed ^ bytes.size(), bytes.first(part)), bytes.last(part));
}

}  // namespace detail
}  // namespace penstock::inline v0_1
