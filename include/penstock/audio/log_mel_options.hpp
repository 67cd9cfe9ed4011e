// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

#include <cmath>

namespace penstock::inline v0_1 {

/// How hertz become mels, and where the filters are triangles.
///   htk     2595 log10(1 + f / 700), triangles over hertz: torchaudio's default
///   slaney  linear below 1 kHz, logarithmic above, triangles over hertz: librosa's default, and Whisper's
///   kaldi   HTK's mels, triangles over mels, without the highest frequency: Kaldi's
enum class mel_scale : std::uint8_t { htk, slaney, kaldi };

/// What a frame is multiplied with. `hann` and `hamming` are periodic, as torch.hann_window makes them;
/// `povey`, a symmetric Hann window to the power of 0.85, is Kaldi's.
enum class frame_window : std::uint8_t { hann, hamming, povey, rectangular };

/// Which frames there are, and what is beyond the ends of a sound.
///   reflect  frames are centred on multiples of the hop; beyond the ends the sound is reflected, without its
///            last sample: center=True, pad_mode="reflect" of torch.stft
///   zeros    the same, with zeros beyond the ends: pad_mode="constant"
///   snip     only frames that lie within the sound: center=False of torch.stft where the window is as long
///            as the transform, and snip_edges=True of Kaldi
///   mirror   frames are centred on the middle of each hop; beyond the ends the sound is reflected with its
///            last sample: snip_edges=False of Kaldi
enum class frame_edges : std::uint8_t { reflect, zeros, snip, mirror };

/// What becomes of the energy x of a filter.
///   natural   ln(x)
///   log10     log10(x)
///   decibels  10 log10(x), as torchaudio's AmplitudeToDB of powers
///   none      x
enum class mel_log : std::uint8_t { natural, log10, decibels, none };

/// Options of `log_mel_features`. As they are they give torchaudio's MelSpectrogram with its defaults, and
/// the natural logarithm of it.
struct log_mel_options {
  double sample_rate = 16'000;   ///< in hertz
  std::uint32_t n_fft = 400;     ///< the length of the transform
  std::uint32_t win_length = 0;  ///< the length of a frame, at most n_fft; 0: as n_fft
  std::uint32_t hop_length = 0;  ///< samples from frame to frame; 0: half of a frame
  std::uint32_t n_mels = 128;    ///< the number of filters
  double f_min = 0;              ///< where the first filter begins, in hertz
  double f_max = 0;              ///< where the last one ends; 0: at half the rate
  std::uint32_t power = 2;       ///< 2: of the powers of the frequencies; 1: of their magnitudes
  frame_window window = frame_window::hann;
  frame_edges edges = frame_edges::reflect;
  mel_scale scale = mel_scale::htk;
  bool slaney_norm = false;  ///< filters of equal area: norm="slaney"
  /// samples are multiplied with it; Kaldi counts in units of 16 bits: 32'768
  double gain = 1;
  bool remove_dc = false;  ///< subtracts the mean of each frame
  double preemphasis = 0;  ///< subtracts this share of the sample before, within a frame
  mel_log log = mel_log::natural;
  double floor = 1e-10;     ///< energies below it count as it
  double add = 0;           ///< is added to energies before that
  double range = 0;         ///< values further than this below the largest one are raised; 0: none are
  double shift = 0;         ///< is added at the end,
  double multiply = 1;      ///< and then the sum multiplied
  bool drop_last = false;   ///< leaves the last frame out
  bool mels_first = false;  ///< (mels, frames) instead of (frames, mels)

  /// log_mel_spectrogram of openai-whisper, and WhisperFeatureExtractor of transformers: of a sound of 30
  /// seconds at 16 kHz an array of 80 x 3000, or of 128 x 3000 for large-v3. Both pad the sound with zeros to
  /// 30 seconds before.
  [[nodiscard]] static constexpr log_mel_options whisper(std::uint32_t n_mels = 80) {
    return {.hop_length = 160,
            .n_mels = n_mels,
            .scale = mel_scale::slaney,
            .slaney_norm = true,
            .log = mel_log::log10,
            .range = 8,
            .shift = 4,
            .multiply = 0.25,
            .drop_last = true,
            .mels_first = true};
  }
  /// compute-fbank-feats of Kaldi without dither, and torchaudio.compliance.kaldi.fbank: frames of 25 ms
  /// every 10 ms, with 23 filters from 20 Hz. Kaldi reads samples as numbers of 16 bits; set `.gain = 32'768`
  /// for the same values from samples between -1 and 1.
  [[nodiscard]] static constexpr log_mel_options kaldi(std::uint32_t n_mels = 23,
                                                       double sample_rate = 16'000) {
    const auto length = static_cast<std::uint32_t>(sample_rate * 0.025);
    std::uint32_t n_fft = 1;
    while (n_fft < length) n_fft *= 2;
    return {.sample_rate = sample_rate,
            .n_fft = n_fft,
            .win_length = length,
            .hop_length = static_cast<std::uint32_t>(sample_rate * 0.01),
            .n_mels = n_mels,
            .f_min = 20,
            .window = frame_window::povey,
            .edges = frame_edges::snip,
            .scale = mel_scale::kaldi,
            .remove_dc = true,
            .preemphasis = 0.97,
            .floor = 0x1p-23};
  }

