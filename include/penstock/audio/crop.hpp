// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/pad_to.hpp>
#include <penstock/core/random.hpp>

namespace penstock::inline v0_1 {

/// Some frames of a lazy sound. Reads those of the sound within and no others: costs nothing by itself.
template <lazy_sound S>
class cropped_sound : public sound_over<cropped_sound<S>, S> {
 public:
  /// `part` lies within the sound.
  cropped_sound(S sound, const sound_part& part, sound_scratch& scratch)
      : cropped_sound::sound_over(std::move(sound), scratch), part_(part) {}

  [[nodiscard]] sound_form form() const {
    const sound_form inner = this->sound_.form();
    return {part_.frames, inner.rate, inner.channels};
  }
  void draw(const sound_part& part, const sound_place& place) const {
    this->sound_.draw({part_.first + part.first, part.frames}, place);
  }

 private:
  sound_part part_;
};

/// What `crop(at, seconds)` makes: a function for `map`.
class sound_crop_operation : public audio_operation {
 public:
  sound_crop_operation(double at, double seconds) : at_(at), seconds_(seconds) {}

  template <lazy_sound S>
  [[nodiscard]] cropped_sound<S> operator()(const S& sound, const call<sound_scratch>& c) const {
    const sound_form form = sound.form();
    const sound_part part{detail::frames_in(at_, form.rate), detail::frames_in(seconds_, form.rate)};
    if (!part.within(form)) [[unlikely]]
      throw error(errc::shape,
                  {"a crop of ", detail::time_text(part.frames, form.rate), " at ",
                   detail::time_text(part.first, form.rate), " from a sound of ",
                   detail::time_text(form.frames, form.rate), "; write pad_to(seconds) before it"});
    return {sound, part, c.scratch};
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"crop(", detail::number_text(at_), " s, ", detail::number_text(seconds_), " s)"});
  }

 private:
  double at_, seconds_;
};

/// What `random_crop(seconds)` does with a sound that is shorter.
struct random_sound_crop_options {
  bool pad_if_needed = false;  ///< silence is added at its end
};

/// What `random_crop(seconds)` makes: a function for `map`.
class random_sound_crop_operation : public random_audio_operation {
 public:
  random_sound_crop_operation(double seconds, const random_sound_crop_options& options)
      : seconds_(seconds), options_(options) {}

  template <lazy_sound S>
  [[nodiscard]] cropped_sound<padded_sound<S>> operator()(const S& sound,
                                                          const call<sound_scratch>& c) const {
    const sound_form form = sound.form();
    rng random = c.random();
    const sound_part part = choose(form, random);
    return {padded_sound<S>(sound, std::max(form.frames, part.frames), 0.0f, c.scratch), part, c.scratch};
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"random_crop(", detail::number_text(seconds_), " s)"});
  }
  /// The frames, of a sound that may have been padded. They depend on the form and the random numbers only.
  [[nodiscard]] sound_part choose(const sound_form& form, rng& random) const {
    const std::uint64_t frames = detail::frames_in(seconds_, form.rate);
    if (frames > form.frames && !options_.pad_if_needed) [[unlikely]]
      throw error(errc::shape,
                  {"a random crop of ", detail::time_text(frames, form.rate), " from a sound of ",
                   detail::time_text(form.frames, form.rate),
                   "; write random_crop(seconds, {.pad_if_needed = true}), or filter short sounds first"});
    return {random.below(frames > form.frames ? 1 : form.frames - frames + 1), frames};
  }

 private:
  double seconds_;
  random_sound_crop_options options_;
};

/// Some seconds of a sound, from a point of time on. Both are rounded to frames. DALI's `slice`; torchaudio:
/// `load(frame_offset=..., num_frames=...)`, which gives less beyond the end, where this throws.
///
/// In: a lazy sound. Out: a lazy sound, of which only these frames are ever decoded. Pointwise. Seconds are
/// numbers with a fraction or `std::chrono::duration`s.
/// Throws `errc::argument` for a negative time, or no length; `errc::shape`, for a sample, if the sound ends
/// before.
///
///     auto second = map<"flac">(crop(1.0, 1.5));  // from 1 s to 2.5 s
template <detail::time_span At, detail::time_span Length>
[[nodiscard]] sound_crop_operation crop(const At& at, const Length& seconds) {
  return {detail::seconds_of(at, "crop", true), detail::seconds_of(seconds, "crop")};
}

/// So many seconds from anywhere in a sound, from a frame that each is as likely. Lhotse's `truncate` at
/// random offsets.
///
/// In: a lazy sound. Out: a lazy sound of one length for all samples of one rate, of which only these frames
/// are ever decoded. Pointwise; draws a random number. With one `key`, sounds of one form get the same place.
/// Throws `errc::argument` for a length that is not positive; `errc::shape`, for a sample, if the sound is
/// shorter, and not padded.
///
///     auto train = map<"flac">(random_crop(5.0, {.pad_if_needed = true}));
template <detail::time_span Length>
[[nodiscard]] random_sound_crop_operation random_crop(const Length& seconds,
                                                      const random_sound_crop_options& options = {}) {
  return {detail::seconds_of(seconds, "random_crop"), options};
}

}  // namespace penstock::inline v0_1
