// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/operation.hpp>

namespace penstock::inline v0_1 {

/// What `sound_frames` is: a function for `map`.
struct sound_frames_operation : audio_operation {
  template <lazy_sound S>
  [[nodiscard]] std::uint64_t operator()(const S& sound, const call<sound_scratch>& /*c*/) const {
    return sound.form().frames;
  }
  [[nodiscard]] static std::string describe() { return "sound_frames"; }
};

/// What `sound_seconds` is: a function for `map`.
struct sound_seconds_operation : audio_operation {
  template <lazy_sound S>
  [[nodiscard]] double operator()(const S& sound, const call<sound_scratch>& /*c*/) const {
    return sound.form().seconds();
  }
  [[nodiscard]] static std::string describe() { return "sound_seconds"; }
};

/// How many frames a sound has, as a number that `derive` can keep, and that `bucket_by` and `pack` take.
/// Behind `resample` or `crop` it is that of the result. No sample is decoded.
///
///     auto whole = sounds | map<"flac">(mono(), resample(16'000));
///     auto frames = derive(
///         whole | map<"flac">(sound_frames), "frames", [](const auto& s) { return get<"flac">(s); }, "derived");
///     auto loader = whole | map<"flac">(squeeze()) | shuffle(seed(7)) |
///                   bucket_by(frames, 30, {.max_tokens = 200 * 16'000}, pad_to_longest);
inline constexpr sound_frames_operation sound_frames{};

/// How long a sound is, in seconds: Lhotse's `duration`. Otherwise as `sound_frames`.
///
///     auto seconds = derive(
///         sounds | map<"flac">(sound_seconds), "seconds", [](const auto& s) { return get<"flac">(s); }, "derived");
///     auto speech = sounds | subset(seconds, between(1, 20)) | map<"flac">(random_crop(1.0));
inline constexpr sound_seconds_operation sound_seconds{};

}  // namespace penstock::inline v0_1
