// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/audio.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <string>
#include <vector>

/// Sound files that libsndfile makes in memory.
namespace penstock_test {

namespace ps = penstock;

using byte_vector = std::vector<std::byte>;

struct growing_file {
  byte_vector bytes;
  std::size_t at = 0;
};

/// Frames of some tones and a chirp, each channel another one, interleaved; the same on every machine to the
/// last bit of 16.
inline std::vector<float> tones(std::size_t frames, std::uint32_t rate, std::size_t channels = 1) {
  std::vector<float> all(frames * channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double base = 220.0 * static_cast<double>(c + 1);
    for (std::size_t i = 0; i < frames; ++i) {
      const double t = static_cast<double>(i) / rate;
      const double value = 0.4 * std::sin(2 * std::numbers::pi * base * t) +
                           0.2 * std::sin(2 * std::numbers::pi * (300 + 200 * t) * t) +
                           0.1 * std::cos(2 * std::numbers::pi * 7 * base * t);
      all[i * channels + c] = static_cast<float>(std::nearbyint(value * 32'768) / 32'768);
    }
  }
  return all;
}

/// A file of these interleaved samples; `format` as `SF_FORMAT_WAV | SF_FORMAT_PCM_16`.
inline byte_vector sound_file(int format, const std::vector<float>& samples, std::uint32_t rate,
                              std::size_t channels = 1) {
  growing_file file;
  SF_VIRTUAL_IO io{
      [](void* f) { return static_cast<sf_count_t>(static_cast<growing_file*>(f)->bytes.size()); },
      [](sf_count_t offset, int whence, void* f) {
        auto& self = *static_cast<growing_file*>(f);
        const std::size_t from = whence == SEEK_CUR ? self.at : whence == SEEK_END ? self.bytes.size() : 0;
        self.at = from + static_cast<std::size_t>(offset);
        return static_cast<sf_count_t>(self.at);
      },
      [](void* into, sf_count_t count, void* f) {
        auto& self = *static_cast<growing_file*>(f);
        const std::size_t taken = std::min(static_cast<std::size_t>(count), self.bytes.size() - self.at);
        std::memcpy(into, self.bytes.data() + self.at, taken);
        self.at += taken;
        return static_cast<sf_count_t>(taken);
      },
      [](const void* from, sf_count_t count, void* f) {
        auto& self = *static_cast<growing_file*>(f);
        const auto more = static_cast<std::size_t>(count);
        if (self.bytes.size() < self.at + more) self.bytes.resize(self.at + more);
        std::memcpy(self.bytes.data() + self.at, from, more);
        self.at += more;
        return count;
      },
      [](void* f) { return static_cast<sf_count_t>(static_cast<growing_file*>(f)->at); }};
  SF_INFO info{};
  info.samplerate = static_cast<int>(rate);
  info.channels = static_cast<int>(channels);
  info.format = format;
  SNDFILE* const to = sf_open_virtual(&io, SFM_WRITE, &info, &file);
  if (to == nullptr) return {};
  sf_command(to, SFC_SET_CLIPPING, nullptr, SF_TRUE);
  // In pieces: libsndfile 1.2.0 overflows its stack with much Vorbis at once.
  const std::size_t frames = samples.size() / channels, piece = 4096;
  for (std::size_t i = 0; i < frames; i += piece)
    sf_writef_float(to, samples.data() + i * channels, static_cast<sf_count_t>(std::min(piece, frames - i)));
  sf_close(to);
  return file.bytes;
}

/// All samples of a file, interleaved, as libsndfile reads it from the first to the last.
inline std::vector<float> read_all(ps::bytes_view file) {
  ps::detail::sound_bytes bytes{file};
  SF_INFO info{};
  SNDFILE* const from = sf_open_virtual(ps::detail::sound_bytes::functions(), SFM_READ, &info, &bytes);
  if (from == nullptr) return {};
  std::vector<float> all(static_cast<std::size_t>(info.frames) * static_cast<std::size_t>(info.channels));
  const sf_count_t got = sf_readf_float(from, all.data(), info.frames);
  sf_close(from);
  all.resize(static_cast<std::size_t>(std::max<sf_count_t>(got, 0)) *
             static_cast<std::size_t>(info.channels));
  return all;
}

struct sound_kind {
  const char* name;
  int format;
  std::uint32_t rate = 16'000;
};
/// One of each kind that this libsndfile writes.
inline std::vector<sound_kind> sound_kinds() {
  std::vector<sound_kind> all{{"wav 16", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
                              {"wav float", SF_FORMAT_WAV | SF_FORMAT_FLOAT},
                              {"wav 24", SF_FORMAT_WAV | SF_FORMAT_PCM_24},
                              {"wav 8", SF_FORMAT_WAV | SF_FORMAT_PCM_U8},
                              {"wav extensible", SF_FORMAT_WAVEX | SF_FORMAT_PCM_16},
                              {"wav mu-law", SF_FORMAT_WAV | SF_FORMAT_ULAW},
                              {"rf64", SF_FORMAT_RF64 | SF_FORMAT_PCM_16},
                              {"flac 16", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
                              {"flac 24", SF_FORMAT_FLAC | SF_FORMAT_PCM_24},
                              {"vorbis", SF_FORMAT_OGG | SF_FORMAT_VORBIS},
                              {"opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 48'000},
                              {"mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III},
                              {"aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16},
                              {"au", SF_FORMAT_AU | SF_FORMAT_PCM_16},
                              {"caf", SF_FORMAT_CAF | SF_FORMAT_PCM_16},
                              {"sphere", SF_FORMAT_NIST | SF_FORMAT_PCM_16}};
  std::erase_if(all, [](const sound_kind& kind) {
    SF_INFO info{};
    info.samplerate = static_cast<int>(kind.rate);
    info.channels = 1;
    info.format = kind.format;
    return sf_format_check(&info) == SF_FALSE;
  });
  return all;
}

}  // namespace penstock_test
