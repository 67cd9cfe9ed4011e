// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/operation.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

/// A lazy sound that is padded with samples of one value, or cut off.
template <lazy_sound S>
class padded_sound : public sound_over<padded_sound<S>, S> {
 public:
  padded_sound(S sound, std::uint64_t frames, float value, sound_scratch& scratch)
      : padded_sound::sound_over(std::move(sound), scratch), frames_(frames), value_(value) {}

  [[nodiscard]] sound_form form() const {
    const sound_form inner = this->sound_.form();
    return {frames_, inner.rate, inner.channels};
  }
  void draw(const sound_part& part, const sound_place& place) const {
    const sound_form inner = this->sound_.form();
    const std::uint64_t there =
        inner.frames <= part.first ? 0 : std::min(inner.frames - part.first, part.frames);
    if (there != 0) this->sound_.draw({part.first, there}, place);
    if (there == part.frames) return;
    for (std::size_t c = 0; c < inner.channels; ++c)
      std::fill_n(place.channel(c) + there, detail::to_size(part.frames - there), value_);
  }

 private:
  std::uint64_t frames_;
  float value_;
};

/// With what `pad_to` and `pad_or_trim` go on.
struct sound_padding {
  float value = 0;  ///< silence
};

/// What `pad_to(seconds)` and `pad_or_trim(seconds)` make: a function for `map`.
class pad_to_operation : public audio_operation {
 public:
  pad_to_operation(double seconds, bool trim, const sound_padding& padding)
      : seconds_(seconds), trim_(trim), value_(padding.value) {}

  template <lazy_sound S>
  [[nodiscard]] padded_sound<S> operator()(const S& sound, const call<sound_scratch>& c) const {
    const sound_form form = sound.form();
    const std::uint64_t wanted = detail::frames_in(seconds_, form.rate);
    return {sound, trim_ ? wanted : std::max(wanted, form.frames), value_, c.scratch};
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({trim_ ? "pad_or_trim(" : "pad_to(", detail::number_text(seconds_), " s)"});
  }

 private:
  double seconds_;
  bool trim_;
  float value_;
};

/// Silence at the end of a sound that is shorter than this; longer ones stay as they are. torch:
/// `torch.nn.functional.pad(waveform, (0, missing))`.
///
/// In: a lazy sound. Out: a lazy sound. Pointwise. Seconds are rounded to frames; they are a number with a
/// fraction or a `std::chrono::duration`. Throws `errc::argument` for a length that is not positive.
///
///     auto at_least = map<"flac">(pad_to(5.0));
template <detail::time_span Length>
[[nodiscard]] pad_to_operation pad_to(const Length& seconds, const sound_padding& padding = {}) {
  return {detail::seconds_of(seconds, "pad_to"), false, padding};
}

/// Sounds of exactly this length: silence at the end of shorter ones, and the end of longer ones is left
/// away, and never decoded. Whisper's `pad_or_trim`. Otherwise as `pad_to`.
///
///     auto whisper = map<"flac">(pad_or_trim(30.0));
template <detail::time_span Length>
[[nodiscard]] pad_to_operation pad_or_trim(const Length& seconds, const sound_padding& padding = {}) {
  return {detail::seconds_of(seconds, "pad_or_trim"), true, padding};
}

}  // namespace penstock::inline v0_1
