// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/film_container.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <bit>
#include <optional>

/// By what a film is known again: by everything that its container says of its packets, which is all that an
/// index is made of. Pictures and sounds themselves are not read.
namespace penstock::inline v0_1::detail {

struct film_identity {
  std::uint64_t size = 0;  ///< of the file
  std::uint64_t hash = 0;

  friend constexpr bool operator==(const film_identity&, const film_identity&) = default;
};

class film_hash {
 public:
  explicit film_hash(bytes_view file) noexcept : file_(file) {}

  void add(std::uint64_t value) noexcept { state_ = mix64(state_ ^ value); }
  /// Bytes of the file, and where they are.
  void add(std::uint64_t at, std::uint64_t count) noexcept {
    add(at);
    add(count);
    const std::byte* from = file_.data() + at;
    for (; count >= 8; count -= 8, from += 8) add(load_little<std::uint64_t>(from));
    std::uint64_t rest = 0;
    for (; count > 0; --count, ++from) rest = rest << 8 | std::to_integer<std::uint64_t>(*from);
    add(rest);
  }
  [[nodiscard]] film_identity identity() const noexcept { return {file_.size(), state_}; }

 private:
  bytes_view file_;
  std::uint64_t state_ = 0x66696c6d;
};

/// All boxes at the top level, but for those with the packets' bytes and those with none. FFmpeg finds films'
/// headers in "free", too.
[[nodiscard]] inline std::optional<film_identity> mp4_identity(bytes_view file) noexcept {
  film_hash hash(file);
  for (std::uint64_t at = 0; at < file.size();) {
    const std::uint64_t left = file.size() - at;
    if (left < 8) return std::nullopt;
    std::uint64_t size = big_endian(file, at, 4), header = 8;
    if (size == 0) size = left;
    if (size == 1) {
      if (left < 16) return std::nullopt;
      size = big_endian(file, at + 8, 8);
      header = 16;
    }
    if (size < header || size > left) return std::nullopt;
    const std::string_view type = text_of(file.subspan(to_size(at + 4), 4));
    const bool passed = type == "mdat" || type == "skip" || type == "wide";
    hash.add(at, passed ? header : size);
    at += size;
  }
  return hash.identity();
}

/// All elements but attachments and voids; of those in clusters, the beginning: the head of a block, and some
/// bytes of its packet; of laced blocks, whose heads are longer, everything.
[[nodiscard]] inline std::optional<film_identity> matroska_identity(bytes_view file) noexcept {
  constexpr std::uint64_t segment = 0x18538067, cluster = 0x1f43b675, group = 0xa0, simple_block = 0xa3,
                          block = 0xa1, attachments = 0x1941a469, nothing = 0xec, beginning = 96;
  film_hash hash(file);
  for (std::uint64_t at = 0; at < file.size();) {
    const std::uint64_t element = at;
    const auto length_at = [&](std::uint64_t place) {
      return static_cast<unsigned>(std::countl_zero(std::to_integer<std::uint8_t>(file[to_size(place)]))) + 1;
    };
    const unsigned id_bytes = length_at(at);
    if (id_bytes > 4 || file.size() - at <= id_bytes) return std::nullopt;
    const std::uint64_t id = big_endian(file, at, id_bytes);
    at += id_bytes;
    const unsigned size_bytes = length_at(at);
    if (size_bytes > 8 || file.size() - at < size_bytes) return std::nullopt;
    const std::uint64_t ones = (std::uint64_t{1} << (7 * size_bytes)) - 1;
    const std::uint64_t size = big_endian(file, at, size_bytes) & ones;
    at += size_bytes;
    hash.add(element, at - element);
    if (id == segment || id == cluster || id == group) continue;
    if (size > file.size() - at) return std::nullopt;
    std::uint64_t count = id_bytes == 4 ? size : std::min(size, beginning);
    if (id == attachments || id == nothing) count = 0;
    if ((id == simple_block || id == block) && size > 12) {
      constexpr std::uint64_t lacing = 0x06;
      if ((big_endian(file, at + length_at(at) + 2, 1) & lacing) != 0) count = size;
    }
    hash.add(at, count);
    at += size;
  }
  return hash.identity();
}

/// Nothing for files whose parts do not fit together.
[[nodiscard]] inline std::optional<film_identity> film_identity_of(bytes_view file,
                                                                   film_container container) noexcept {
  switch (container) {
    case film_container::mp4:
      return mp4_identity(file);
    case film_container::matroska:
      return matroska_identity(file);
    case film_container::none:
      break;
  }
  return std::nullopt;
}

}  // namespace penstock::inline v0_1::detail
