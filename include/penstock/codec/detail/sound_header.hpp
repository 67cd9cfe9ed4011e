// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/audio_limits.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <algorithm>
#include <array>
#include <string_view>

/// What libsndfile does not tell: of which format bytes are, and whether a file is shorter than its header
/// says.
namespace penstock::inline v0_1::detail {

enum class sound_format : std::uint8_t { unknown, wav, rf64, flac, ogg, opus, mp3, aiff, au, caf, nist };

[[nodiscard]] constexpr std::string_view format_name(sound_format format) noexcept {
  constexpr std::string_view names[] = {"unknown", "wav",  "rf64", "flac", "ogg", "opus",
                                        "mp3",     "aiff", "au",   "caf",  "nist"};
  return names[static_cast<std::size_t>(format)];
}

/// By its first bytes.
[[nodiscard]] inline sound_format sound_format_of(bytes_view file) noexcept {
  const std::string_view text = text_of(file.first(std::min<std::size_t>(file.size(), 64)));
  const auto form_is = [&](std::string_view type) { return text.size() >= 12 && text.substr(8, 4) == type; };
  if (text.starts_with("RIFF")) return form_is("WAVE") ? sound_format::wav : sound_format::unknown;
  if (text.starts_with("RF64") && form_is("WAVE")) return sound_format::rf64;
  if (text.starts_with("fLaC")) return sound_format::flac;
  if (text.starts_with("OggS"))
    return text.find("OpusHead") != std::string_view::npos ? sound_format::opus : sound_format::ogg;
  if (text.starts_with("FORM") && (form_is("AIFF") || form_is("AIFC"))) return sound_format::aiff;
  if (text.starts_with(".snd")) return sound_format::au;
  if (text.starts_with("caff")) return sound_format::caf;
  if (text.starts_with("NIST_1A")) return sound_format::nist;
  // An ID3 tag, or the sync word of a frame of layer 3.
  if (text.starts_with("ID3")) return sound_format::mp3;
  if (text.size() >= 4 && text[0] == '\xff' && (std::to_integer<unsigned>(file[1]) & 0xe6u) == 0xe2u)
    return sound_format::mp3;
  return sound_format::unknown;
}

/// Whether a length is what programs write that do not know it yet: ffmpeg and sox into a pipe, and arecord.
[[nodiscard]] constexpr bool is_placeholder(std::uint64_t length) noexcept { return length >= 0x7fff'0000u; }

/// How a wav file keeps its samples, and where.
struct wav_layout {
  sound_form form;            ///< as far as its samples are there
  std::uint16_t tag = 0;      ///< 1 integers, 3 real numbers
  std::uint16_t bits = 0;     ///< of a sample
  std::uint16_t block = 0;    ///< bytes of a frame
  std::size_t data = 0;       ///< where the samples begin
  std::uint64_t claimed = 0;  ///< the bytes of samples that the header claims
  std::uint64_t there = 0;    ///< those that are there
  bool open = false;          ///< whether the claim is only that there may be more
  bool known = false;         ///< whether there were a format and samples
};

/// Sources: "Multimedia Programming Interface and Data Specifications 1.0", IBM and Microsoft, 1991; EBU Tech
/// 3306 for RF64, whose lengths of 64 bits come first.
[[nodiscard]] inline wav_layout wav_layout_of(bytes_view file) noexcept {
  constexpr std::size_t file_header = 12, chunk_header = 8, format_bytes = 16, extensible_bytes = 40;
  wav_layout found;
  std::uint64_t long_data = 0;
  for (std::size_t at = file_header; at < file.size() && file.size() - at >= chunk_header;) {
    const std::string_view type = text_of(file.subspan(at, 4));
    const std::uint64_t length = load_little<std::uint32_t>(file.data() + at + 4);
    at += chunk_header;
    const std::uint64_t left = file.size() - at;
    if (type == "fmt " && length >= format_bytes && left >= length) {
      const std::byte* const format = file.data() + at;
      found.tag = load_little<std::uint16_t>(format);
      found.form.channels = load_little<std::uint16_t>(format + 2);
      found.form.rate = load_little<std::uint32_t>(format + 4);
      found.block = load_little<std::uint16_t>(format + 12);
      found.bits = load_little<std::uint16_t>(format + 14);
      // WAVE_FORMAT_EXTENSIBLE: the tag is in the sub-format.
      if (found.tag == 0xfffe && length >= extensible_bytes)
        found.tag = load_little<std::uint16_t>(format + 24);
    } else if (type == "ds64" && length >= 16 && left >= 16) {
      long_data = load_little<std::uint64_t>(file.data() + at + 8);
    } else if (type == "data") {
      found.data = at;
      found.claimed = length == 0xffff'ffffu && long_data != 0 ? long_data : length;
      found.open = found.claimed == length && is_placeholder(length);
      found.there = std::min(found.claimed, left);
      found.known = found.block != 0;
      if (found.known) found.form.frames = found.there / found.block;
      return found;
    }
    if (length >= left) break;
    at += to_size(length + length % 2);
  }
  return found;
}

/// The form in a FLAC file's first block; 0 frames if they are not counted there. Source: RFC 9639, 8.2.
[[nodiscard]] inline sound_form flac_form(bytes_view file) noexcept {
  constexpr std::size_t end = 4 + 4 + 18;  // the signature, a block's header, and what comes before the hash
  if (file.size() < end) return {};
  const auto byte = [&](std::size_t at) { return std::to_integer<std::uint64_t>(file[at]); };
  std::uint64_t packed = 0;  // 20 bits of rate, 3 of channels, 5 of bits, 36 of frames
  for (std::size_t i = 0; i < 8; ++i) packed = packed << 8 | byte(18 + i);
  return {packed & 0xf'ffff'ffffu, static_cast<std::uint32_t>(packed >> 44),
          static_cast<std::uint32_t>(packed >> 41 & 7) + 1};
}

/// How an Ogg file ends.
struct ogg_end {
  bool whole = false;          ///< whether its last page is there, and says that it is the last one
  std::uint64_t position = 0;  ///< the granule position of the last page that is there as a whole and has one
};

/// A file with more than a page of something else behind its last page counts as whole. Source: RFC 3533, 6.
[[nodiscard]] inline ogg_end ogg_end_of(bytes_view file) noexcept {
  constexpr std::size_t header = 27, largest = header + 255 + 255 * 255;
  const std::size_t from = file.size() > 2 * largest ? file.size() - 2 * largest : 0;
  const std::string_view tail = text_of(file.subspan(from));
  ogg_end found;
  bool last = true;
  for (std::size_t at = tail.rfind("OggS"); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : tail.rfind("OggS", at - 1)) {
    const bytes_view page = file.subspan(from + at);
    const std::size_t segments = page.size() < header ? 0 : std::to_integer<std::size_t>(page[26]);
    std::size_t length = header + segments;
    if (page.size() >= length)
      for (std::size_t i = 0; i < segments; ++i) length += std::to_integer<std::size_t>(page[header + i]);
    const bool there = page.size() >= length;
    if (last) found.whole = there && (std::to_integer<unsigned>(page[5]) & 4u) != 0;
    last = false;
    if (!there) continue;
    found.position = load_little<std::uint64_t>(page.data() + 6);
    if (found.position >> 63 == 0) return found;  // -1: no packet ends on the page
    found.position = 0;
  }
  if (last) found = {true, 1};
  return found;
}

/// Four bytes at a time: `tables[n]` has what a byte does that n others follow.
inline constexpr auto ogg_crc_tables = [] {
  std::array<std::array<std::uint32_t, 256>, 4> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte << 24;
    for (int bit = 0; bit < 8; ++bit) value = value << 1 ^ (value >> 31 != 0 ? 0x04c1'1db7u : 0);
    tables[0][byte] = value;
  }
  for (std::size_t n = 1; n < tables.size(); ++n)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t value = tables[n - 1][byte];
      tables[n][byte] = value << 8 ^ tables[0][value >> 24];
    }
  return tables;
}();

/// The checksum of bytes that follow others. Source: RFC 3533, 6.
[[nodiscard]] inline std::uint32_t ogg_crc(bytes_view bytes, std::uint32_t before = 0) noexcept {
  const auto& t = ogg_crc_tables;
  const auto byte = [&](std::size_t at) { return std::to_integer<std::uint32_t>(bytes[at]); };
  std::uint32_t crc = before;
  std::size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4) {
    crc ^= byte(i) << 24 | byte(i + 1) << 16 | byte(i + 2) << 8 | byte(i + 3);
    crc = t[3][crc >> 24] ^ t[2][crc >> 16 & 255] ^ t[1][crc >> 8 & 255] ^ t[0][crc & 255];
  }
  for (; i < bytes.size(); ++i) crc = crc << 8 ^ t[0][crc >> 24 ^ byte(i)];
  return crc;
}

