// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/log_mel_options.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/tensor.hpp>

#include <memory>
#include <span>

namespace penstock::inline v0_1 {

namespace detail {
struct log_mel_tables;
}  // namespace detail

/// Logarithmic mel features of a sound: what Whisper, Kaldi and torchaudio compute, by the options. Made
/// once, it has the window, the filters and the factors of the transform; copies share them.
///
/// In: the samples of one channel. Out: `shape(samples)` floats, row-major, which the caller has room for:
/// frames x mels, or mels x frames with `mels_first`. The shape follows from the number of samples alone, so
/// that a batch knows its own before anything is decoded. A sound that is empty, or too short for a frame,
/// has none; one that is shorter than what is reflected is reflected again. A sample that is not a number
/// makes numbers that are none of the frames that it is in, and of no others.
///
/// Any number of threads call one object, each with a scratch of its own. No allocation once the scratch has
/// grown, which depends on the options alone. Cost: of 30 seconds with Whisper's options 4 ms, for n_fft of
/// the factors 2, 3 and 5; other primes cost their square.
/// Throws `errc::argument` for options that make no sense, when it is made; `errc::shape` if there is room
/// for another number of values.
///
///     const log_mel_features features(log_mel_options::whisper());
///     log_mel_features::scratch scratch;
///     std::vector<float> samples(480'000), mels(features.shape(samples.size()).elements());
///     features(samples, mels, scratch);                        // 80 x 3000
class log_mel_features {
 public:
  /// Memory of one thread.
  struct scratch {
    buffer memory;
  };

  explicit log_mel_features(const log_mel_options& options = {});

  [[nodiscard]] const log_mel_options& options() const noexcept { return options_; }
  /// How many frames a sound of that many samples has.
  [[nodiscard]] std::uint64_t frames(std::uint64_t samples) const noexcept {
    return options_.frames(samples);
  }
  /// The shape of the features of a sound of that many samples.
  [[nodiscard]] extents shape(std::uint64_t samples) const noexcept {
    return options_.mels_first ? extents(options_.n_mels, frames(samples))
                               : extents(frames(samples), options_.n_mels);
  }

  void operator()(std::span<const float> samples, std::span<float> into, scratch& memory) const;

 private:
  log_mel_options options_;
  std::shared_ptr<const detail::log_mel_tables> tables_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/audio/log_mel_features.ipp>
#endif
