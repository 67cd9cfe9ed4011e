// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/any_seed.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/pipe.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct cursor_after_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: shuffle_buffer mixes samples and stands after batch; move it before batch(n)");
  }
};
struct cursor_after_filter : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: shuffle_buffer after filter or unbatch would hold decoded samples; move it "
                  "before them");
  }
};
struct lost_by_shuffle_buffer : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: require: the guarantee is lost by shuffle_buffer (it loses indexed, and after "
                  "shard also elastic, over a forward source resumable); use shuffle(seed(7), window(w)), or "
                  "put shuffle_buffer before shard");
  }
};

}  // namespace mistakes

/// Shuffles samples within a buffer of `capacity`: each sample that comes out is drawn at random from those
/// held, and the next one of the sequence takes its place. Made by `shuffle_buffer(capacity, seed(7))`.
///
/// A sequencer: over an indexed source it holds positions, eight bytes each, and everything after it still
/// runs in parallel; over a source that can only be read forward it holds samples, still encoded. An epoch
/// drains the buffer. Loses `indexed`; after `shard` it shuffles only this rank's samples and loses
/// `elastic`; over a source that can only be read forward it loses `resumable`, since the samples it holds
/// may come from anywhere earlier. Draws are keyed by (seed, epoch, ordinal).
/// Cost: one random number and one exchange per sample in the consumer's thread.
///
///     auto loader = samples | shuffle_buffer(10'000) | decode<field<"cls", integer>> | batch(256);
struct shuffle_buffer_stage {
  using penstock_part = cursor_tag;
  static constexpr std::string_view stage_name = "shuffle_buffer";
  static constexpr bool varies_by_epoch = true;
  using blame = mistakes::lost_by_shuffle_buffer;

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
  void fingerprint(auto& h) const { h.add("shuffle_buffer", capacity, seed); }
  template <class Context>
  static consteval auto diagnose() {
    constexpr auto facts = Context::facts;
    return typename detail::first_mistake<
        mistakes::unless<!facts.batched, mistakes::cursor_after_batch>,
        mistakes::unless<!facts.cursor, mistakes::order_after_cursor>,
        mistakes::unless<!facts.decided, mistakes::cursor_after_filter>>::type{};
  }
};

[[nodiscard]] inline shuffle_buffer_stage shuffle_buffer(any_count wanted, any_seed seed = seed_stage{}) {
  const std::uint64_t capacity = wanted.of("shuffle_buffer");
  if (capacity == 0)
    throw error(errc::argument, "shuffle_buffer(0) holds nothing; give it at least 1")
        .in_stage("shuffle_buffer");
  return {capacity, seed.value()};
}

}  // namespace penstock::inline v0_1
