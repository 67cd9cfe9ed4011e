// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/shard_index.hpp>

#include <penstock/core/random.hpp>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void index_header::store(std::byte* to) const noexcept {
  store_head({to, size}, magic, version,
             {shard_size, shard_stamp, samples, members, suffixes, suffix_bytes, key_bytes, payload, content,
              unended, bytewise, apple_double});
}

PENSTOCK_INLINE std::optional<index_header> index_header::load(bytes_view bytes) noexcept {
  if (bytes.size() < size || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) return std::nullopt;
  const std::byte* from = bytes.data();
  if (load_little<std::uint32_t>(from + 8) != version || load_little<std::uint32_t>(from + 12) != size)
    return std::nullopt;
  if (load_little<std::uint64_t>(from + size - 8) != checksum(bytes.first(size - 8))) return std::nullopt;
  index_header h;
  const std::byte* field = from + 16;
  for (std::uint64_t* value :
       {&h.shard_size, &h.shard_stamp, &h.samples, &h.members, &h.suffixes, &h.suffix_bytes, &h.key_bytes,
        &h.payload, &h.content, &h.unended, &h.bytewise, &h.apple_double}) {
    *value = load_little<std::uint64_t>(field);
    field += 8;
  }
  constexpr std::uint64_t maximum = std::numeric_limits<std::uint32_t>::max();
  if (h.samples >= maximum || h.members > maximum || h.suffixes > (1u << 24) || h.suffix_bytes > maximum ||
      h.key_bytes > maximum || h.unended > 1 || h.bytewise > 1 || h.apple_double > 2) {
    return std::nullopt;
  }
  // An index without samples must be empty: its tables are never read, so nothing else would
  // notice.
  const bool nothing = h.members == 0 && h.key_bytes == 0 && h.payload == 0;
  if (h.samples > h.members || (h.samples == 0 && !nothing)) return std::nullopt;
  return h;
}

PENSTOCK_INLINE std::optional<shard_index> shard_index::over(bytes_view bytes) noexcept {
  const auto header = index_header::load(bytes);
  if (!header || bytes.size() != header->file_size()) return std::nullopt;
  if (checksum(bytes.subspan(index_header::size)) != header->content) return std::nullopt;
  shard_index index;
  index.header_ = *header;
  index.base_ = bytes.data();
  if (header->bytewise != 0) index.block_bits_ = 0;
  index.members_ = bytes.data() + header->members_at();
  index.suffix_ends_ = bytes.data() + header->suffix_ends_at();
  index.suffixes_ = reinterpret_cast<const char*>(bytes.data() + header->suffixes_at());
  index.keys_ = reinterpret_cast<const char*>(bytes.data() + header->keys_at());
  if (!index.consistent()) return std::nullopt;
  index.each_ = index.members_each();
  return index;
}

PENSTOCK_INLINE std::uint32_t shard_index::members_each() const noexcept {
  if (header_.samples == 0 || header_.members % header_.samples != 0) return 0;
  const std::uint64_t each = header_.members / header_.samples;
  for (std::uint64_t i = 0; i < header_.samples; ++i)
    if (listed_first(i) != i * each) return 0;
  return static_cast<std::uint32_t>(each);
}

PENSTOCK_INLINE bool shard_index::consistent() const noexcept {
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
  // A record is one member, with its checksum of 4 bytes behind it and a header of 12 bytes before it.
  const bool records = header_.bytewise != 0;
  if (records && header_.members != header_.samples) return false;
  std::uint64_t end = 0, payload = 0;
  for (std::uint32_t i = 0; i < header_.members; ++i) {
    if (suffix_number(i) >= header_.suffixes || offset(i) < end || offset(i) > header_.shard_size ||
        size(i) > header_.shard_size - offset(i)) {
      return false;
    }
    if (records && (size(i) < 4 || offset(i) < 12)) return false;
    end = offset(i) + size(i);
    payload += size(i);
  }
  return payload == header_.payload;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
