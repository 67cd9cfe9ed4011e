// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/part.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

/// What watches a run. An *observer* is an annotation of a plan; `connect` makes the session that a run
/// tells what its threads did. A run without one looks at an empty list once a block.
namespace penstock::inline v0_1 {

/// What a thread of a run does for a while.
enum class activity : std::uint8_t {
  evaluate,        ///< a worker, or the consumer without workers: a grain of a block
  stage,           ///< within `evaluate`: the source or one stage, for the first sample of the grain
  read,            ///< within `evaluate`: the serial front of a forward source, for a chunk
  wait_for_input,  ///< within `evaluate`: others are at the serial front
  wait_for_room,   ///< a worker without a block to work on
  wait_for_batch,  ///< the consumer
  copy,            ///< the consumer begins a copy to the device
  wait_for_copy,   ///< the consumer
  ask_ahead,       ///< bytes of samples to come are asked for
  hold_batch,      ///< from its hand-over until it is let go; these overlap
  hold_chunk,      ///< samples on their way to batches, until their memory is free again
};

[[nodiscard]] constexpr std::string_view to_string(activity a) noexcept {
  constexpr std::string_view names[] = {"evaluate",      "stage",          "read",      "wait for input",
                                        "wait for room", "wait for batch", "copy",      "wait for copy",
                                        "ask for bytes", "hold batch",     "hold chunk"};
  return names[static_cast<std::size_t>(a)];
}

/// One thing that a thread did.
struct run_event {
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t begin_ns = 0, end_ns = 0;  ///< of the steady clock
  activity what = activity::evaluate;
  std::uint32_t stage = 0;     ///< of `stage`: its number among `observed_run::stages`
  std::uint64_t block = none;  ///< in the order in which blocks are handed over
  std::uint64_t batch = none;  ///< the step of its epoch, where it is known
  std::uint64_t epoch = none;
  std::uint64_t first = none, last = none;  ///< position indices, where there are samples
  std::uint64_t samples = 0;
};

/// What an observer is told about a run when it is opened. Thread 0 is the consumer, 1 to `workers` are the
/// workers, and the next one, where `asks_ahead`, asks for bytes.
struct observed_run {
  std::string source;
  std::vector<std::string> stages;  ///< the source and the value stages, by name
  unsigned workers = 0;
  bool asks_ahead = false;
  std::uint64_t rank = 0, world = 1;
};

/// What a run tells an observer. `note` is called by the thread that it names and no other at that time;
/// `hold` and `let_go` by any: no system call and no allocation there, in `note` no lock either.
template <class S>
concept observer_session =
    std::movable<S> && requires(S& s, unsigned thread, const run_event& event, const void* key) {
      { s.note(thread, event) } noexcept;
      { s.hold(key, event) } noexcept;
      { s.let_go(key) } noexcept;
    };

/// An annotation that watches the runs of the plans in which it stands.
template <class T>
concept observer = part_of_kind<T, annotation_tag> && requires(const T& t, const observed_run& what) {
  requires observer_session<typename T::session>;
  { t.connect(what) } -> std::same_as<typename T::session>;
};

}  // namespace penstock::inline v0_1
