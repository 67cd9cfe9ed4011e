// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/film_boxes.hpp>

/// Whether a film's file is all there. Containers say how long their parts are, and demuxers take a file that
/// ends before for one that has fewer frames.
namespace penstock::inline v0_1::detail {

enum class film_container : std::uint8_t { none, mp4, matroska };

/// By the first bytes: a box of MP4 and QuickTime, or the header of EBML.
[[nodiscard]] inline film_container film_container_of(bytes_view file) noexcept {
  const std::string_view text = text_of(file.first(file.size() < 8 ? file.size() : 8));
  if (text.starts_with("\x1a\x45\xdf\xa3")) return film_container::matroska;
  if (text.size() < 8) return film_container::none;
  const std::string_view box = text.substr(4, 4);
  for (const std::string_view known :
       {"ftyp", "moov", "mdat", "free", "skip", "wide", "styp", "moof", "pnot"})
    if (box == known) return film_container::mp4;
  return film_container::none;
}

/// Whether an element of Matroska stands in a file, a segment or a cluster. Source: RFC 9559, 5.1.
[[nodiscard]] constexpr bool is_matroska_element(std::uint64_t id) noexcept {
  for (const std::uint32_t known :
       {0x1a45dfa3u, 0x18538067u, 0x114d9b74u, 0x1549a966u, 0x1654ae6bu, 0x1c53bb6bu, 0x1941a469u,
        0x1043a770u, 0x1254c367u, 0x1f43b675u, 0xe7u,       0x5854u,     0xa7u,       0xabu,
        0xa3u,       0xa0u,       0xafu,       0xecu,       0xbfu,       0x1b538667u})
    if (id == known) return true;
  return false;
}

/// How many pairs the tags make that are in these bytes, or behind the first head of tags in them: FFmpeg
/// compares each with all others.
[[nodiscard]] inline std::uint64_t pairs_of_tags(bytes_view bytes, std::string_view head = "") noexcept {
  std::uint64_t pairs = 0, tags = 0;
  const std::string_view text = text_of(bytes), tag = "\x67\xc8";
  std::size_t at = text.find(head);
  if (at == std::string_view::npos) return 0;
  for (; (at = text.find(tag, at)) != std::string_view::npos; at += tag.size()) pairs += ++tags;
  return pairs;
}

/// Follows segments and clusters into their elements: FFmpeg's demuxer leaves out what it cannot read, and
/// says nothing. What is behind a segment that says its size is not looked at. Source: RFC 8794; RFC 9559.
[[nodiscard]] inline film_extent matroska_extent(bytes_view file) {
  constexpr std::uint64_t nowhere = film_extent::nowhere;
  constexpr std::string_view tags = "\x12\x54\xc3\x67";
  std::uint64_t at = 0, end = file.size(), pairs = 0;
  bool in_segment = false;  // of a known size, which is all there
  while (at < end) {
    const std::uint64_t element = at;
    const auto cut = [&](std::uint64_t size) {
      return in_segment ? film_extent{file.size(), element, pairs} : film_extent{size, nowhere, pairs};
    };
    const auto length_at = [&](std::uint64_t place) {
      unsigned length = 1;
      for (std::uint64_t bits = big_endian(file, place, 1); length <= 8 && (bits & 0x80) == 0; bits <<= 1)
        ++length;
      return length;
    };
    const auto damaged = [&] {
      return film_extent{file.size(), element, pairs + pairs_of_tags(file.subspan(to_size(element)), tags)};
    };
    const unsigned id_bytes = length_at(at);
    if (id_bytes > 4) return damaged();
    if (end - at <= id_bytes) return cut(at + id_bytes + 1);
    const std::uint64_t id = big_endian(file, at, id_bytes);
    at += id_bytes;
    const unsigned size_bytes = length_at(at);
    if (size_bytes > 8 || !is_matroska_element(id)) return damaged();
    if (end - at < size_bytes) return cut(at + size_bytes);
    const std::uint64_t ones = (std::uint64_t{1} << (7 * size_bytes)) - 1;
    const std::uint64_t size = big_endian(file, at, size_bytes) & ones;
    at += size_bytes;
    constexpr std::uint64_t segment = 0x18538067, cluster = 0x1f43b675;
    const bool group = id == segment || id == cluster;
    if (size == ones) {
      if (!group) return damaged();
      continue;
    }
    if (id == 0x1254c367)
      pairs += pairs_of_tags(file.subspan(to_size(at), to_size(std::min(size, file.size() - at))));
    if (size > end - at) return cut(at + size);
    if (id == segment && !in_segment) {
      in_segment = true;
      end = at + size;
    }
    if (!group) at += size;
  }
  if (at < file.size()) pairs += pairs_of_tags(file.subspan(to_size(at)), tags);  // FFmpeg may find them
  return {file.size(), nowhere, pairs};
}

/// As the container says; the file's own size where it does not.
[[nodiscard]] inline film_extent container_extent(bytes_view file) {
  switch (film_container_of(file)) {
    case film_container::mp4:
      return mp4_boxes::extent_of(file);
    case film_container::matroska:
      return matroska_extent(file);
    case film_container::none:
      break;
  }
  return {file.size()};
}

}  // namespace penstock::inline v0_1::detail
