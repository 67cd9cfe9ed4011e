// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/part.hpp>

#include <concepts>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

/// Observers of a run. An *observer* is an annotation of a plan; `connect` makes the session to which a run
/// reports what its threads did. A run without an observer checks an empty list once per block.
namespace penstock::inline v0_1 {

/// The activities of a run's threads.
enum class activity : std::uint8_t {
  evaluate,        ///< a worker, or the consumer if there are no workers: one grain of a block
  stage,           ///< within `evaluate`: the source or one stage, for the first sample of the grain
  read,            ///< within `evaluate`: the serial front of a forward source, for a chunk
  wait_for_input,  ///< within `evaluate`: other workers occupy the serial front
  wait_for_room,   ///< a worker without a block to work on
  wait_for_batch,  ///< the consumer
  copy,            ///< the consumer starts a copy to the device
  wait_for_copy,   ///< the consumer
  ask_ahead,       ///< requests the bytes of upcoming samples
  hold_batch,      ///< from delivery until it is released; these overlap
  hold_chunk,      ///< samples on their way to batches, until their memory is free again
  request,         ///< a request for bytes ahead of their turn, until its end; these overlap
  storage_counts,  ///< no interval: what the storage has counted until then
  cache_counts,    ///< no interval: what its caches have; only if one has done something
};

[[nodiscard]] constexpr std::string_view to_string(activity a) noexcept {
  constexpr std::string_view names[] = {"evaluate",      "stage",          "read",       "wait for input",
                                        "wait for room", "wait for batch", "copy",       "wait for copy",
                                        "ask for bytes", "hold batch",     "hold chunk", "request",
                                        "storage",       "cache"};
  return names[static_cast<std::size_t>(a)];
}

/// One activity of one thread.
struct run_event {
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t begin_ns = 0, end_ns = 0;  ///< times of the steady clock
  activity what = activity::evaluate;
  std::uint32_t stage = 0;     ///< for `stage`: its index in `observed_run::stages`
  std::uint64_t block = none;  ///< the block's number, in order of delivery
  std::uint64_t batch = none;  ///< the step of its epoch, if known
  std::uint64_t epoch = none;
  std::uint64_t first = none, last = none;  ///< position indexes, if there are samples
  std::uint64_t samples = 0;
  // `request`: `block` is the object's number in its storage, and `first` and `last` the range of bytes.
  // `storage_counts`: `samples` are the requests, `first` the retries, `last` the second reads of `hedged`,
  // `stage` those that won, `batch` the answers that asked for fewer, `block` how often `throttled` halved
  // its limit, and `epoch` the reads that were given up.
  // `cache_counts`: `samples` are the hits, `first` the blocks that were fetched, `last` those that were
  // fetched again, `batch` those that went to make place, `block` the reads that did not match their
  // checksums, and `epoch` what went past the cache.
};

/// The facts about a run that an observer gets when the run is opened. Thread 0 is the consumer, threads 1
/// to `workers` are the workers, and, if `asks_ahead`, the next thread requests bytes.
struct observed_run {
  std::string source;
  std::vector<std::string> stages;  ///< the source and the value stages, by name
  unsigned workers = 0;
  bool asks_ahead = false;
  std::uint64_t rank = 0, world = 1;
};

/// The session to which a run reports. Only the named thread calls `note`; any thread may call `hold` and
/// `let_go`. They must make no system call and no allocation, and `note` must also take no lock.
template <class S>
concept observer_session =
    std::movable<S> && requires(S& s, unsigned thread, const run_event& event, const void* key) {
      { s.note(thread, event) } noexcept;
      { s.hold(key, event) } noexcept;
      { s.let_go(key) } noexcept;
    };

/// An annotation that observes the runs of its plans.
template <class T>
concept observer = part_of_kind<T, annotation_tag> && requires(const T& t, const observed_run& what) {
  requires observer_session<typename T::session>;
  { t.connect(what) } -> std::same_as<typename T::session>;
};

}  // namespace penstock::inline v0_1
