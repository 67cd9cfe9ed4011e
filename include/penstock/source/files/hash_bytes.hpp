// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

namespace penstock::inline v0_1 {
namespace detail {

/// A hash of bytes for fingerprints, eight at a time; identical on every machine. Not secure against
/// adversaries.
[[nodiscard]] std::uint64_t hash_bytes(std::uint64_t seed, bytes_view bytes) noexcept;

/// `hash_bytes` of the numbers' little-endian bytes.
[[nodiscard]] std::uint64_t hash_words(std::uint64_t seed, std::span<const std::uint64_t> words) noexcept;

/// `hash_bytes` of the first and the last MiB only: a fingerprint must not cost a pass over a dataset.
[[nodiscard]] std::uint64_t hash_ends(std::uint64_t seed, bytes_view bytes) noexcept;

/// A 64-bit hash of bytes, in four lanes so that it keeps up with memory. It detects accidents, not attacks.
[[nodiscard]] std::uint64_t checksum(bytes_view bytes) noexcept;

/// Writes the head of a file of ours: eight letters, the version, the head's own size, numbers, zeros, and
/// last the checksum of all that.
void store_head(mutable_bytes to, std::string_view magic, std::uint32_t version,
                std::initializer_list<std::uint64_t> numbers) noexcept;

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/hash_bytes.ipp>
#endif
