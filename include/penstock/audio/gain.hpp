// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/operation.hpp>
#include <penstock/core/random.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// Throws `errc::argument` for a level that is no number, or beyond 200 dB.
inline void check_decibels(double level, std::string_view operation) {
  if (!(level >= -200 && level <= 200))
    throw error(errc::argument,
                {operation, " takes decibels, from -200 to 200, and this is ", number_text(level)})
        .in_stage(operation);
}
inline void check_decibels(double low, double high, std::string_view operation) {
  check_decibels(low, operation);
  check_decibels(high, operation);
  if (low > high)
    throw error(errc::argument, {operation, " takes the lower level first, and ", number_text(low),
                                 " is above ", number_text(high)})
        .in_stage(operation);
}

}  // namespace detail

/// A lazy sound whose samples are multiplied by a factor.
template <lazy_sound S>
class scaled_sound : public sound_over<scaled_sound<S>, S> {
 public:
  scaled_sound(S sound, float factor, sound_scratch& scratch)
      : scaled_sound::sound_over(std::move(sound), scratch), factor_(factor) {}

  void draw(const sound_part& part, const sound_place& place) const {
    this->sound_.draw(part, place);
    const std::size_t channels = this->sound_.form().channels, frames = detail::to_size(part.frames);
    for (std::size_t c = 0; c < channels; ++c) {
      float* const samples = place.channel(c);
      for (std::size_t i = 0; i < frames; ++i) samples[i] *= factor_;
    }
  }

 private:
  float factor_;
};

/// What `gain(db)` makes: a function for `map`.
class gain_operation : public audio_operation {
 public:
  explicit gain_operation(double db) : db_(db) { detail::check_decibels(db, "gain"); }

  template <lazy_sound S>
  [[nodiscard]] scaled_sound<S> operator()(const S& sound, const call<sound_scratch>& c) const {
    return {sound, static_cast<float>(std::pow(10.0, db_ / 20)), c.scratch};
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"gain(", detail::number_text(db_), " dB)"});
  }

 private:
  double db_;
};

/// What `random_gain(low, high)` makes: a function for `map`.
class random_gain_operation : public random_audio_operation {
 public:
  random_gain_operation(double low, double high) : low_(low), high_(high) {
    detail::check_decibels(low, high, "random_gain");
  }

  template <lazy_sound S>
  [[nodiscard]] scaled_sound<S> operator()(const S& sound, const call<sound_scratch>& c) const {
    rng random = c.random();
    return {sound, static_cast<float>(std::pow(10.0, random.uniform(low_, high_) / 20)), c.scratch};
  }
  [[nodiscard]] std::string describe() const {
    return detail::text(
        {"random_gain(", detail::number_text(low_), " dB, ", detail::number_text(high_), " dB)"});
  }

 private:
  double low_, high_;
};

/// Louder by so many decibels, or softer if they are below 0: samples times 10^(db / 20). They are not cut at
/// -1 and 1. torchaudio: `Vol(db, gain_type="db")`, which cuts them there.
///
/// In: a lazy sound. Out: a lazy sound. Pointwise. Cost: a pass where the samples are. Throws
/// `errc::argument` beyond 200 dB.
///
///     auto softer = map<"flac">(gain(-6));
[[nodiscard]] inline gain_operation gain(double db) { return gain_operation(db); }

/// Louder or softer by a number of decibels that each sample draws, uniformly. Lhotse's `perturb_volume`
/// draws a factor. Otherwise as `gain`.
///
///     auto varied = map<"flac">(random_gain(-10, 6));
[[nodiscard]] inline random_gain_operation random_gain(double low, double high) { return {low, high}; }

}  // namespace penstock::inline v0_1
