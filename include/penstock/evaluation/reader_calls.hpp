// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cached_form.hpp>
#include <penstock/core/position.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/fetched.hpp>
#include <penstock/storage/session_report.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

/// The optional calls of a reader, by index or by whole position (see source/concepts.hpp).
namespace penstock::inline v0_1 {

/// Whether a reader has keys for its samples.
template <class Reader>
concept has_keys = requires(const Reader& r, position at) { r.key(at); } ||
                   requires(const Reader& r) { r.key(std::uint64_t{}); };

/// The key of the sample at a position of the source; its index if the reader has no keys.
template <class Reader>
[[nodiscard]] std::string key_of(const Reader& reader, position at) {
  if constexpr (requires { reader.key(at); })
    return reader.key(at);
  else if constexpr (requires { reader.key(at.index); })
    return reader.key(at.index);
  else
    return std::to_string(at.index);
}

/// Whether samples of a reader are what a function of the program's makes: it declares
/// `calls_functions = true`. Such a source reads nothing, however long it takes.
template <class Reader>
concept calls_functions = requires { requires bool(Reader::calls_functions); };

/// Whether a reader knows the file of a sample.
template <class Reader>
concept has_urls = requires(const Reader& r, position at) { r.url(at); } ||
                   requires(const Reader& r) { r.url(std::uint64_t{}); };

/// The file of the sample at a position of the source; empty if the reader does not know it.
template <class Reader>
[[nodiscard]] std::string url_of(const Reader& reader, position at) {
  if constexpr (requires { reader.url(at); })
    return std::string(reader.url(at));
  else if constexpr (requires { reader.url(at.index); })
    return std::string(reader.url(at.index));
  else
    return {};
}

namespace detail {
template <class Reader>
struct scout_for {
  struct type {};
};
template <class Reader>
  requires requires { typename Reader::scout; }
struct scout_for<Reader> {
  using type = typename Reader::scout;
};
}  // namespace detail

/// What one thread keeps between hints to a reader; empty if the reader needs nothing.
template <class Reader>
using scout_of = typename detail::scout_for<Reader>::type;

/// A placeholder for the receiver of ranges, used to ask whether a reader reports them.
struct any_range_sink {
  template <class Session>
  void operator()(Session&, object_id, std::uint64_t /*offset*/, std::uint64_t /*size*/) const {}
};

/// Whether a reader reports which byte ranges contain its samples.
template <class Reader>
concept tells_ranges = requires(const Reader& r) { r.ranges(std::uint64_t{}, any_range_sink{}); } ||
                       requires(const Reader& r, position at, scout_of<Reader>& scout) {
                         r.ranges(at, scout, any_range_sink{});
                       };

/// Whether a reader wants to know in advance which samples will be read.
template <class Reader>
concept takes_hints = tells_ranges<Reader> || requires(const Reader& r) {
  r.will_need(std::uint64_t{});
} || requires(const Reader& r, position at, scout_of<Reader>& scout) { r.will_need(at, scout); };

/// Whether a reader takes bytes that were fetched ahead: its worker has a pointer to them. A reader of
/// several sources declares `takes_fetched = false` if none of them does.
template <class Reader>
concept takes_fetched = tells_ranges<Reader> && requires(typename Reader::worker& w, fetched_sample& there) {
  w.fetched = &there;
} && !requires { requires !bool(Reader::takes_fetched); };

/// Whether a session of a reader may be a `planning_session`: unless it declares `plans_reads = false`.
template <class Reader>
concept may_plan_reads = takes_fetched<Reader> && !requires { requires !bool(Reader::plans_reads); };

/// Whether a reader opens everything that the ranges of samples need, several objects at a time, until all
/// are open.
template <class Reader>
concept gets_ready = takes_fetched<Reader> && requires(const Reader& r, std::span<const position> samples) {
  { r.is_ready() } -> std::same_as<bool>;
  r.get_ready(samples);
};

/// Whether reads are so slow that a run fetches ahead by default.
template <class Reader>
concept has_latency = takes_fetched<Reader> && requires { requires bool(Reader::has_latency); };

namespace detail {
/// Tells a session that a range will be read soon.
struct hint_sink {
  template <class Session>
  void operator()(Session& session, object_id object, std::uint64_t offset, std::uint64_t size) const {
    penstock::will_need(session, object, offset, size);
  }
};
}  // namespace detail

/// Whether a reader knows the average number of bytes per sample.
template <class Reader>
concept knows_bytes_per_sample = requires(const Reader& r) {
  { r.bytes_per_sample() } -> std::same_as<std::uint64_t>;
};

/// What the plans of a reader that joins plans keep in memory.
template <class Reader>
[[nodiscard]] kept_counters kept_of(const Reader& reader) {
  if constexpr (requires {
                  { reader.kept() } -> std::same_as<kept_counters>;
                })
    return reader.kept();
  else
    return {};
}

/// Ends the reads in progress of a reader, and the waits of threads in them, if its sessions can; see
/// `background_session`.
template <class Reader>
void cancel_reads_of(const Reader& reader) noexcept {
  if constexpr (requires { reader.cancel_reads(); }) reader.cancel_reads();
}

/// Whether a reader can prefetch the memory of a sample ahead of its turn.
template <class Reader>
concept prefetches_memory = requires(const Reader& r, position at) { r.prefetch(at); };

/// Whether a reader looks up several samples ahead of their turn, and prefetches the first bytes of each.
template <class Reader>
concept looks_ahead = requires(const Reader& r, std::span<const position> next, typename Reader::worker& w) {
  r.look_ahead(next, w);
  r.prefetch_ahead(std::size_t{}, w, std::uint64_t{});
};

/// Whether a reader shows samples that lie one behind the other in memory at once, by the first of them, with
/// `evaluate_run(first, count, worker, sink)`.
template <class Reader>
concept shows_contiguous = requires { requires bool(Reader::shows_contiguous); };

/// Whether the samples of a reader lie in memory, and are copied from there.
template <class Reader>
inline constexpr bool hands_out_memory =
    prefetches_memory<Reader> || looks_ahead<Reader> || shows_contiguous<Reader>;

/// Calls `sink(session, object, offset, size)` for each byte range of a sample.
template <tells_ranges Reader, class Sink>
void ranges_of(const Reader& reader, position at, scout_of<Reader>& scout, Sink&& sink) {
  if constexpr (requires { reader.ranges(at, scout, sink); })
    reader.ranges(at, scout, sink);
  else
    reader.ranges(at.index, sink);
}

/// Tells a reader that a sample will be read soon; does nothing if the reader takes no hints.
template <class Reader>
void hint(const Reader& reader, position at, scout_of<Reader>& scout) {
  if constexpr (tells_ranges<Reader>) try {
      ranges_of(reader, at, scout, detail::hint_sink{});
    } catch (...) {  // the read itself will report the error
    }
  else if constexpr (requires { reader.will_need(at, scout); })
    reader.will_need(at, scout);
  else if constexpr (requires { reader.will_need(at.index); })
    reader.will_need(at.index);
}

}  // namespace penstock::inline v0_1
