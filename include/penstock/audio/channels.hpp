// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/operation.hpp>
#include <penstock/core/any_count.hpp>

#include <algorithm>
#include <limits>

namespace penstock::inline v0_1 {

namespace detail {

/// Reads frames of all channels to a scratch, one channel behind the other.
template <lazy_sound S>
[[nodiscard]] sound_place read_planes(const S& sound, const sound_part& part, sound_scratch& scratch) {
  const std::size_t frames = to_size(part.frames);
  const sound_place planes{room_for_samples(scratch.samples, part.frames * sound.form().channels), frames};
  sound.draw(part, planes);
  return planes;
}

}  // namespace detail

/// A lazy sound of one channel: the mean of all of them.
template <lazy_sound S>
class mixed_down : public sound_over<mixed_down<S>, S> {
 public:
  using mixed_down::sound_over::sound_over;

  [[nodiscard]] sound_form form() const {
    const sound_form inner = this->sound_.form();
    return {inner.frames, inner.rate, 1};
  }
  void draw(const sound_part& part, const sound_place& place) const {
    const std::size_t channels = this->sound_.form().channels, frames = detail::to_size(part.frames);
    if (channels == 1) return this->sound_.draw(part, place);
    const sound_place planes = detail::read_planes(this->sound_, part, this->memory());
    const float* const left = planes.channel(0);
    const float* const right = planes.channel(1);
    float* const to = place.data;
    if (channels == 2) {
      for (std::size_t i = 0; i < frames; ++i) to[i] = (left[i] + right[i]) * 0.5f;
      return;
    }
    for (std::size_t i = 0; i < frames; ++i) to[i] = left[i] + right[i];
    for (std::size_t c = 2; c < channels; ++c) {
      const float* const more = planes.channel(c);
      for (std::size_t i = 0; i < frames; ++i) to[i] += more[i];
    }
    const auto count = static_cast<float>(channels);
    for (std::size_t i = 0; i < frames; ++i) to[i] /= count;
  }
};

/// A lazy sound of one channel of another.
template <lazy_sound S>
class one_channel : public sound_over<one_channel<S>, S> {
 public:
  one_channel(S sound, std::size_t number, sound_scratch& scratch)
      : one_channel::sound_over(std::move(sound), scratch), number_(number) {}

  [[nodiscard]] sound_form form() const {
    const sound_form inner = this->sound_.form();
    return {inner.frames, inner.rate, 1};
  }
  void draw(const sound_part& part, const sound_place& place) const {
    if (this->sound_.form().channels == 1) return this->sound_.draw(part, place);
    const sound_place planes = detail::read_planes(this->sound_, part, this->memory());
    std::copy_n(planes.channel(number_), planes.pitch, place.data);
  }

 private:
  std::size_t number_;
};

/// The samples of a sound of one channel as an array of one dimension.
template <lazy_sound S>
class squeezed_sound {
 public:
  using unfinished = void;
  using is_sample_array = void;
  using value_type = float;

  explicit squeezed_sound(S sound) : sound_(std::move(sound)) {}

  [[nodiscard]] extents shape() const { return extents(detail::to_size(sound_.form().frames)); }
  void write_to(const destination<float>& into) const {
    detail::write_or_copy(
        into,
        [&](float* data) {
          sound_.draw(detail::whole_sound(sound_.form()), {data, 0});
        },
        [&] { return std::span<const float>(finish().values()); });
  }
  [[nodiscard]] tensor_view<const float> finish() const { return {sound_.finish().data(), shape()}; }

 private:
  S sound_;
};

/// What `mono()` makes: a function for `map`.
class mono_operation : public audio_operation {
 public:
  template <lazy_sound S>
  [[nodiscard]] mixed_down<S> operator()(const S& sound, const call<sound_scratch>& c) const {
    return {sound, c.scratch};
  }
  [[nodiscard]] static std::string describe() { return "mono"; }
};

/// What `channel(i)` makes: a function for `map`.
class channel_operation : public audio_operation {
 public:
  explicit channel_operation(std::size_t number) : number_(number) {}

  template <lazy_sound S>
  [[nodiscard]] one_channel<S> operator()(const S& sound, const call<sound_scratch>& c) const {
    if (const sound_form form = sound.form(); number_ >= form.channels) [[unlikely]]
      throw error(errc::shape, {"channel(", number_, ") of a sound of ", form.channels,
                                " channels, which are counted from 0"});
    return {sound, number_, c.scratch};
  }
  [[nodiscard]] std::string describe() const { return detail::text({"channel(", number_, ")"}); }

 private:
  std::size_t number_;
};

/// What `squeeze()` makes: a function for `map`.
class squeeze_operation : public audio_operation {
 public:
  template <lazy_sound S>
  [[nodiscard]] squeezed_sound<S> operator()(const S& sound, const call<sound_scratch>& /*c*/) const {
    if (const sound_form form = sound.form(); form.channels != 1) [[unlikely]]
      throw error(errc::shape, {"squeeze() of a sound of ", form.channels,
                                " channels; write mono() or channel(0) before it"});
    return squeezed_sound<S>(sound);
  }
  [[nodiscard]] static std::string describe() { return "squeeze"; }
};

/// Makes one channel of all: their mean. torchaudio: `waveform.mean(dim=0, keepdim=True)`; DALI's
/// `decoders.audio(downmix=True)`, without its last dimension.
///
/// In: a lazy sound. Out: a lazy sound of shape (1, frames). Pointwise. Cost: a pass; nothing for a sound
/// that has one channel.
///
///     auto speech = map<"flac">(mono());
[[nodiscard]] constexpr mono_operation mono() noexcept { return {}; }

/// One channel, counted from 0. torchaudio: `waveform[i:i + 1]`.
///
/// In: a lazy sound. Out: a lazy sound of shape (1, frames). Pointwise. Throws `errc::argument` for a
/// negative number; `errc::shape`, for a sample, if the sound has no such channel.
///
///     auto caller = map<"wav">(channel(0));
[[nodiscard]] inline channel_operation channel(any_count number) {
  return channel_operation(detail::to_size(number.of("channel")));
}
/// The samples of a sound of one channel as an array of one dimension, which `pad_to_longest` pads and `pack`
/// lays into rows. It is no sound any more: operations on sounds come before it. torch:
/// `waveform.squeeze(0)`.
///
/// In: a lazy sound. Out: an array expression of shape (frames). Pointwise. Costs nothing: the samples are
/// decoded to their place. Throws `errc::shape`, for a sample, if the sound has several channels.
///
///     auto samples = map<"flac">(mono(), squeeze());
[[nodiscard]] constexpr squeeze_operation squeeze() noexcept { return {}; }

}  // namespace penstock::inline v0_1
