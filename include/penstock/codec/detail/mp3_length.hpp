// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <algorithm>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// A frame of MPEG audio, by its header; 0 bytes for what is none, or of free format.
struct mp3_frame {
  std::uint32_t bytes = 0, samples = 0;
  std::uint32_t tag = 0;  ///< where the text "Xing" or "Info" is, if there is one
};

/// Source: ISO/IEC 11172-3, 2.4.1.3 and 2.4.2.3, and ISO/IEC 13818-3, 2.4.2.3; MPEG 2.5 halves the rates of
/// 2.
[[nodiscard]] constexpr mp3_frame mp3_frame_of(std::uint32_t header) noexcept {
  constexpr std::uint16_t kilobits[5][15] = {
      {0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},  // MPEG 1, layer I
      {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},     // II
      {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},      // III
      {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},     // MPEG 2, layer I
      {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}};         // II, III
  constexpr std::uint32_t rates[] = {44'100, 48'000, 32'000};
  const std::uint32_t version = header >> 19 & 3, layer = 4 - (header >> 17 & 3), bits = header >> 12 & 15,
                      rate = header >> 10 & 3, padding = header >> 9 & 1;
  if (header >> 21 != 0x7ff || version == 1 || layer == 4 || bits == 0 || bits == 15 || rate == 3) return {};
  const bool first = version == 3;
  const std::uint32_t row = first ? layer - 1 : layer == 1 ? 3 : 4;
  const std::uint32_t frequency = rates[rate] >> (first ? 0 : version == 2 ? 1 : 2);
  const std::uint32_t samples = layer == 1 ? 384 : layer == 3 && !first ? 576 : 1152;
  const std::uint32_t slot = layer == 1 ? 4 : 1;  // bytes
  const std::uint32_t bytes = (samples / 8 / slot * kilobits[row][bits] * 1000 / frequency + padding) * slot;
  const bool mono = (header >> 6 & 3) == 3;
  return {bytes, samples, 4u + (first ? (mono ? 17u : 32u) : (mono ? 9u : 17u))};
}

/// How many samples of a channel an MP3 file has whose first frame does not say how many: its whole frames,
/// counted. 0 if the first frame says it, or if it cannot be told.
[[nodiscard]] inline std::uint64_t mp3_samples_of(bytes_view file) noexcept {
  const auto byte = [&](std::size_t at) { return std::to_integer<std::uint32_t>(file[at]); };
  const auto frame_at = [&](std::size_t at) {
    if (at > file.size() || file.size() - at < 4) return mp3_frame{};
    return mp3_frame_of(byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3));
  };
  std::size_t at = 0;
  while (file.size() - at >= 10 && text_of(file.subspan(at, 3)) == "ID3") {
    // the length of a tag has 7 bits in a byte
    const std::size_t length = byte(at + 6) << 21 | byte(at + 7) << 14 | byte(at + 8) << 7 | byte(at + 9);
    at += std::min(file.size() - at, length + (byte(at + 5) >> 4 & 1 ? 20 : 10));
  }
  std::uint64_t samples = 0;
  bool in_step = false;  // whether a frame ended here
  while (file.size() - at >= 4) {
    const mp3_frame frame = frame_at(at);
    const std::size_t next = at + frame.bytes;
    if (frame.bytes < 4 || (!in_step && next != file.size() && frame_at(next).bytes == 0)) {
      in_step = false;
      ++at;
      continue;
    }
    if (next > file.size()) break;
    const auto says = [&](std::size_t place, std::string_view what) {
      return frame.bytes >= place + 8 && text_of(file.subspan(at + place, 4)) == what;
    };
    if (samples == 0 && says(36, "VBRI")) return 0;
    if (samples == 0 && (says(frame.tag, "Xing") || says(frame.tag, "Info"))) {
      if ((byte(at + frame.tag + 7) & 1) != 0) return 0;
    } else {
      samples += frame.samples;
    }
    in_step = true;
    at = next;
  }
  return samples;
}

}  // namespace penstock::inline v0_1::detail
