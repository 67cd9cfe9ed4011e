// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/operation.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

/// A sound as an array of 16-bit integers of shape (channels, frames). It is no sound any more: operations on
/// sounds come before `to_int16`.
template <lazy_sound S>
class int16_samples {
 public:
  using unfinished = void;
  using is_sample_array = void;
  using value_type = std::int16_t;

  int16_samples(S sound, sound_scratch& scratch) : sound_(std::move(sound)), scratch_(&scratch) {}

  [[nodiscard]] extents shape() const { return sound_.shape(); }
  void write_to(const destination<std::int16_t>& into) const {
    const sound_form form = sound_.form();
    const element_strides strides = into.strides();
    const float* from = sound_.finish().data();
    for (std::size_t c = 0; c < form.channels; ++c) {
      std::int16_t* const to = into.data() + static_cast<std::int64_t>(c) * strides[0];
      if (strides[1] == 1) {
        for (std::uint64_t i = 0; i < form.frames; ++i) to[i] = rounded(from[i]);
      } else {
        for (std::uint64_t i = 0; i < form.frames; ++i)
          to[static_cast<std::int64_t>(i) * strides[1]] = rounded(from[i]);
      }
      from += form.frames;
    }
  }
  /// All samples, channel by channel, in the worker's scratch.
  [[nodiscard]] tensor_view<const std::int16_t> finish() const {
    const extents all = shape();
    scratch_->work.resize_for_overwrite(detail::to_size(all.elements()) * sizeof(std::int16_t));
    auto* const samples = reinterpret_cast<std::int16_t*>(scratch_->work.data());
    write_to(destination<std::int16_t>(samples, all));
    return {samples, all};
  }

 private:
  /// To the nearest integer, halves to the even one, within 16 bits. NaN becomes -32,768.
  [[nodiscard]] static std::int16_t rounded(float sample) noexcept {
    const float scaled = sample * 32'768.0f;
    const float within = scaled > -32'768.0f ? (scaled < 32'767.0f ? scaled : 32'767.0f) : -32'768.0f;
    // Adding and taking away 1.5 * 2^23 leaves the nearest integer, in a way that compilers vectorise.
    constexpr float shift = 12'582'912.0f;
    return static_cast<std::int16_t>((within + shift) - shift);
  }

  S sound_;
  sound_scratch* scratch_;
};

/// What `to_int16()` makes: a function for `map`.
class to_int16_operation : public audio_operation {
 public:
  template <lazy_sound S>
  [[nodiscard]] int16_samples<S> operator()(const S& sound, const call<sound_scratch>& c) const {
    return {sound, c.scratch};
  }
  [[nodiscard]] static std::string describe() { return "to_int16"; }
};

/// Ends the operations on a sound: an array of 16-bit integers, half as large as `float`. A sample is
/// multiplied by 32,768 and rounded, and what is beyond 16 bits becomes the nearest integer that is not; so
/// samples of a file of 16 bits are what they are there. soundfile: `read(dtype="int16")`, but for files of
/// real numbers and of more bits, which it truncates.
///
/// In: a lazy sound. Out: an array expression of shape (channels, frames). Pointwise. Cost: a pass from the
/// worker's scratch to the place.
///
///     auto small = map<"flac">(to_int16());
[[nodiscard]] constexpr to_int16_operation to_int16() noexcept { return {}; }

}  // namespace penstock::inline v0_1
