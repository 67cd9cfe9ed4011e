// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/channels.hpp>
#include <penstock/audio/gain.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// A noise, played in a loop from one of its frames on.
struct noise_piece {
  shown_sound noise;
  std::uint64_t first = 0;

  /// Calls `f(noise's samples, where they go, how many)` for the runs of `frames` frames from `at` on.
  template <class F>
  void each_run(std::size_t channel, std::uint64_t at, std::uint64_t frames, const F& f) const {
    const std::uint64_t length = noise.form().frames;
    const float* const samples = noise.channel(noise.form().channels == 1 ? 0 : channel);
    std::uint64_t from = (first + at) % length;
    for (std::uint64_t done = 0; done < frames;) {
      const std::uint64_t run = std::min(length - from, frames - done);
      f(samples + from, to_size(done), to_size(run));
      done += run;
      from = 0;
    }
  }
};

[[nodiscard]] inline double energy_of(const float* samples, std::size_t count) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sum += static_cast<double>(samples[i]) * static_cast<double>(samples[i]);
  return sum;
}

}  // namespace detail

/// A lazy sound with noise. The energy of all of the sound decides how loud the noise is, so that a part of
/// it needs all of the sound within. Valid as long as the operation, which has the noises.
template <lazy_sound S>
class noisy_sound : public sound_over<noisy_sound<S>, S> {
 public:
  noisy_sound(S sound, const detail::noise_piece& piece, double snr, sound_scratch& scratch)
      : noisy_sound::sound_over(std::move(sound), scratch), piece_(piece), snr_(snr) {}

  void draw(const sound_part& part, const sound_place& place) const {
    const sound_form form = this->sound_.form();
    const std::size_t channels = form.channels;
    const bool all = part == detail::whole_sound(form);
    const sound_place samples =
        all ? place : detail::read_planes(this->sound_, detail::whole_sound(form), this->memory());
    if (all) this->sound_.draw(part, place);
    double signal = 0, noise = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      signal += detail::energy_of(samples.channel(c), detail::to_size(form.frames));
      piece_.each_run(c, 0, form.frames, [&](const float* from, std::size_t, std::size_t run) {
        noise += detail::energy_of(from, run);
      });
    }
    const bool silent = !(signal > 0) || !(noise > 0);
    const auto factor =
        static_cast<float>(silent ? 0.0 : std::sqrt(signal / noise) * std::pow(10.0, -snr_ / 20));
    for (std::size_t c = 0; c < channels; ++c) {
      float* const to = place.channel(c);
      if (!all) std::copy_n(samples.channel(c) + part.first, detail::to_size(part.frames), to);
      piece_.each_run(c, part.first, part.frames, [&](const float* from, std::size_t at, std::size_t run) {
        for (std::size_t i = 0; i < run; ++i) to[at + i] += factor * from[i];
      });
    }
  }

 private:
  detail::noise_piece piece_;
  double snr_;
};

/// What `add_noise(noises, snr)` makes: a function for `map`. Copies share the noises.
class add_noise_operation : public random_audio_operation {
 public:
  add_noise_operation(std::vector<kept_sound> noises, double low, double high)
      : noises_(std::make_shared<const std::vector<kept_sound>>(std::move(noises))), low_(low), high_(high) {
    detail::check_decibels(low, high, "add_noise");
    if (noises_->empty()) throw error(errc::argument, "add_noise is given no noise").in_stage("add_noise");
    for (std::size_t i = 0; i < noises_->size(); ++i)
      if ((*noises_)[i].form().frames == 0 || (*noises_)[i].form().channels == 0)
        throw error(errc::argument, {"add_noise: noise ", i, " has no samples"}).in_stage("add_noise");
  }

  template <lazy_sound S>
  [[nodiscard]] noisy_sound<S> operator()(const S& sound, const call<sound_scratch>& c) const {
    rng random = c.random();
    const std::size_t number = detail::to_size(random.below(noises_->size()));
    const shown_sound noise = (*noises_)[number].shown();
    const sound_form of_noise = noise.form(), form = sound.form();
    if (of_noise.rate != form.rate) [[unlikely]]
      throw error(errc::shape, {"add_noise: the sound has ", form.rate, " frames in a second, and noise ",
                                number, " has ", of_noise.rate, "; resample one of them first"});
    if (of_noise.channels != 1 && of_noise.channels != form.channels) [[unlikely]]
      throw error(errc::shape, {"add_noise: the sound has ", form.channels, " channels, and noise ", number,
                                " has ", of_noise.channels, "; use noises of one channel"});
    const std::uint64_t first = random.below(of_noise.frames);
    return {sound, {noise, first}, random.uniform(low_, high_), c.scratch};
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"add_noise(", noises_->size(), " noises, ", detail::number_text(low_), " to ",
                         detail::number_text(high_), " dB)"});
  }

 private:
  std::shared_ptr<const std::vector<kept_sound>> noises_;
  double low_, high_;
};

/// Adds a noise, so loud that the sound is by `snr` decibels above it: by energy, of all of the sound and of
/// the noise that is added to it. Which noise of the list, and where it begins, each sample draws; a noise
/// that is shorter begins again. torchaudio's `add_noise` and `AddNoise`, for one channel; channels of one
/// sound get one factor here, and a noise of one channel is added to each.
///
/// In: a lazy sound, at the rate of the noises. Out: a lazy sound. Pointwise; draws random numbers, also for
/// the level if it is from `low` to `high`. Cost: two passes over sound and noise; a part of it needs all of
/// the sound, so a crop comes before it. A sound or a noise that is silent stays as it is.
/// Throws `errc::argument` for no noise, an empty one, or levels beyond 200 dB; `errc::shape`, for a sample,
/// if rates differ, or numbers of channels do.
///
///     kept_sound hum;
///     hum.assign(std::vector<float>(16'000, 0.1f), {.frames = 16'000, .rate = 16'000, .channels = 1});
///     auto train = map<"flac">(random_crop(5.0), add_noise({hum}, 5, 20));
[[nodiscard]] inline add_noise_operation add_noise(std::vector<kept_sound> noises, double low, double high) {
  return {std::move(noises), low, high};
}
[[nodiscard]] inline add_noise_operation add_noise(std::vector<kept_sound> noises, double snr) {
  return {std::move(noises), snr, snr};
}

}  // namespace penstock::inline v0_1
