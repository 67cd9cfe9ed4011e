// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/mistake.hpp>

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

struct state;
/// The state as JSON; on one line unless it is merged.
[[nodiscard]] std::string to_string(const state& s);

/// Where a run stands: `run.state()` returns it and `plan.open(state)` takes it. Small, readable, and the
/// same on every machine.
///
/// Written as one JSON object whose numbers are strings, so that no reader rounds them; docs/state.md
/// documents its schema. `dataset`, `sequence` and `random` are fingerprints of the data, of what determines
/// the order, and of the stages that draw random numbers; workers, prefetch, depth, memory and device are not
/// part of it.
///
/// If the plan is elastic, the state of any rank serves every rank of any world; otherwise `merge` combines
/// the states of all ranks into one.
struct state {
  static constexpr std::uint64_t current_version = 3;

  state();
  state(const state&);
  state(state&&) noexcept;
  state& operator=(const state&);
  state& operator=(state&&) noexcept;
  ~state();

  std::uint64_t version = current_version;
  std::uint64_t dataset = 0;
  std::uint64_t sequence = 0;
  std::uint64_t random = 0;           ///< 0: no stage draws random numbers
  std::uint64_t world = 1, rank = 0;  ///< at the time; they matter if the plan is not elastic
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;  ///< batches delivered in this epoch
  std::uint64_t pass = 0;  ///< with `steps`: passes over the data in this epoch
  /// Chunks: samples of this rank that are done. After `batch_by`: samples of all ranks in the steps done.
  std::uint64_t ordinal = 0;
  std::uint64_t rows = 0;              ///< chunks: rows of the samples after those that are done too
  std::uint64_t survivors = 0;         ///< chunks: rows that came out of the filters in this pass
  std::uint64_t taken = 0, given = 0;  ///< `shuffle_buffer`: ordinals that went in and came out
  std::uint64_t dealt = 0;             ///< rows of this epoch dealt so far, to all ranks together
  std::uint64_t elastic = 0;           ///< 1: any rank of any world may resume from here
  std::uint64_t bad = 0;               ///< `bad_samples`: count of this rank in this epoch
  std::vector<std::uint64_t> held;     ///< `shuffle_buffer`: ordinals in it
  std::vector<std::uint64_t> front;    ///< forward sources: the places of the source and of its orders
  /// `pack` without lengths: windows of this epoch that are done, and rows of the next one that are; empty at
  /// the beginning of an epoch.
  std::vector<std::uint64_t> packed;
  std::vector<std::string> plan;  ///< the data and the stages that determine the sequence, for messages
  std::vector<state> ranks;       ///< of a merged state: the states of ranks 0, 1, ...

  /// Moves the place to the beginning of an epoch.
  void begin_epoch(std::uint64_t which);
  friend bool operator==(const state&, const state&) = default;
  /// Writes the JSON of `to_string` to a stream.
  template <class Stream>
    requires requires { typename Stream::char_type; }
  friend Stream& operator<<(Stream& out, const state& s) {
    out << to_string(s);
    return out;
  }
  /// A mistake: of the overloads of `std::to_string`, this chooses one.
  template <std::same_as<long double> T>
  operator T() const {  // NOLINT(google-explicit-constructor)
    static_assert(never<T>,
                  "penstock: a state is no number; write to_string(run.state()), without std::, and "
                  "state_from_string(text) for the way back");
    return {};
  }
};

namespace detail {

void for_each_state_number(auto& s, auto f) {
  f("penstock_state", s.version);
  f("dataset", s.dataset);
  f("sequence", s.sequence);
  f("random", s.random);
  f("world", s.world);
  f("rank", s.rank);
  f("epoch", s.epoch);
  f("step", s.step);
  f("pass", s.pass);
  f("ordinal", s.ordinal);
  f("rows", s.rows);
  f("survivors", s.survivors);
  f("taken", s.taken);
  f("given", s.given);
  f("dealt", s.dealt);
  f("bad", s.bad);
  f("elastic", s.elastic);
}

}  // namespace detail

/// Parses what `to_string` wrote; anything else is `errc::state` with the offset, and so is a state of
/// another version.
[[nodiscard]] state state_from_string(std::string_view text);

/// Merges the states of all ranks of a job, each after the same step, into one that every rank may open: for
/// an elastic plan, the state of rank 0 with the mean of all bad samples; otherwise all of them.
///
/// Throws `error(errc::state)` if the states are not from one job and one step, if two are from the same
/// rank, or if one is missing.
[[nodiscard]] state merge(std::span<const state> all);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/state.ipp>
#endif
