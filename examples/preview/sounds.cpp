// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Sounds as waveforms with their mel features below: the whole sound, and the piece of this epoch, with
// masks.

#include "../preview_parts.hpp"
#include "../sound_picture.hpp"

#include <penstock/audio.hpp>
#include <penstock/codec/audio.hpp>
#include <penstock/penstock.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

constexpr ps::fixed_string members = "wav;flac;ogg;opus;mp3";

/// A function for `map` that makes a picture of a sound of one channel. `Masked`: with masks of
/// `spec_augment`.
template <bool Masked>
class drawn {
 public:
  using accepts_call = void;
  template <class>
  static constexpr bool uses_random = Masked;
  struct scratch {
    std::vector<sound_picture> picture;  // one
    ps::log_mel_features::scratch features;
    ps::spec_augment_operation::scratch masks;
    std::vector<float> mels;
  };

  explicit drawn(std::uint32_t size) : size_(size) {}

  template <ps::lazy_sound S>
  ps::tensor_view<const std::uint8_t> operator()(const S& sound, const ps::call<scratch>& c) const {
    if (c.scratch.picture.empty()) c.scratch.picture.emplace_back(size_);
    // Frames of 25 ms every 10 ms; zeros behind them so that each filter has a frequency of its own.
    const std::uint32_t rate = sound.form().rate, length = std::max(2u, rate / 40);
    const ps::log_mel_features features({.sample_rate = static_cast<double>(rate),
                                         .n_fft = std::max(1024u, 2 * std::bit_ceil(length)),
                                         .win_length = length,
                                         .hop_length = std::max(1u, rate / 100),
                                         .n_mels = 80,
                                         .log = ps::mel_log::decibels});
    const auto samples = sound.finish();
    const ps::extents shape = features.shape(samples.size());
    c.scratch.mels.resize(shape.elements());
    features(samples.values(), c.scratch.mels, c.scratch.features);
    ps::tensor_view<const float> mels(c.scratch.mels.data(), shape);
    if constexpr (Masked) {
      const ps::call<ps::spec_augment_operation::scratch> own{c.at, c.piece, c.seed, c.stream,
                                                              c.scratch.masks};
      mels = masks_(mels, own).finish();
    }
    return c.scratch.picture.front().draw(samples.values(), rate, mels);
  }

 private:
  std::uint32_t size_;
  ps::spec_augment_operation masks_ = ps::spec_augment({.time_share = 0.1, .freq_width = 10, .value = -100});
};

void show(preview_request request) {
  const std::uint32_t size = request.size;
  if (size < sound_picture::min_height) throw std::runtime_error("of sounds, --size is from 64 to 4096");
  const preview_pairs pairs(request, {2 * size, size});
  const auto samples = ps::webdataset(request.shards) | ps::decode<ps::field<members, ps::audio>> |
                       ps::shuffle(ps::seed(request.seed)) | ps::take(request.count);
  const auto originals =
      samples | ps::map<"wav">(ps::mono(), drawn<false>(size)) | ps::batch(request.count) | ps::workers(2);
  const auto augmented =
      samples |
      ps::map<"wav">(ps::mono(),
                     ps::random_crop(static_cast<double>(request.seconds), {.pad_if_needed = true}),
                     ps::random_gain(-6, 6), drawn<true>(size)) |
      ps::batch(request.count) | ps::seed(request.seed) | ps::workers(2);
  pairs.save(originals, augmented,
             [](contact_sheet& paper, std::uint32_t x, std::uint32_t y, const auto& batch, std::uint32_t i) {
               paper.put(x, y, ps::get<"wav">(batch)[i]);
             });
}

const add_preview_kind added({"sounds", members.text, 1, 320, &show});

}  // namespace
