// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/log_mel_features.hpp>
#include <penstock/audio/mfcc_features.hpp>
#include <penstock/core/call.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/mistake.hpp>

#include <concepts>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct samples_wanted : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: log_mel and mfcc work on the samples of a sound, which are an array of float, and "
        "get something else; decode the sound before, or name its field, as in "
        "map<\"flac\">(log_mel())");
  }
};

}  // namespace mistakes

namespace detail {

/// Sounds that are not decoded yet, and any other array of float.
template <class V>
concept unread_samples =
    array_expression<V> && std::same_as<typename std::remove_cvref_t<V>::value_type, float> &&
    requires(const std::remove_cvref_t<V>& sound) { std::span<const float>(sound.finish().values()); };
/// Samples in memory, of one channel.
template <class V>
concept read_samples = !unread_samples<V> && std::convertible_to<V, std::span<const float>>;

[[noreturn, gnu::cold]] inline void refuse_channels(std::string_view operation, const extents& shape) {
  throw error(errc::shape, {operation, " works on one channel, and this sound has the shape ",
                            to_string(shape), "; write mono() or channel(0) before it"});
}
[[noreturn, gnu::cold]] inline void refuse_rate(std::string_view operation, double wanted,
                                                std::uint32_t rate) {
  throw error(errc::shape, {operation, " is for sounds of ", static_cast<std::uint64_t>(wanted),
                            " Hz, and this one has ", std::uint64_t{rate}, " Hz; write resample(",
                            static_cast<std::uint64_t>(wanted), ") before it, or set .sample_rate"});
}

[[nodiscard]] inline const log_mel_options& mel_options(const log_mel_features& made) noexcept {
  return made.options();
}
[[nodiscard]] inline const log_mel_options& mel_options(const mfcc_features& made) noexcept {
  return made.options().mel;
}

/// What `log_mel` and `mfcc` keep for one worker.
template <class Features>
struct features_memory {
  typename Features::scratch features;
  buffer dense;  ///< for `finish`
};

}  // namespace detail

/// The features of a sound, as an array that is not computed yet: its shape is known without decoding, and it
/// writes itself to its place. Made by `log_mel` and `mfcc`.
template <class Features, class Sound>
class features_of_sound {
 public:
  using unfinished = void;
  using value_type = float;

  /// Throws `errc::shape`, see `log_mel`.
  features_of_sound(Sound sound, const Features& features, std::string_view operation,
                    detail::features_memory<Features>& memory)
      : sound_(std::move(sound)), features_(&features), memory_(&memory) {
    if constexpr (requires { sound_.shape().rank(); }) {
      const extents all = sound_.shape();
      if (all.rank() != 1 && !(all.rank() == 2 && all[0] == 1)) [[unlikely]]
        detail::refuse_channels(operation, all);
      samples_ = all.elements();
    } else {
      samples_ = std::span<const float>(sound_).size();
    }
    if constexpr (requires { std::uint32_t{sound_.form().rate}; }) {
      const double wanted = detail::mel_options(features).sample_rate;
      if (sound_.form().rate != wanted) [[unlikely]]
        detail::refuse_rate(operation, wanted, sound_.form().rate);
    }
  }

  [[nodiscard]] extents shape() const { return features_->shape(samples_); }
  void write_to(const destination<float>& into) const {
    detail::write_or_copy(
        into,
        [&](float* data) {
          compute({data, detail::to_size(shape().elements())});
        },
        [&] { return std::span<const float>(finish().values()); });
  }
  /// Valid until the worker's next sample.
  [[nodiscard]] tensor_view<const float> finish() const {
    const extents all = shape();
    const std::size_t count = detail::to_size(all.elements());
    memory_->dense.resize_for_overwrite(count * sizeof(float));
    auto* const values = reinterpret_cast<float*>(memory_->dense.data());
    compute({values, count});
    return {values, all};
  }

 private:
  void compute(std::span<float> into) const {
    if constexpr (detail::unread_samples<Sound>)
      (*features_)(std::span<const float>(sound_.finish().values()), into, memory_->features);
    else
      (*features_)(std::span<const float>(sound_), into, memory_->features);
  }

  Sound sound_;
  const Features* features_;
  detail::features_memory<Features>* memory_;
  std::uint64_t samples_ = 0;
};

/// What `log_mel` and `mfcc` make: a function for `map`.
template <class Features>
class features_operation {
 public:
  using accepts_call = void;
  using scratch = detail::features_memory<Features>;
  template <class V>
  using wrong_argument_for =
      mistakes::unless<detail::unread_samples<V> || detail::read_samples<V>, mistakes::samples_wanted>;

  features_operation(Features features, std::string_view name)
      : features_(std::move(features)), name_(name) {}

  /// Samples of a container that stays are referred to; lazy sounds, views, and what is about to go come
  /// along.
  template <class V>
    requires(detail::unread_samples<V> || detail::read_samples<V>)
  [[nodiscard]] auto operator()(V&& sound, const call<scratch>& c) const {
    using type = std::remove_cvref_t<V>;
    constexpr bool stays = std::is_lvalue_reference_v<V> && requires { typename type::allocator_type; };
    using kept = std::conditional_t<stays, std::span<const float>, type>;
    return features_of_sound<Features, kept>(kept(std::forward<V>(sound)), features_, name_, c.scratch);
  }
  [[nodiscard]] const Features& features() const noexcept { return features_; }

 private:
  Features features_;
  std::string_view name_;
};

/// The logarithmic mel features of a sound, see `log_mel_features`: Whisper's with
/// `log_mel(log_mel_options::whisper())`, Kaldi's with `log_mel(log_mel_options::kaldi(80))`.
///
/// In: a lazy sound of one channel, or its samples: an array of `float` of one dimension, or of two of which
/// the first is 1. Out: an array expression of (frames, mels), or (mels, frames) with `mels_first`, whose
/// shape is known before the sound is decoded; it is computed into its place.
///
/// Pointwise. No allocation once the memory has grown. Throws `errc::argument` for options that make no
/// sense;
/// `errc::shape`, for a sample, if it has several channels, or says that it has another rate.
///
///     auto mels = map<"wav">(log_mel(log_mel_options::whisper()));
[[nodiscard]] inline features_operation<log_mel_features> log_mel(const log_mel_options& options = {}) {
  return {log_mel_features(options), "log_mel"};
}

/// The cepstral coefficients of a sound, see `mfcc_features`; otherwise as `log_mel`.
///
///     auto coefficients = map<"wav">(mfcc(mfcc_options::kaldi()));
[[nodiscard]] inline features_operation<mfcc_features> mfcc(const mfcc_options& options = {}) {
  return {mfcc_features(options), "mfcc"};
}

}  // namespace penstock::inline v0_1
