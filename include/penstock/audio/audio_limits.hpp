// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/lazy_sound.hpp>
#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

/// What a codec accepts of a sound's header, before it allocates anything: a header of 40 bytes can claim
/// years. The defaults admit 3 hours of stereo at 48 kHz.
struct audio_limits {
  std::uint32_t rate = 768'000;  ///< frames in a second
  std::uint32_t channels = 64;
  std::uint64_t bytes = std::uint64_t{4} << 30;  ///< of all samples, four bytes each
};

namespace detail {

/// Throws `errc::limit` for a sound beyond the limits, and `errc::format` for one without samples, or without
/// a rate; `format` is what it is: "wav".
inline void check_sound_form(const sound_form& form, const audio_limits& limits, std::string_view format) {
  if (form.rate == 0 || form.channels == 0)
    throw error(errc::format, {"the ", format, " sound has a header that cannot be: ", form.channels,
                               " channels and ", form.rate, " frames in a second"});
  if (form.frames == 0) throw error(errc::format, {"the ", format, " sound has no samples"});
  if (form.rate > limits.rate)
    throw error(errc::limit,
                {"the ", format, " sound has ", form.rate, " frames in a second, and the limit is ",
                 limits.rate, "; to allow it, set .limits = {.rate = ...} of the codec"});
  if (form.channels > limits.channels)
    throw error(errc::limit,
                {"the ", format, " sound has ", form.channels, " channels, and the limit is ",
                 limits.channels, "; to allow it, set .limits = {.channels = ...} of the codec"});
  if (form.frames > limits.bytes / sizeof(float) / form.channels)
    throw error(errc::limit, {"the ", format, " sound has ", form.frames, " frames of ", form.channels,
                              " channels, and the limit is ", limits.bytes,
                              " bytes of samples; to allow it, set .limits = {.bytes = ...} of the codec"});
}

}  // namespace detail

}  // namespace penstock::inline v0_1
