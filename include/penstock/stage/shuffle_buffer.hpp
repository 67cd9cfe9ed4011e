// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/pipe.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// Mixes samples within a buffer of `capacity`: each that comes out is drawn at random from those held, and
/// the next one of the sequence takes its place. Made by `shuffle_buffer(capacity, seed)`.
///
/// A sequencer: over an indexed source it holds positions, eight bytes each, and everything after it is still
/// evaluated in parallel; over a source that can only be read forward it holds samples, still encoded. An
/// epoch drains the buffer. Loses `indexed`;
/// after `shard` it mixes this rank's samples and loses `elastic`; over a source that can only be read
/// forward it loses `resumable`, since the samples it holds may be from anywhere before. What is drawn is
/// keyed by (seed, epoch, ordinal).
/// Cost: one random number and one exchange per sample in the consumer's thread.
///
///     auto loader = samples | shuffle_buffer(10'000) | decode<field<"cls", integer>> | batch(256);
struct shuffle_buffer_stage {
  using penstock_part = cursor_tag;
  static constexpr std::string_view stage_name = "shuffle_buffer";
  static constexpr mistake blame = mistake::lost_by_shuffle_buffer;

  std::uint64_t capacity = 1;
  std::uint64_t seed = 0;

  static consteval guarantee_set loses(place where) {
    guarantee_set lost(guarantee::indexed);
    if (where.after_shard) lost = lost.with(guarantee_set(guarantee::elastic));
    if (where.forward) lost = lost.with(guarantee_set(guarantee::resumable));  // it holds samples
    return lost;
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"shuffle_buffer(", capacity, ", seed ", seed, ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add("shuffle_buffer", capacity, seed);
  }
};

[[nodiscard]] inline shuffle_buffer_stage shuffle_buffer(std::uint64_t capacity, std::uint64_t seed = 0) {
  if (capacity == 0)
    throw error(errc::argument, "shuffle_buffer(0) holds nothing; give it at least 1")
        .in_stage("shuffle_buffer");
  return {capacity, seed};
}

}  // namespace penstock::inline v0_1
