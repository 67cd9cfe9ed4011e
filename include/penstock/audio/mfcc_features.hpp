// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/log_mel_features.hpp>

#include <vector>

namespace penstock::inline v0_1 {

/// Options of `mfcc_features`.
struct mfcc_options {
  log_mel_options mel{};      ///< the features that are transformed; `mels_first` is for the coefficients
  std::uint32_t n_mfcc = 40;  ///< the number of coefficients, with the zeroth; at most mel.n_mels
  double lifter = 0;          ///< coefficient i is multiplied by 1 + lifter / 2 sin(pi i / lifter); 0: by 1

  /// torchaudio.transforms.MFCC with its defaults: decibels, of which none is more than 80 below the largest.
  [[nodiscard]] static constexpr mfcc_options torchaudio(std::uint32_t n_mfcc = 40) {
    return {.mel = {.log = mel_log::decibels, .range = 80, .mels_first = true}, .n_mfcc = n_mfcc};
  }
  /// compute-mfcc-feats of Kaldi with --use-energy=false and without dither, and
  /// torchaudio.compliance.kaldi.mfcc.
  [[nodiscard]] static constexpr mfcc_options kaldi(std::uint32_t n_mfcc = 13, std::uint32_t n_mels = 23,
                                                    double sample_rate = 16'000) {
    return {.mel = log_mel_options::kaldi(n_mels, sample_rate), .n_mfcc = n_mfcc, .lifter = 22};
  }
};

/// Mel frequency cepstral coefficients of a sound: the orthogonal cosine transform (DCT-II) of the log mel
/// features of each frame. Made once; copies share its tables.
///
/// In, shape, threads, and what is thrown: as with `log_mel_features`, with coefficients in the place of
/// mels.
/// The scratch grows with the longest sound, as the features before the transform lie there.
///
///     const mfcc_features features(mfcc_options::kaldi());
///     mfcc_features::scratch scratch;
///     std::vector<float> samples(16'000), made(features.shape(samples.size()).elements());
///     features(samples, made, scratch);                        // 98 x 13
class mfcc_features {
 public:
  /// Memory of one thread.
  struct scratch {
    log_mel_features::scratch mel;
    buffer features;
  };

  explicit mfcc_features(const mfcc_options& options = {});

  [[nodiscard]] const mfcc_options& options() const noexcept { return options_; }
  /// How many frames a sound of that many samples has.
  [[nodiscard]] std::uint64_t frames(std::uint64_t samples) const noexcept { return mel_.frames(samples); }
  /// The shape of the coefficients of a sound of that many samples.
  [[nodiscard]] extents shape(std::uint64_t samples) const noexcept {
    return options_.mel.mels_first ? extents(options_.n_mfcc, frames(samples))
                                   : extents(frames(samples), options_.n_mfcc);
  }

  void operator()(std::span<const float> samples, std::span<float> into, scratch& memory) const;

 private:
  mfcc_options options_;
  log_mel_features mel_;  ///< with frames first
  std::shared_ptr<const std::vector<float>> transform_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/audio/mfcc_features.ipp>
#endif
