// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/hash_bytes.hpp>

#include <penstock/core/random.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::uint64_t hash_bytes(std::uint64_t seed, bytes_view bytes) noexcept {
  std::uint64_t hash = mix64(seed ^ bytes.size());
  while (!bytes.empty()) {
    const std::size_t n = std::min<std::size_t>(8, bytes.size());
    std::array<std::byte, 8> word{};
    std::memcpy(word.data(), bytes.data(), n);
    hash = mix64(hash ^ load_little<std::uint64_t>(word.data()));
    bytes = bytes.subspan(n);
  }
  return hash;
}

PENSTOCK_INLINE std::uint64_t hash_words(std::uint64_t seed, std::span<const std::uint64_t> words) noexcept {
  std::uint64_t hash = mix64(seed ^ words.size_bytes());
  for (const std::uint64_t word : words) hash = mix64(hash ^ word);
  return hash;
}

PENSTOCK_INLINE std::uint64_t hash_ends(std::uint64_t seed, bytes_view bytes) noexcept {
  constexpr std::size_t part = 1u << 20;
  if (bytes.size() <= 2 * part) return hash_bytes(seed, bytes);
  return hash_bytes(hash_bytes(seed ^ bytes.size(), bytes.first(part)), bytes.last(part));
}

PENSTOCK_INLINE std::uint64_t checksum(bytes_view bytes) noexcept {
  constexpr std::uint64_t a = 0x9e3779b97f4a7c15u;
  constexpr std::uint64_t b = 0xbf58476d1ce4e5b9u;
  std::array<std::uint64_t, 4> lanes{1, 2, 3, 4};
  const std::size_t size = bytes.size();
  std::size_t at = 0;
  for (; size - at >= 32; at += 32) {
    for (std::size_t i = 0; i < 4; ++i) {
      lanes[i] = std::rotl(lanes[i] ^ (load_little<std::uint64_t>(bytes.data() + at + 8 * i) * a), 29) * b;
    }
  }
  std::uint64_t sum = size;
  for (const std::uint64_t lane : lanes) sum = mix64(sum ^ lane);
  for (; at < size; at += 8) {
    std::array<std::byte, 8> last{};
    std::memcpy(last.data(), bytes.data() + at, size - at < 8 ? size - at : 8);
    sum = mix64(sum ^ load_little<std::uint64_t>(last.data()));
  }
  return sum;
}

PENSTOCK_INLINE void store_head(mutable_bytes to, std::string_view magic, std::uint32_t version,
                                std::initializer_list<std::uint64_t> numbers) noexcept {
  const std::size_t end = to.size() - 8;
  std::memset(to.data(), 0, end);
  std::memcpy(to.data(), magic.data(), magic.size());
  store_little<std::uint32_t>(to.data() + 8, version);
  store_little<std::uint32_t>(to.data() + 12, static_cast<std::uint32_t>(to.size()));
  std::byte* field = to.data() + 16;
  for (const std::uint64_t value : numbers) {
    store_little<std::uint64_t>(field, value);
    field += 8;
  }
  store_little<std::uint64_t>(to.data() + end, checksum(to.first(end)));
}

}  // namespace penstock::inline v0_1::detail
