// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/lazy_sound.hpp>
#include <penstock/core/call.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/mistake.hpp>

#include <chrono>
#include <cmath>

namespace penstock::inline v0_1 {

namespace mistakes {

struct operation_wants_sound : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation works on sounds and gets something else; decode them first, as in "
        "decode<field<\"flac\", audio>>, and name their field, as in map<\"flac\">(mono())");
  }
};
struct operation_after_to_int16 : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation works on sounds and comes after to_int16 or squeeze, which make an "
        "array; write that last");
  }
};

}  // namespace mistakes

/// An array that was a sound until `to_int16` or `squeeze`.
template <class V>
concept sample_array = requires { typename std::remove_cvref_t<V>::is_sample_array; };

namespace detail {

template <class V>
struct sound_mistake : std::type_identity<mistakes::operation_wants_sound> {};
template <sample_array V>
struct sound_mistake<V> : std::type_identity<mistakes::operation_after_to_int16> {};

/// A length of time, as a number of seconds with a fraction or as a `std::chrono::duration`. Whole numbers
/// are left to the operations on images that have the same names.
template <class S>
concept time_span = std::floating_point<S> ||
                    requires(const S& s) { std::chrono::duration_cast<std::chrono::duration<double>>(s); };

/// The number of seconds. Throws `errc::argument` unless it is from 0 to a year, and not 0 unless `or_none`.
template <time_span S>
[[nodiscard]] double seconds_of(const S& time, std::string_view operation, bool or_none = false) {
  double seconds = 0;
  if constexpr (std::floating_point<S>)
    seconds = static_cast<double>(time);
  else
    seconds = std::chrono::duration_cast<std::chrono::duration<double>>(time).count();
  constexpr double year = 366.0 * 86'400;
  if (!(seconds >= 0 && seconds <= year) || (seconds == 0 && !or_none))
    throw error(errc::argument, {operation, " takes seconds, ", or_none ? "from 0" : "more than 0",
                                 " and up to a year, and this is ", number_text(seconds)})
        .in_stage(operation);
  return seconds;
}

/// The frames in so many seconds, rounded to the nearest one.
[[nodiscard]] inline std::uint64_t frames_in(double seconds, std::uint32_t rate) noexcept {
  // half a frame counts as one, also where the product is a little less than half: Lhotse has the same frames
  return static_cast<std::uint64_t>(std::llround(seconds * rate + 5e-9));
}
/// `2.5 s`: where a frame is, to the millisecond.
[[nodiscard]] inline std::string time_text(std::uint64_t frames, std::uint32_t rate) {
  if (rate == 0) return text({frames, " frames"});
  return text({number_text(std::round(static_cast<double>(frames) / rate * 1e3) / 1e3), " s"});
}

}  // namespace detail

/// The base of operations on sounds: functions for `map` that wrap a lazy sound in another, and have a
/// scratch per worker. An operation has `operator()(const S& sound, const call<sound_scratch>& c) const` for
/// a `lazy_sound` S. One that draws random numbers, from `c.random()`, also has
/// `template <class> static constexpr bool uses_random = true;`.
///
/// It costs nothing by itself: the sound that it returns does the work when it is written to its place in the
/// batch. Pointwise; the same samples for any number of workers, and after a restore.
struct audio_operation {
  using accepts_call = void;
  using scratch = sound_scratch;
  /// The mistake of calling it with a `V`.
  template <class V>
  using wrong_argument_for = typename detail::sound_mistake<V>::type;
};

/// The base of those that draw random numbers.
struct random_audio_operation : audio_operation {
  template <class>
  static constexpr bool uses_random = true;
};

}  // namespace penstock::inline v0_1
