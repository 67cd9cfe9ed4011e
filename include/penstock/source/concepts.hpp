// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>

#include <vector>

/// The interface of a dataset. A *source* is a value that is part of a plan: it is cheap to copy (anything
/// large is shared) and owns neither a thread nor an open file. `connect()` returns its *reader*, which a run
/// owns and all its workers share.
namespace penstock::inline v0_1 {

/// Stands for a sink when a concept asks whether something can be evaluated.
struct any_sink {
  template <class T>
  void operator()(T&&) const {}
};

/// A source that is told which fields of its samples are used: `connect(projection)` returns a reader that
/// may skip all other fields. It still delivers every sample, at an unchanged position and with an unchanged
/// key.
template <class S>
concept projecting_source = requires(const S& s, const projection& used) {
  { s.connect(used) } -> std::same_as<typename S::reader>;
};
/// A source that can be connected: by `connect(projection)`, or by `connect()` if its samples have no fields
/// to skip.
template <class S>
concept connected_source = projecting_source<S> || requires(const S& s) {
  { s.connect() } -> std::same_as<typename S::reader>;
};

/// Connects a source. A `projecting_source` is told which fields of its samples are used.
template <connected_source Source>
[[nodiscard]] typename Source::reader connect_source(const Source& s, const projection& used = {}) {
  if constexpr (projecting_source<Source>)
    return s.connect(used);
  else
    return s.connect();
}

/// A shard of which only the samples before some damage are in a dataset; see `on_damaged_shard`.
struct damaged_shard {
  std::string file;
  std::uint64_t offset = 0;   ///< where the damage was found
  std::string reason;         ///< what an error would have said
  std::uint64_t samples = 0;  ///< that are in the dataset
};

/// The facts of a reader's type. A reader declares those that differ from the defaults:
///
///     static constexpr reader_traits traits = {.latency = true};
struct reader_traits {
  bool latency = false;       ///< a run should fetch ahead without being asked
  bool takes_fetched = true;  ///< a worker uses its pointer to fetched bytes; false for sources in memory
  bool plans_reads = true;    ///< its session may be a `planning_session`
  bool in_memory = false;     ///< its samples lie in memory, and are copied from there
  /// it shows samples that lie one behind the other at once, see `evaluate_run`
  bool shows_contiguous = false;
  bool calls_functions = false;  ///< functions of the program make its samples, so it reads nothing
};

/// A source that can evaluate any sample, from many threads, in any order.
///
/// It may have `static constexpr bool renumbers`: true if number i names a different sample in each epoch, or
/// depends on more than `fingerprint()`; then nothing can be derived from its samples, and they cannot be
/// chosen by values. Members marked "optional" may be missing. In a source whose samples change with the
/// epoch (`mix`), `key`, `url`, `ranges` and `will_need` take the whole position instead of the index.
///
///   element                       the type that `evaluate` passes to its sink (may be unfinished)
///   size()                        samples per epoch
///   starts()                      where shards begin: ascending, first 0, last size(); null when there are no shards
///   source_name                   its name in messages
///   describe()                    one line
///   fields()                      optional: the names and types of its samples' fields, see `described_source`
///   damaged_shards()              optional: the shards of which only a part is in the dataset, a span of
///                                 `damaged_shard`; the ledger of `bad_samples` gets a line for each
///   fingerprint()                 changes when the dataset changes
///   sequence_fingerprint()        optional: covers what determines its own order; `fingerprint` covers the data
///   sequence_text()               optional: its order in words, for messages
///   random_fingerprint()          optional: covers the parts of it that draw random numbers; 0 if none does
///   connect() -> reader           a run reads from it; or connect(projection), see `projecting_source`
///   reader::worker                the state of one worker; default-constructible
///   reader.evaluate(position, worker&, sink) const   calls sink(element) once
///   reader::traits                optional: what is known of all its readers, see `reader_traits`
///   reader.key(index)             optional: the sample's key, a std::string
///   reader.url(index)             optional: the sample's file
///   reader.ranges(index, sink)    optional: calls sink(session, object, offset, size) for each range of bytes from
///                                 which the used fields of the sample will be read; may take a `reader::scout&`
///                                 before the sink: the state that one thread keeps between calls. If it must read
///                                 an index first and the sink has `unknown()`, it calls that instead
///   reader.get_ready(positions)   optional: opens everything `ranges` needs for these samples, several objects at
///                                 once; not called if `reader.is_ready()`: everything is open
///   reader::worker.fetched        optional, a `const fetched_sample*`: a worker looks there for the bytes before it
///                                 reads them; without it, `ranges` are hints to the session
///   reader.report()               optional: what its sessions counted, and the oldest of their reads, a
///                                 `session_report`; any thread
///   reader.cancel_reads()         optional: ends what its sessions read; called when a run ends
///   reader.will_need(index)       optional, for readers without ranges: a hint that the sample will be read soon;
///                                 never throws; may take a `reader::scout&`
///   reader.bytes_per_sample()     optional: mean payload, used to choose the size of grains; 0 if it is not known
///   reader.evaluate_run(first, count, worker&, sink)   if it shows_contiguous: calls sink(element, n) for the first n of
///                                 `count` samples; returns n if that returns true, otherwise 0
template <class S>
concept indexed_source =
    std::copy_constructible<S> && std::same_as<typename S::penstock_part, source_tag> &&
    connected_source<S> &&
    requires(const S& s, position p, typename S::reader::worker& w, const typename S::reader& r) {
      typename S::element;
      { s.size() } -> std::same_as<std::uint64_t>;
      { s.starts() } -> std::convertible_to<shared<const std::vector<std::uint64_t>>>;
      { s.describe() } -> std::convertible_to<std::string>;
      { s.fingerprint() } -> std::same_as<std::uint64_t>;
      { S::source_name } -> std::convertible_to<std::string_view>;
      r.evaluate(p, w, any_sink{});
    };

/// A field of a source's samples: its name, and its type as the format calls it ("jpeg", "int64").
struct source_field {
  std::string name, type;
};
/// A source that knows the fields of its samples before any is read: it has `fields()`.
template <class S>
concept described_source = requires(const S& s) {
  { s.fields() } -> std::same_as<std::vector<source_field>>;
};

/// A source whose number i names a different sample in each epoch, or depends on more than the data: it
/// declares `static constexpr bool renumbers = true`.
template <class S>
concept renumbering_source = renumbering_part<S>;

/// A source with an order of its own: it has `sequence_fingerprint()`.
template <class S>
concept ordered_source = requires(const S& s) {
  { s.sequence_fingerprint() } -> std::same_as<std::uint64_t>;
};
/// A source that may draw random numbers: it has `random_fingerprint()`.
template <class S>
concept randomised_source = requires(const S& s) {
  { s.random_fingerprint() } -> std::same_as<std::uint64_t>;
};
/// A source that describes its order in words: it has `sequence_text()`.
template <class S>
concept ordered_source_in_words = ordered_source<S> && requires(const S& s) {
  { s.sequence_text() } -> std::convertible_to<std::string>;
};

/// A source that can only be read from its beginning, by one thread at a time. It can be resumed if its
/// `seekable` is true.
///
///   element                       a *whole* value (owns what it needs), default-constructible, movable; its memory
///                                 is reused
///   connect() -> reader           a run reads from it; or connect(projection), see `projecting_source`
///   reader.next(element&)         false at the end of the epoch
///   reader.rewind(epoch)          back to the beginning, for another epoch; may throw
///   reader.mark() -> source_mark  if seekable: how much of the current shard was delivered
///   reader.seek(epoch, mark)      if seekable: moves to that mark; throws errc::state if there is no such position
template <class S>
concept forward_source =
    std::copy_constructible<S> && std::same_as<typename S::penstock_part, source_tag> && !indexed_source<S> &&
    connected_source<S> && requires(const S& s, typename S::reader& r, typename S::element& e) {
      { s.describe() } -> std::convertible_to<std::string>;
      { s.fingerprint() } -> std::same_as<std::uint64_t>;
      { S::source_name } -> std::convertible_to<std::string_view>;
      { r.next(e) } -> std::same_as<bool>;
      r.rewind(std::uint64_t{});
    };

/// A dataset: indexed, or read forward.
template <class S>
concept source = indexed_source<S> || forward_source<S>;

}  // namespace penstock::inline v0_1
