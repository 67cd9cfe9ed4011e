// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <concepts>

namespace penstock::inline v0_1 {

/// A part of a sound, as manifests of speech name it.
struct sound_segment {
  double offset = 0;          ///< in seconds
  double duration = 0;        ///< in seconds; 0: up to the end of the sound
  std::int32_t channel = -1;  ///< counted from 0; -1: all of them
  /// How many seconds the segment may reach beyond the end of the sound, where it is then cut.
  double max_overshoot = 0;
};

/// Bytes of a sound of which a segment is meant. `decode<audio>` makes a sound of the segment alone.
template <class B>
concept bytes_of_segment = requires(const B& bytes) {
  { bytes.segment() } -> std::same_as<sound_segment>;
};

}  // namespace penstock::inline v0_1
