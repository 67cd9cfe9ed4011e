// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// What a dataset is to a pipeline. A *source* is a value that is part of a plan: cheap to copy (share what
/// is large), it owns no thread and no open file. It is *connected*: `connect()` gives its *reader*, which a
/// run owns and all its workers share.
namespace penstock::inline v0_1 {

/// Stands for a sink when a concept asks whether something can be evaluated.
struct any_sink {
  template <class T>
  void operator()(T&&) const {}
};

/// A source that is told what is used of its samples: `connect(projection)` gives its reader, which may leave
/// alone all other fields. It still hands on every sample, at the same place and with the same key.
template <class S>
concept projecting_source = requires(const S& s, const projection& used) {
  { s.connect(used) } -> std::same_as<typename S::reader>;
};
/// A source that gives its reader: by `connect(projection)`, or by `connect()` where a sample has no parts
/// that could be left alone.
template <class S>
concept connected_source = projecting_source<S> || requires(const S& s) {
  { s.connect() } -> std::same_as<typename S::reader>;
};

/// Connects a source, and tells it which fields of its samples are used, where it is one that is told.
template <connected_source Source>
[[nodiscard]] typename Source::reader connect_source(const Source& s, const projection& used = {}) {
  if constexpr (projecting_source<Source>)
    return s.connect(used);
  else
    return s.connect();
}

/// A source of which any sample may be evaluated, from many threads, in any order.
///
/// It may have `static constexpr bool renumbers`: true where number i is another sample in another epoch, or
/// depends on more than `fingerprint()`; nothing can then be derived from its samples, nor chosen by values.
/// What a reader may have besides is marked; where the sample at an index is another one in another epoch
/// (`mix`), `key`, `ranges` and `will_need` take the whole position.
///
///   element                       the type of what `evaluate` hands to its sink (may be unfinished)
///   size()                        samples per epoch
///   starts()                      where shards begin: ascending, first 0, last size(); null when there are no shards
///   source_name                   how it is called in messages
///   describe()                    one line
///   fingerprint()                 changes when the dataset changes
///   sequence_fingerprint()        optional: of what determines an order of its own; `fingerprint` is of the data
///   sequence_text()               optional: the same in words, for messages
///   random_fingerprint()          optional: of what draws random numbers within it; 0 where nothing does
///   connect() -> reader           what a run reads from; or connect(projection), see `projecting_source`
///   reader::worker                what one worker keeps; default-constructible
///   reader.evaluate(position, worker&, sink) const   calls sink(element) once
///   reader.key(index)             optional: the sample's key, a std::string
///   reader.ranges(index, sink)    optional: calls sink(session, object, offset, size) for each range of bytes that the
///                                 sample will be read from, of the fields that are used; may take a `reader::scout&`
///                                 before the sink: what one thread keeps between calls
///   reader.get_ready(positions)   optional: opens what `ranges` of these samples need, several things at once; not called
///                                 where `reader.is_ready()`: all is open
///   reader::worker.fetched        optional, a `const fetched_sample*`: where a worker looks for those bytes before it
///                                 reads them; without it, `ranges` are hints to the session
///   reader::takes_fetched         optional: false where the worker has that pointer in vain, as in a mix of sources in memory
///   reader::has_latency           optional: true where a run should fetch ahead without being asked
///   reader.will_need(index)       optional, where there are no ranges: a hint that the sample is read soon; never
///                                 throws; may take a `reader::scout&`
///   reader.bytes_per_sample()     optional: mean payload, for the choice of grains
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

/// A source whose number i is another sample in another epoch, or depends on more than the data: it says
/// `static constexpr bool renumbers = true`.
template <class S>
concept renumbering_source = renumbering_part<S>;

/// A source with an order of its own: `sequence_fingerprint()`.
template <class S>
concept ordered_source = requires(const S& s) {
  { s.sequence_fingerprint() } -> std::same_as<std::uint64_t>;
};
/// A source within which random numbers may be drawn: `random_fingerprint()`.
template <class S>
concept randomised_source = requires(const S& s) {
  { s.random_fingerprint() } -> std::same_as<std::uint64_t>;
};
/// A source that says its order in words: `sequence_text()`.
template <class S>
concept ordered_source_in_words = ordered_source<S> && requires(const S& s) {
  { s.sequence_text() } -> std::convertible_to<std::string>;
};

/// A source that can only be read from its beginning, by one thread at a time. One whose `seekable` is true
/// can be resumed.
///
///   element                       a *whole* value (owns what it needs), default-constructible, movable; its memory is re-used
///   connect() -> reader           what a run reads from; or connect(projection), see `projecting_source`
///   reader.next(element&)         false at the end of the epoch
///   reader.rewind(epoch)          back to the beginning, for another epoch; may throw
///   reader.mark() -> source_mark  where seekable: what was given of the shard at hand
///   reader.seek(epoch, mark)      where seekable: goes there; throws errc::state where there is no such place
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
