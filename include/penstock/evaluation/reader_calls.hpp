// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cached_form.hpp>
#include <penstock/core/position.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/fetched.hpp>
#include <penstock/storage/session_report.hpp>

#include <concepts>
#include <span>
#include <string>

/// The optional calls of a reader, each with what happens where a reader lacks it (see source/concepts.hpp).
namespace penstock::inline v0_1 {

namespace detail {

/// A position as readers take it: whole, or if they ask for a number, the index.
struct reader_place : position {
  constexpr operator std::uint64_t() const noexcept { return index; }  // NOLINT(google-explicit-constructor)
};

struct no_scout {};
template <class Reader>
struct scout_for : std::type_identity<no_scout> {};
template <class Reader>
  requires requires { typename Reader::scout; }
struct scout_for<Reader> : std::type_identity<typename Reader::scout> {};

}  // namespace detail

/// What one thread keeps between hints to a reader; empty if the reader needs nothing.
template <class Reader>
using scout_of = typename detail::scout_for<Reader>::type;

/// A placeholder for the receiver of ranges, used to ask whether a reader reports them.
struct any_range_sink {
  void operator()(auto&, object_id, std::uint64_t /*offset*/, std::uint64_t /*size*/) const {}
};

/// Whether a reader has keys for its samples.
template <class Reader>
concept has_keys = requires(const Reader& r, detail::reader_place at) { r.key(at); };

/// Whether a reader reports which byte ranges contain its samples.
template <class Reader>
concept tells_ranges = requires(const Reader& r, detail::reader_place at) {
  r.ranges(at, any_range_sink{});
} || requires(const Reader& r, detail::reader_place at, scout_of<Reader>& scout) {
  r.ranges(at, scout, any_range_sink{});
};

/// Whether a reader wants to know in advance which samples will be read.
template <class Reader>
concept takes_hints = tells_ranges<Reader> || requires(const Reader& r, detail::reader_place at) {
  r.will_need(at);
} || requires(const Reader& r, detail::reader_place at, scout_of<Reader>& scout) { r.will_need(at, scout); };

/// Whether a reader looks up several samples ahead of their turn, and prefetches the first bytes of each.
template <class Reader>
concept looks_ahead = requires(const Reader& r, std::span<const position> next, typename Reader::worker& w) {
  r.look_ahead(next, w);
  r.prefetch_ahead(std::size_t{}, w, std::uint64_t{});
};

namespace detail {

template <class Reader>
consteval reader_traits known_traits() {
  reader_traits known;
  if constexpr (requires { Reader::traits; })
    known = Reader::traits;
  else
    static_assert(
        !(
            requires { Reader::has_latency; } || requires { Reader::takes_fetched; } ||
            requires { Reader::plans_reads; } || requires { Reader::shows_contiguous; } ||
            requires { Reader::calls_functions; }),
        "penstock: a reader declares its facts in one member: write `static constexpr "
        "reader_traits traits = {.latency = true}` instead of has_latency, and so for takes_fetched, "
        "plans_reads, shows_contiguous and calls_functions");
  if constexpr (!(tells_ranges<Reader> &&
                  requires(typename Reader::worker& w, fetched_sample& there) { w.fetched = &there; }))
    known.takes_fetched = false;
  known.in_memory = known.in_memory || known.shows_contiguous || looks_ahead<Reader> ||
                    requires(const Reader& r, position at) { r.prefetch(at); };
  known.latency = known.latency && known.takes_fetched;
  known.plans_reads = known.plans_reads && known.takes_fetched;
  return known;
}

/// Tells a session that a range will be read soon.
struct hint_sink {
  void operator()(auto& session, object_id object, std::uint64_t offset, std::uint64_t size) const {
    penstock::will_need(session, object, offset, size);
  }
};

}  // namespace detail

/// The facts of a reader's type: those that it declares, as far as it has the calls for them.
template <class Reader>
inline constexpr reader_traits reader_traits_of = detail::known_traits<Reader>();

/// The key of the sample at a position of the source; its index if the reader has no keys.
template <class Reader>
[[nodiscard]] std::string key_of(const Reader& reader, position at) {
  if constexpr (has_keys<Reader>)
    return reader.key(detail::reader_place{at});
  else
    return std::to_string(at.index);
}

/// The file of the sample at a position of the source; empty if the reader does not know it.
[[nodiscard]] std::string url_of(const auto& reader, position at) {
  const detail::reader_place place{at};
  if constexpr (requires { reader.url(place); })
    return std::string(reader.url(place));
  else
    return {};
}

/// The average number of bytes per sample; 0 if the reader does not know it.
[[nodiscard]] std::uint64_t bytes_per_sample_of(const auto& reader) {
  if constexpr (requires {
                  { reader.bytes_per_sample() } -> std::same_as<std::uint64_t>;
                })
    return reader.bytes_per_sample();
  else
    return 0;
}

/// What the plans of a reader that joins plans keep in memory.
[[nodiscard]] kept_counters kept_of(const auto& reader) {
  if constexpr (requires {
                  { reader.kept() } -> std::same_as<kept_counters>;
                })
    return reader.kept();
  else
    return {};
}

/// Ends the reads in progress of a reader, and the waits of threads in them, if its sessions can; see
/// `background_session`.
void cancel_reads_of(const auto& reader) noexcept {
  if constexpr (requires { reader.cancel_reads(); }) reader.cancel_reads();
}

/// Opens what the ranges of these samples need, several objects at a time, unless everything is open.
void get_ready(const auto& reader, std::span<const position> samples) {
  if constexpr (requires { reader.is_ready(); })
    if (!reader.is_ready()) reader.get_ready(samples);
}

/// Calls `sink(session, object, offset, size)` for each byte range of a sample.
template <tells_ranges Reader, class Sink>
void ranges_of(const Reader& reader, position at, scout_of<Reader>& scout, Sink&& sink) {
  const detail::reader_place place{at};
  if constexpr (requires { reader.ranges(place, scout, sink); })
    reader.ranges(place, scout, sink);
  else
    reader.ranges(place, sink);
}

/// Tells a reader that a sample will be read soon; does nothing if the reader takes no hints.
template <class Reader>
void hint(const Reader& reader, position at, scout_of<Reader>& scout) {
  const detail::reader_place place{at};
  if constexpr (tells_ranges<Reader>) try {
      ranges_of(reader, at, scout, detail::hint_sink{});
    } catch (...) {  // the read itself will report the error
    }
  else if constexpr (requires { reader.will_need(place, scout); })
    reader.will_need(place, scout);
  else if constexpr (takes_hints<Reader>)
    reader.will_need(place);
}

}  // namespace penstock::inline v0_1
