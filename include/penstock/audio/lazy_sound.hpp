// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>

#include <concepts>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// Sounds that are not decoded yet. An operation wraps one in another; nothing is decoded until the last one
/// knows where its samples go, and then only the part that is needed.
namespace penstock::inline v0_1 {

/// How long a sound is, and of what.
struct sound_form {
  std::uint64_t frames = 0;    ///< samples of each channel
  std::uint32_t rate = 0;      ///< frames in a second
  std::uint32_t channels = 0;  ///< 1 for mono, 2 for stereo

  [[nodiscard]] constexpr double seconds() const noexcept {
    return rate == 0 ? 0.0 : static_cast<double>(frames) / rate;
  }
  friend constexpr bool operator==(const sound_form&, const sound_form&) = default;
};

/// Some frames of a sound that follow each other.
struct sound_part {
  std::uint64_t first = 0;
  std::uint64_t frames = 0;

  [[nodiscard]] constexpr bool within(const sound_form& form) const noexcept {
    return first <= form.frames && frames <= form.frames - first;
  }
  friend constexpr bool operator==(const sound_part&, const sound_part&) = default;
};

/// Where samples go: those of a channel one behind the other, `pitch` samples after those of the channel
/// before.
struct sound_place {
  float* data = nullptr;
  std::size_t pitch = 0;

  [[nodiscard]] constexpr float* channel(std::size_t c) const noexcept { return data + c * pitch; }
};

/// What one operation, or one codec, keeps for one worker. The buffers keep their capacity, so that nothing
/// is allocated once they have grown.
struct sound_scratch {
  buffer samples;  ///< what an operation reads of the sound within
  buffer work;     ///< samples between two passes
  buffer dense;    ///< for `finish`
};

namespace detail {

/// Room for samples in a buffer; its old content is lost.
[[nodiscard]] inline float* room_for_samples(buffer& b, std::uint64_t count) {
  b.resize_for_overwrite(to_size(count) * sizeof(float));
  return reinterpret_cast<float*>(b.data());
}
[[nodiscard]] constexpr sound_part whole_sound(const sound_form& form) noexcept { return {0, form.frames}; }

}  // namespace detail

/// A sound that is not decoded yet: an array expression of `float`, of shape (channels, frames), whose
/// samples are from -1 to 1.
///   form()             frames, rate and channels
///   draw(part, place)  writes frames of all channels; the part lies within the sound
///   memory()           a scratch that `finish` may use
/// Derive from `sound_expression`, which has everything else.
template <class S>
concept lazy_sound = placed_expression<S> && requires(const std::remove_cvref_t<S>& sound,
                                                      const sound_part& part, const sound_place& place) {
  typename std::remove_cvref_t<S>::is_lazy_sound;
  { sound.form() } -> std::same_as<sound_form>;
  sound.draw(part, place);
  { sound.memory() } -> std::same_as<sound_scratch&>;
};

/// The base of lazy sounds. `Self` has `form()`, `draw(part, place)` and `memory()`.
template <class Self>
struct sound_expression {
  using unfinished = void;
  using is_lazy_sound = void;
  using value_type = float;

  /// (channels, frames)
  [[nodiscard]] extents shape() const {
    const sound_form form = self().form();
    return extents(std::size_t{form.channels}, detail::to_size(form.frames));
  }
  /// Whether a part may differ from that part of the whole, if only in its last bits.
  [[nodiscard]] static constexpr bool parts_differ() noexcept { return false; }
  /// Straight to the place, if the samples of a channel follow each other there.
  void write_to(const destination<float>& into) const {
    const sound_form form = self().form();
    const element_strides strides = into.strides();
    if ((strides[1] == 1 || form.frames <= 1) && (strides[0] >= 0 || form.channels == 1))
      return self().draw(detail::whole_sound(form),
                         {into.data(), form.channels == 1 ? 0 : static_cast<std::size_t>(strides[0])});
    into.copy_from(std::span<const float>(finish().values()));
  }
  /// All samples, channel by channel; valid as long as the sound, until its next use.
  [[nodiscard]] tensor_view<const float> finish() const {
    const sound_form form = self().form();
    float* const dense = detail::room_for_samples(self().memory().dense, form.frames * form.channels);
    self().draw(detail::whole_sound(form), {dense, detail::to_size(form.frames)});
    return {dense, shape()};
  }
  /// For `to_float`: samples are real numbers already.
  template <std::same_as<float> Out>
  [[nodiscard]] Self converted() const {
    return self();
  }

 private:
  [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

/// The base of lazy sounds that an operation makes of another one, with the worker's scratch. They have its
/// form, unless `Self` has another.
template <class Self, lazy_sound S>
class sound_over : public sound_expression<Self> {
 public:
  sound_over(S sound, sound_scratch& scratch) : sound_(std::move(sound)), scratch_(&scratch) {}

  [[nodiscard]] sound_form form() const { return sound_.form(); }
  [[nodiscard]] bool parts_differ() const { return sound_.parts_differ(); }
  [[nodiscard]] sound_scratch& memory() const { return *scratch_; }

 protected:
  S sound_;
  sound_scratch* scratch_;
};

/// A sound whose samples stay in memory, channel by channel: reading a part of it is a copy.
class shown_sound : public sound_expression<shown_sound> {
 public:
  shown_sound(const float* samples, const sound_form& form) noexcept : samples_(samples), form_(form) {}

  [[nodiscard]] sound_form form() const noexcept { return form_; }
  void draw(const sound_part& part, const sound_place& place) const noexcept {
    if (part.frames == 0) return;
    for (std::size_t c = 0; c < form_.channels; ++c)
      std::memcpy(place.channel(c), channel(c) + part.first, detail::to_size(part.frames) * sizeof(float));
  }
  [[nodiscard]] const float* channel(std::size_t c) const noexcept {
    return samples_ + c * detail::to_size(form_.frames);
  }
  /// Of this thread.
  [[nodiscard]] static sound_scratch& memory() noexcept {
    thread_local sound_scratch scratch;
    return scratch;
  }

 private:
  const float* samples_;
  sound_form form_;
};

/// Owns the samples of a sound that was decoded as a whole: what `keep_in_memory` keeps of a lazy sound, and
/// the noises of `add_noise`.
///
///     kept_sound tone;
///     tone.assign(std::vector<float>(16'000, 0.5f), {.frames = 16'000, .rate = 16'000, .channels = 1});
class kept_sound {
 public:
  template <lazy_sound S>
  void assign(const S& sound) {
    form_ = sound.form();
    samples_.resize(detail::to_size(form_.frames * form_.channels));
    sound.draw(detail::whole_sound(form_), {samples_.data(), detail::to_size(form_.frames)});
  }
  /// Samples channel by channel. Throws `errc::shape` if their number is not that of the form.
  void assign(std::vector<float> samples, const sound_form& form) {
    if (samples.size() != form.frames * form.channels)
      detail::refuse_count(extents(std::size_t{form.channels}, detail::to_size(form.frames)), samples.size());
    samples_ = std::move(samples);
    form_ = form;
  }
  [[nodiscard]] sound_form form() const noexcept { return form_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return samples_.size() * sizeof(float); }
  [[nodiscard]] shown_sound shown() const noexcept { return {samples_.data(), form_}; }

 private:
  std::vector<float> samples_;
  sound_form form_;
};

/// Sounds are kept as their samples, and are sounds again when they are shown.
template <lazy_sound S>
struct kept_as<S> : std::type_identity<kept_sound> {};

}  // namespace penstock::inline v0_1
