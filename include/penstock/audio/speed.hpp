// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<soxr.h>)
#error "penstock/audio/speed.hpp needs libsoxr: link penstock::resample"
#endif

#include <penstock/audio/resample.hpp>
#include <penstock/core/random.hpp>

#include <initializer_list>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// A speed in thousandths, so that lengths and phases are exact. Throws `errc::argument` unless it is from
/// 0.1 to 10.
[[nodiscard]] inline std::uint64_t thousandths(double factor, std::string_view operation) {
  if (!(factor >= 0.1 && factor <= 10))
    throw error(errc::argument,
                {operation, " takes factors from 0.1 to 10, and this is ", number_text(factor)})
        .in_stage(operation);
  return static_cast<std::uint64_t>(std::llround(factor * 1'000));
}

template <lazy_sound S>
[[nodiscard]] resampled_sound<S> at_speed(const S& sound, std::uint64_t thousandths, sound_scratch& scratch) {
  return {sound, rate_ratio::of(thousandths, 1'000), sound.form().rate, resample_quality::high, scratch};
}

}  // namespace detail

/// What `speed(factor)` makes: a function for `map`.
class speed_operation : public audio_operation {
 public:
  explicit speed_operation(double factor) : factor_(detail::thousandths(factor, "speed")) {}

  template <lazy_sound S>
  [[nodiscard]] resampled_sound<S> operator()(const S& sound, const call<sound_scratch>& c) const {
    return detail::at_speed(sound, factor_, c.scratch);
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"speed(", detail::number_text(static_cast<double>(factor_) / 1'000), ")"});
  }

 private:
  std::uint64_t factor_;
};

/// What `random_speed(factors)` makes: a function for `map`.
class random_speed_operation : public random_audio_operation {
 public:
  /// One of these.
  explicit random_speed_operation(const std::vector<double>& factors) {
    if (factors.empty())
      throw error(errc::argument, "random_speed is given no factor; write random_speed({0.9, 1.0, 1.1})");
    for (const double factor : factors) factors_.push_back(detail::thousandths(factor, "random_speed"));
  }
  /// Any from the one to the other.
  random_speed_operation(double low, double high)
      : factors_{detail::thousandths(low, "random_speed"), detail::thousandths(high, "random_speed")},
        between_(true) {
    if (low > high)
      throw error(errc::argument, {"random_speed takes the lower factor first, and ",
                                   detail::number_text(low), " is above ", detail::number_text(high)});
  }

  template <lazy_sound S>
  [[nodiscard]] resampled_sound<S> operator()(const S& sound, const call<sound_scratch>& c) const {
    rng random = c.random();
    return detail::at_speed(sound, choose(random), c.scratch);
  }
  [[nodiscard]] std::string describe() const {
    std::string all = "random_speed(";
    for (const std::uint64_t factor : factors_) {
      if (all.back() != '(') all += between_ ? " to " : ", ";
      all += detail::number_text(static_cast<double>(factor) / 1'000);
    }
    return all + ")";
  }
  /// The speed of a sample, in thousandths. It depends on the random numbers only.
  [[nodiscard]] std::uint64_t choose(rng& random) const noexcept {
    if (between_) return factors_[0] + random.below(factors_[1] - factors_[0] + 1);
    return factors_[detail::to_size(random.below(factors_.size()))];
  }

 private:
  std::vector<std::uint64_t> factors_;
  bool between_ = false;
};

/// Faster by a factor, or slower if it is below 1, and higher or lower with it, as a tape is: the sound is
/// resampled and keeps its rate. sox's and Kaldi's `speed`, torchaudio's `Speed`, Lhotse's `perturb_speed`.
///
/// In: a lazy sound. Out: a lazy sound with frames / factor frames, rounded. A part is within 1e-6 of that
/// part of the whole. Factors are rounded to thousandths. Pointwise. Cost: that of `resample`. Throws
/// `errc::argument` for factors that are not from 0.1 to 10.
///
///     auto faster = map<"flac">(speed(1.1));
[[nodiscard]] inline speed_operation speed(double factor) { return speed_operation(factor); }

/// One of several speeds for each sample, each as likely: Kaldi's three-way speed perturbation, torchaudio's
/// `SpeedPerturbation`. With two numbers, any speed between them. Lengths change, so a crop or `pad_or_trim`
/// of one length comes after it. Draws a random number. Otherwise as `speed`.
///
///     auto varied = map<"flac">(random_speed({0.9, 1.0, 1.1}), random_crop(5.0, {.pad_if_needed = true}));
[[nodiscard]] inline random_speed_operation random_speed(std::initializer_list<double> factors) {
  return random_speed_operation(std::vector<double>(factors));
}
[[nodiscard]] inline random_speed_operation random_speed(double low, double high) { return {low, high}; }

}  // namespace penstock::inline v0_1
