// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/prefetch_lines.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/files/hash_bytes.hpp>

/// The index of a shard: its samples, and the place of their members. One layout serves in memory and on
/// disk, described in docs/shard_indexes.md: fixed-width little-endian tables, read in place.
namespace penstock::inline v0_1 {
namespace detail {

/// The first 128 bytes: everything a plan needs to know about a shard.
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
  std::uint64_t payload = 0;       ///< bytes in all members
  std::uint64_t content = 0;       ///< checksum of everything after the header
  std::uint64_t unended = 0;       ///< 1: the shard lacks the zero blocks that end an archive
  std::uint64_t bytewise = 0;      ///< 1: records of a TFRecord file, whose offsets count bytes
  std::uint64_t apple_double = 0;  ///< of the members of macOS: 0: none was met; 1: left out; 2: kept

  [[nodiscard]] std::uint64_t members_at() const noexcept { return size + 8 * (samples + 1); }
  [[nodiscard]] std::uint64_t suffix_ends_at() const noexcept { return members_at() + 16 * members; }
  [[nodiscard]] std::uint64_t suffixes_at() const noexcept { return suffix_ends_at() + 4 * suffixes; }
  [[nodiscard]] std::uint64_t keys_at() const noexcept { return suffixes_at() + suffix_bytes; }
  [[nodiscard]] std::uint64_t file_size() const noexcept { return keys_at() + key_bytes; }

  /// Whether the index was made as this choice wants it.
  [[nodiscard]] bool fits(bool skip_apple_double) const noexcept {
    return apple_double == 0 || (apple_double == 1) == skip_apple_double;
  }

  void store(std::byte* to) const noexcept;

  /// Returns nothing if the bytes are not a header of this version, or are damaged.
  [[nodiscard]] static std::optional<index_header> load(bytes_view bytes) noexcept;
};

/// The tables of an index, in place. It does not own the bytes.
class shard_index {
 public:
  shard_index() = default;

  /// Checks everything once, so that reading a sample needs no checks. Returns nothing if the bytes are not a
  /// valid index.
  [[nodiscard]] static std::optional<shard_index> over(bytes_view bytes) noexcept;

  [[nodiscard]] const index_header& header() const noexcept { return header_; }
  [[nodiscard]] std::uint32_t first_member(std::uint64_t sample) const noexcept {
    if (each_ != 0) return static_cast<std::uint32_t>(sample) * each_;
    return listed_first(sample);
  }
  [[nodiscard]] std::uint32_t end_member(std::uint64_t sample) const noexcept {
    return first_member(sample + 1);
  }
  /// Prefetches what says where a sample's members begin.
  [[gnu::always_inline]] void prefetch_first(std::uint64_t sample) const noexcept {
    if (each_ == 0) prefetch_lines(base_ + index_header::size + 8 * sample, 16);
  }
  [[nodiscard]] std::string_view key(std::uint64_t sample) const noexcept {
    const std::uint32_t begin = key_begin(sample);
    return {keys_ + begin, key_begin(sample + 1) - begin};
  }
  [[nodiscard]] std::uint64_t offset(std::uint32_t member) const noexcept {
    return place(member) >> 24 << block_bits_;
  }
  [[gnu::always_inline]] void prefetch_member(std::uint32_t member) const noexcept {
    prefetch_lines(members_ + 16 * std::uint64_t{member}, 16);
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
    return suffix_text(suffix_number(member));
  }
  /// The suffix with this number.
  [[nodiscard]] std::string_view suffix_text(std::uint32_t number) const noexcept {
    const std::uint32_t begin = number == 0 ? 0 : suffix_end(number - 1);
    return {suffixes_ + begin, suffix_end(number) - begin};
  }

  /// Sets which members are used: one byte per suffix, which the caller owns. By default all are used.
  void use(const unsigned char* by_suffix) noexcept { used_ = by_suffix; }
  [[nodiscard]] bool uses_all() const noexcept { return used_ == nullptr; }
  [[nodiscard]] bool uses(std::uint32_t member) const noexcept {
    return used_ == nullptr || used_[suffix_number(member)] != 0;
  }
  /// Calls f(begin, end) for the bytes of each run of used members in [first, end).
  template <class F>
  void runs_of_used(std::uint32_t first, std::uint32_t end, F&& f) const {
    while (first != end) {
      std::uint32_t last = uses_all() ? end : first;
      while (last != end && uses(last)) ++last;
      if (last != first && this->end(last - 1) != offset(first)) f(offset(first), this->end(last - 1));
      first = last;
      while (first != end && !uses(first)) ++first;
    }
  }

 private:
  [[nodiscard]] std::uint32_t listed_first(std::uint64_t sample) const noexcept {
    return load_little<std::uint32_t>(base_ + index_header::size + 8 * sample);
  }
  [[nodiscard]] std::uint64_t place(std::uint32_t member) const noexcept {
    return load_little<std::uint64_t>(members_ + 16 * std::uint64_t{member});
  }
  [[nodiscard]] std::uint32_t key_begin(std::uint64_t sample) const noexcept {
    return load_little<std::uint32_t>(base_ + index_header::size + 8 * sample + 4);
  }
  [[nodiscard]] std::uint32_t suffix_end(std::uint32_t number) const noexcept {
    return load_little<std::uint32_t>(suffix_ends_ + 4 * std::uint64_t{number});
  }

  [[nodiscard]] bool consistent() const noexcept;
  /// The number of members of each sample, or 0 if samples differ.
  [[nodiscard]] std::uint32_t members_each() const noexcept;

  index_header header_;
  const std::byte* base_ = nullptr;
  const std::byte* members_ = nullptr;
  const std::byte* suffix_ends_ = nullptr;
  const char* suffixes_ = nullptr;
  const char* keys_ = nullptr;
  const unsigned char* used_ = nullptr;
  unsigned block_bits_ = 9;
  std::uint32_t each_ = 0;  // members of each sample, which then need not be looked up; 0: samples differ
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/shard_index.ipp>
#endif