  /// The length of a frame, and the way from one to the next, in samples.
  [[nodiscard]] constexpr std::uint32_t frame_length() const { return win_length == 0 ? n_fft : win_length; }
  [[nodiscard]] constexpr std::uint32_t hop() const {
    return hop_length == 0 ? frame_length() / 2 : hop_length;
  }
  /// How many frames a sound of that many samples has; none if it is empty, or too short for one.
  [[nodiscard]] constexpr std::uint64_t frames(std::uint64_t samples) const {
    std::uint64_t count = 0;
    if (edges == frame_edges::snip)
      count = samples < frame_length() ? 0 : 1 + (samples - frame_length()) / hop();
    else if (edges == frame_edges::mirror)
      count = (samples + hop() / 2) / hop();
    else if (samples > 0)
      count = 1 + (samples - n_fft % 2) / hop();
    return count - (drop_last && count > 0 ? 1 : 0);
  }
  /// Where the frame of that number begins; before the sound if it is negative.
  [[nodiscard]] constexpr std::int64_t frame_begin(std::uint64_t number) const {
    const auto at = static_cast<std::int64_t>(number * hop());
    if (edges == frame_edges::snip) return at;
    if (edges == frame_edges::mirror) return at + hop() / 2 - frame_length() / 2;
    return at + (n_fft - frame_length()) / 2 - n_fft / 2;
  }
};

namespace detail {

/// Which sample of a sound of `size` stands at a place that may be beyond its ends; -1: none, but 0.
[[nodiscard]] constexpr std::int64_t reflected_place(std::int64_t at, std::int64_t size, frame_edges edges) {
  if (at >= 0 && at < size) return at;
  if (edges == frame_edges::zeros) return -1;
  const std::int64_t twice = edges == frame_edges::mirror ? 1 : 0;  // the last sample
  const std::int64_t period = 2 * size - 2 + 2 * twice;
  if (period == 0) return 0;
  std::int64_t place = at % period;
  if (place < 0) place += period;
  return place < size ? place : period - place - twice;
}

/// Whether all prime factors of a number are below a thousand: others take a transform their square.
[[nodiscard]] constexpr bool has_small_factors(std::uint32_t number) noexcept {
  for (std::uint32_t factor = 2; factor < 1000; ++factor)
    while (number % factor == 0) number /= factor;
  return number == 1;
}

/// Throws `errc::argument`, with a sentence about the option that is wrong.
inline void check_log_mel(const log_mel_options& o) {
  const auto refuse = [](std::string_view why) { throw error(errc::argument, {"log mel features: ", why}); };
  constexpr std::uint32_t largest = 1u << 20;
  if (!(o.sample_rate > 0 && std::isfinite(o.sample_rate)))
    refuse("sample_rate is in hertz, as in .sample_rate = 16'000");
  if (o.n_fft < 2 || o.n_fft > largest)
    refuse("n_fft, the length of the transform, is from 2 to 1,048,576 samples");
  if (!has_small_factors(o.n_fft))
    refuse(
        "n_fft has a prime factor above 1000, which makes the transform slow; choose a length of small ones");
  if (o.frame_length() < 2 || o.frame_length() > o.n_fft)
    refuse("win_length, the length of a frame, is from 2 samples to n_fft; set .n_fft to at least as many");
  if (o.hop() > largest) refuse("hop_length, from frame to frame, is at most 1,048,576 samples");
  if (o.n_mels < 1 || o.n_mels > largest) refuse("n_mels, the number of filters, is from 1 to 1,048,576");
  if (const double top = o.f_max == 0 ? o.sample_rate / 2 : o.f_max;
      !(o.f_min >= 0 && o.f_min < top && top <= o.sample_rate / 2))
    refuse("f_min and f_max are frequencies, the first below the other, and that at most half the rate");
  if (o.power != 1 && o.power != 2) refuse("power is 2, or 1 for magnitudes");
  if (!(o.preemphasis >= 0 && o.preemphasis <= 1)) refuse("preemphasis is a share, from 0 to 1");
  if (!(o.floor >= 0 && o.add >= 0 && o.range >= 0)) refuse("floor, add and range are not below 0");
  if (o.log != mel_log::none && o.floor + o.add < 0x1p-126)
    refuse("0 has no logarithm; set .floor or .add, as in .floor = 1e-10");
  for (const double value : {o.gain, o.floor, o.add, o.range, o.shift, o.multiply})
    if (!std::isfinite(value)) refuse("gain, floor, add, range, shift and multiply are finite numbers");
}

}  // namespace detail

}  // namespace penstock::inline v0_1