/// Where the first page begins that is not as it was written; the file's size if all are. libsndfile leaves
/// such pages out, so that what follows comes too early. What is behind the last page does not count.
[[nodiscard]] inline std::size_t ogg_damage_of(bytes_view file) noexcept {
  constexpr std::size_t header = 27, crc_at = 22;
  for (std::size_t at = 0; at < file.size();) {
    const bytes_view page = file.subspan(at);
    if (!text_of(page).starts_with("OggS"))
      return text_of(page).find("OggS") == std::string_view::npos ? file.size() : at;
    if (page.size() < header) return at;
    std::size_t length = header + std::to_integer<std::size_t>(page[header - 1]);
    if (page.size() < length) return at;
    for (std::size_t i = header, end = length; i < end; ++i) length += std::to_integer<std::size_t>(page[i]);
    if (page.size() < length) return at;
    constexpr std::array<std::byte, 4> no_crc{};
    const std::uint32_t found =
        ogg_crc(page.first(length).subspan(crc_at + 4), ogg_crc(no_crc, ogg_crc(page.first(crc_at))));
    if (found != load_little<std::uint32_t>(page.data() + crc_at)) return at;
    at += length;
  }
  return file.size();
}

/// The frames up to a granule position, at the rate that the first page names; no frames if it names none.
/// Sources: Vorbis I, 4.2.2; RFC 7845, 4 and 5.1.
[[nodiscard]] inline sound_form ogg_form(bytes_view file, std::uint64_t position) noexcept {
  constexpr std::size_t packet = 28, end = packet + 19;  // of a first page with one segment
  if (file.size() < end) return {};
  const std::byte* const at = file.data() + packet;
  if (text_of(file.subspan(packet, 8)) == "OpusHead") {
    const std::uint64_t skipped = load_little<std::uint16_t>(at + 10);
    return {position > skipped ? position - skipped : 0, 48'000, std::to_integer<std::uint32_t>(at[9])};
  }
  if (text_of(file.subspan(packet, 7)) == "\1vorbis")
    return {position, load_little<std::uint32_t>(at + 12), std::to_integer<std::uint32_t>(at[11])};
  return {};
}

}  // namespace penstock::inline v0_1::detail
