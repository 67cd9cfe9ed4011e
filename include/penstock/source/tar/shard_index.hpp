// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/random.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

/// The index of a shard: which samples it has, and where their members lie. One layout in memory and on disk,
/// described in docs/index.md: fixed-width little-endian tables, read in place.
namespace penstock::inline v0_1 {
namespace detail::tar {

/// A hash of 64 bits over bytes, in four lanes so that it keeps up with memory. It notices accidents, not
/// attackers.
[[nodiscard]] inline std::uint64_t checksum(bytes_view bytes) noexcept {
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

/// The first 128 bytes: what a plan needs to know of a shard.
struct index_header {
  static constexpr std::size_t size = 128;
  static constexpr std::string_view magic = "PENSTIDX";
  static constexpr std::uint32_t version = 1;

  std::uint64_t shard_size = 0;
  std::uint64_t shard_stamp = 0;
  std::uint64_t samples = 0;
  std::uint64_t members = 0;
  std::uint64_t suffixes = 0;
  std::uint64_t suffix_bytes = 0;
  std::uint64_t key_bytes = 0;
  std::uint64_t payload = 0;  ///< bytes in all members
  std::uint64_t content = 0;  ///< checksum of everything after the header

  [[nodiscard]] std::uint64_t members_at() const noexcept { return size + 8 * (samples + 1); }
  [[nodiscard]] std::uint64_t suffix_ends_at() const noexcept { return members_at() + 16 * members; }
  [[nodiscard]] std::uint64_t suffixes_at() const noexcept { return suffix_ends_at() + 4 * suffixes; }
  [[nodiscard]] std::uint64_t keys_at() const noexcept { return suffixes_at() + suffix_bytes; }
  [[nodiscard]] std::uint64_t file_size() const noexcept { return keys_at() + key_bytes; }

  void store(std::byte* to) const noexcept {
    std::memset(to, 0, size);
    std::memcpy(to, magic.data(), magic.size());
    store_little<std::uint32_t>(to + 8, version);
    store_little<std::uint32_t>(to + 12, static_cast<std::uint32_t>(size));
    std::byte* field = to + 16;
    for (const std::uint64_t value :
         {shard_size, shard_stamp, samples, members, suffixes, suffix_bytes, key_bytes, payload, content}) {
      store_little<std::uint64_t>(field, value);
      field += 8;
    }
    store_little<std::uint64_t>(to + size - 8, checksum({to, size - 8}));
  }

  /// Nothing where the bytes are no header of this version, or were damaged.
  [[nodiscard]] static std::optional<index_header> load(bytes_view bytes) noexcept {
    if (bytes.size() < size || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
      return std::nullopt;
    const std::byte* from = bytes.data();
    if (load_little<std::uint32_t>(from + 8) != version || load_little<std::uint32_t>(from + 12) != size)
      return std::nullopt;
    if (load_little<std::uint64_t>(from + size - 8) != checksum(bytes.first(size - 8))) return std::nullopt;
    index_header h;
    const std::byte* field = from + 16;
    for (std::uint64_t* value : {&h.shard_size, &h.shard_stamp, &h.samples, &h.members, &h.suffixes,
                                 &h.suffix_bytes, &h.key_bytes, &h.payload, &h.content}) {
      *value = load_little<std::uint64_t>(field);
      field += 8;
    }
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    if (h.samples >= most || h.members > most || h.suffixes > (1u << 24) || h.suffix_bytes > most ||
        h.key_bytes > most) {
      return std::nullopt;
    }
    // The tables are looked at when a sample is asked for, which nobody does where there are none.
    const bool nothing = h.members == 0 && h.key_bytes == 0 && h.payload == 0;
    if (h.samples > h.members || (h.samples == 0 && !nothing)) return std::nullopt;
    return h;
  }
};

/// The tables of an index, in place. The bytes belong to somebody else.
class shard_index {
 public:
  shard_index() = default;

  /// Checks everything once, so that nothing has to be checked when a sample is read. Nothing where the bytes
  /// are no such index.
  [[nodiscard]] static std::optional<shard_index> over(bytes_view bytes) noexcept {
    const auto header = index_header::load(bytes);
    if (!header || bytes.size() != header->file_size()) return std::nullopt;
    if (checksum(bytes.subspan(index_header::size)) != header->content) return std::nullopt;
    shard_index index;
    index.header_ = *header;
    index.base_ = bytes.data();
    index.members_ = bytes.data() + header->members_at();
    index.suffix_ends_ = bytes.data() + header->suffix_ends_at();
    index.suffixes_ = reinterpret_cast<const char*>(bytes.data() + header->suffixes_at());
    index.keys_ = reinterpret_cast<const char*>(bytes.data() + header->keys_at());
    if (!index.consistent()) return std::nullopt;
    return index;
  }

  [[nodiscard]] const index_header& header() const noexcept { return header_; }
  [[nodiscard]] std::uint32_t first_member(std::uint64_t sample) const noexcept {
    return load_little<std::uint32_t>(base_ + index_header::size + 8 * sample);
  }
  [[nodiscard]] std::uint32_t end_member(std::uint64_t sample) const noexcept {
    return first_member(sample + 1);
  }
  [[nodiscard]] std::string_view key(std::uint64_t sample) const noexcept {
    const std::uint32_t begin = key_begin(sample);
    return {keys_ + begin, key_begin(sample + 1) - begin};
  }
  [[nodiscard]] std::uint64_t offset(std::uint32_t member) const noexcept {
    return (place(member) >> 24) * 512;
  }
  [[nodiscard]] std::uint64_t size(std::uint32_t member) const noexcept {
    return load_little<std::uint64_t>(members_ + 16 * std::uint64_t{member} + 8);
  }
  [[nodiscard]] std::uint64_t end(std::uint32_t member) const noexcept {
    return offset(member) + size(member);
  }
  [[nodiscard]] std::uint32_t suffix_number(std::uint32_t member) const noexcept {
    return static_cast<std::uint32_t>(place(member) & 0xffffffu);
  }
  [[nodiscard]] std::string_view suffix(std::uint32_t member) const noexcept {
    const std::uint32_t number = suffix_number(member);
    const std::uint32_t begin = number == 0 ? 0 : suffix_end(number - 1);
    return {suffixes_ + begin, suffix_end(number) - begin};
  }

 private:
  [[nodiscard]] std::uint64_t place(std::uint32_t member) const noexcept {
    return load_little<std::uint64_t>(members_ + 16 * std::uint64_t{member});
  }
  [[nodiscard]] std::uint32_t key_begin(std::uint64_t sample) const noexcept {
    return load_little<std::uint32_t>(base_ + index_header::size + 8 * sample + 4);
  }
  [[nodiscard]] std::uint32_t suffix_end(std::uint32_t number) const noexcept {
    return load_little<std::uint32_t>(suffix_ends_ + 4 * std::uint64_t{number});
  }

  [[nodiscard]] bool consistent() const noexcept {
    if (first_member(0) != 0 || key_begin(0) != 0) return false;
    for (std::uint64_t i = 0; i < header_.samples; ++i) {
      if (first_member(i) >= first_member(i + 1) || key_begin(i) > key_begin(i + 1)) return false;
    }
    if (first_member(header_.samples) != header_.members || key_begin(header_.samples) != header_.key_bytes)
      return false;
    std::uint32_t before = 0;
    for (std::uint32_t i = 0; i < header_.suffixes; ++i) {
      if (suffix_end(i) < before) return false;
      before = suffix_end(i);
    }
    if (before != header_.suffix_bytes) return false;
    std::uint64_t end = 0, payload = 0;
    for (std::uint32_t i = 0; i < header_.members; ++i) {
      if (suffix_number(i) >= header_.suffixes || offset(i) < end || offset(i) > header_.shard_size ||
          size(i) > header_.shard_size - offset(i)) {
        return false;
      }
      end = offset(i) + size(i);
      payload += size(i);
    }
    return payload == header_.payload;
  }

  index_header header_;
  const std::byte* base_ = nullptr;
  const std::byte* members_ = nullptr;
  const std::byte* suffix_ends_ = nullptr;
  const char* suffixes_ = nullptr;
  const char* keys_ = nullptr;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
