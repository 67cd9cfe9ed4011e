// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Where bytes come from. A *storage* is a value and part of a plan: it names objects and holds options, and
/// has nothing open. `connect()` makes a *session*: it owns descriptors, mappings or connections, is shared
/// by all workers of a run, and reads ranges of objects straight to where the caller wants them.
namespace penstock::inline v0_1 {

/// The number of an object in a session: the place of its name in `storage.names()`.
using object_id = std::uint32_t;

/// Tells whether an object is unchanged: its size and a stamp (mtime in nanoseconds, or a hash of the ETag).
struct object_version {
  // which the other one implies, and nvcc 13.0 does not define
  friend bool operator==(const object_version&, const object_version&) = default;
  std::uint64_t size = 0;
  std::uint64_t stamp = 0;
  friend auto operator<=>(const object_version&, const object_version&) = default;
};

/// One range of one object, and where to put its bytes.
struct read_request {
  object_id object = 0;
  std::uint64_t offset = 0;
  mutable_bytes into;     ///< must live until the read has ended
  std::uint64_t tag = 0;  ///< returned when the read has ended
};

/// Is called when a read has ended: once per request, from any thread, possibly before `read_many` returns.
/// It should be quick, and must neither wait for other reads nor destroy the session. It may start further
/// reads: `read_many` must not hold a lock while it calls a listener.
struct read_listener {
  void* self = nullptr;
  /// `error` is null if `into` was filled.
  void (*done)(void* self, std::uint64_t tag, std::exception_ptr error) noexcept = nullptr;
};

/// What a run reads through. Any number of threads may call all members at once.
///   size(id)                        bytes in the object; errc::io names the object when it cannot be opened
///   version(id)                     its size and stamp
///   read(id, offset, into)          blocks until all of `into` is filled, or throws; a range beyond the end is errc::format
///                                   that names object and offset
///   will_need(id, offset, size)     a hint: these bytes will be read soon; never throws, may do nothing
///   confirm(id)                     only if views may turn out to be invalid; see `confirm`
///   views                           whether `view(id, offset, size)` returns bytes that live as long as the session
template <class S>
concept storage_session = requires(S& s, object_id id, std::uint64_t n, mutable_bytes into) {
  { s.size(id) } -> std::same_as<std::uint64_t>;
  { s.version(id) } -> std::same_as<object_version>;
  s.read(id, n, into);
  s.will_need(id, n, n);
  { S::views } -> std::convertible_to<bool>;
};

/// A session that can read many ranges at once while the calling threads do other work.
///   read_many(requests, listener)   starts all the reads, in any order, and returns without waiting for them. Does not
///                                   throw: the listener gets what `read` would have thrown, also for a request that
///                                   could not start. The span need not outlive the call. Called by one thread at a
///                                   time, while others call the other members
///   cancel()                        ends the reads in progress as soon as possible; those that did not happen are
///                                   reported as errc::stopped. The session stays usable. Destroying it cancels too,
///                                   and waits until the last read has been reported
template <class S>
concept background_session =
    storage_session<S> && requires(S& s, std::span<const read_request> requests, read_listener listener) {
      s.read_many(requests, listener);
      { s.cancel() } noexcept;
    };

/// A background session that can end one of its reads.
///   abandon(tag)                    ends the reads with that tag as `cancel` ends all of them; does nothing if there are
///                                   none. Any thread
template <class S>
concept abandoning_session = background_session<S> && requires(S& s, std::uint64_t tag) {
  { s.abandon(tag) } noexcept;
};

/// Cancels the reads of a session that will not be used again. `session.end_reads()`, if there is one, also
/// keeps reads that begin later from waiting.
template <storage_session S>
void end_reads(S& session) noexcept {
  if constexpr (requires { session.end_reads(); })
    session.end_reads();
  else if constexpr (background_session<S>)
    session.cancel();
}

/// A session whose reads are so slow that starting them early pays; it declares
/// `static constexpr bool has_latency = true`.
template <class S>
concept latent_session = storage_session<S> && requires { requires bool(S::has_latency); };

/// A session that knows when an object's bytes are already in memory, so that fetching them ahead would only
/// make another copy: `file`.
///   resident(id)                    whether they are, or seem to be; checks now and then, and otherwise costs almost nothing
template <class S>
concept residency_session = storage_session<S> && requires(S& s, object_id id) {
  { s.resident(id) } -> std::same_as<bool>;
};

/// How a session is told what a run will read, far ahead. The run's rows are numbered on through its epochs.
/// Called by one thread at a time, while others read.
struct access_plan_sink {
  void* self = nullptr;  ///< null: it does not want to know
  /// Whether it can keep more reads; if not, some must be passed first.
  bool (*has_room)(void* self) = nullptr;
  /// All rows before `row` are over; all reads before `seen` have been told, and if `ends`, the run reads
  /// nothing after that.
  void (*stand_at)(void* self, std::uint64_t row, std::uint64_t seen, bool ends) noexcept = nullptr;
  /// What it was told is void, and rows may be smaller from now on: the run goes on elsewhere.
  void (*forget)(void* self) noexcept = nullptr;
};

/// A session that plans by what a run will read: `cached`.
///   access_plan()                   the `access_plan_sink`; the same at each call
///   plan_read(id, offset, size, row) the run reads this range at a row, which is none before the last one; may throw. For
///                                   the thread that uses `access_plan`
template <class S>
concept planning_session = storage_session<S> && requires(S& s, object_id id, std::uint64_t n) {
  { s.access_plan() } -> std::same_as<access_plan_sink>;
  s.plan_read(id, n, n, n);
};

/// Receives the ranges of samples, and wants nothing to be read for that: a reader that must read an index
/// first calls `unknown()` instead.
template <class Sink>
concept unknown_range_sink = requires(Sink& sink) { sink.unknown(); };

/// A session that can show bytes in place: mapped files, memory.
template <class S>
concept viewing_session = storage_session<S> && S::views && requires(S& s, object_id id, std::uint64_t n) {
  { s.view(id, n, n) } -> std::same_as<bytes_view>;
};

/// A session that can show some of its objects in place, decided while it is in use: `file`.
///   mapped(id)                      whether `view(id, offset, size)` may be called; once true it stays so
///   view(id, offset, size)          bytes that live as long as the session
///   confirm(id)                     when they have been used; see `confirm`
///   read(id, offset, into, copy)    optional: as `read`, where bytes in place are copied by `copy(into, from)`
template <class S>
concept mapped_session =
    storage_session<S> && !S::views && requires(const S& s, object_id id, std::uint64_t n) {
      { s.mapped(id) } -> std::same_as<bool>;
      { s.view(id, n, n) } -> std::same_as<bytes_view>;
      s.confirm(id);
    };

/// A session that can prefetch bytes into the processor's cache: `mapped_file`, `file`, and storages around
/// them.
///   prefetch(id, offset, size)      a range that will be read soon; does nothing for what is not in memory
template <class S>
concept prefetching_session = storage_session<S> && requires(const S& s, object_id id, std::uint64_t n) {
  { s.prefetch(id, n, n) } noexcept;
};

/// For a session whose views may turn out to be invalid, such as `mapped_file` with `guarded`: throws if an
/// object's views were. Does nothing for other sessions. Sources call it after using views of a sample, even
/// if that failed, since lost bytes are the better explanation. `read` must check its own bytes.
template <storage_session S>
void confirm(const S& session, object_id id) {
  if constexpr (requires { session.confirm(id); }) session.confirm(id);
}

/// A session that can check by the answers to its reads that an object is a certain one, so that nobody need
/// ask for its version first.
///   expect(id, version)             true: from now on its reads fail if the object has another version. False: it
///                                   cannot tell by that, or knows the object with another one; ask `version`. Sends
///                                   nothing; any thread
template <class S>
concept expecting_session = storage_session<S> && requires(S& s, object_id id, object_version what) {
  { s.expect(id, what) } -> std::same_as<bool>;
};

/// A session that knows which versions are tags of an object's bytes.
///   tagged(id)                      whether objects with equal versions have equal bytes, as with the ETags of object
///                                   stores. A size and a time are no such tag: a file may be replaced by another one that
///                                   has both. After `version` or `expect`; sends nothing; any thread
template <class S>
concept tagging_session = storage_session<S> && requires(const S& s, object_id id) {
  { s.tagged(id) } -> std::same_as<bool>;
};

/// Whether an object's version is a tag of its bytes; see `tagging_session`.
template <storage_session S>
[[nodiscard]] bool is_tagged([[maybe_unused]] const S& session, [[maybe_unused]] object_id id) {
  if constexpr (tagging_session<S>)
    return session.tagged(id);
  else
    return false;
}

/// Whether an object has this version. An `expecting_session` need not be asked: if it is another object,
/// its reads will fail.
template <storage_session S>
[[nodiscard]] bool has_version(S& session, object_id id, object_version what) {
  if constexpr (expecting_session<S>)
    if (session.expect(id, what)) return true;
  return session.version(id) == what;
}

/// A named place that holds objects, as part of a plan: cheap to copy, with nothing open.
///   names()      the objects, in order; brace patterns are expanded
///   connect()    a session for them
template <class S>
concept storage = std::copy_constructible<S> && requires(const S& s) {
  typename S::session;
  requires storage_session<typename S::session>;
  { s.names() } -> std::convertible_to<std::span<const std::string>>;
  { s.connect() } -> std::same_as<typename S::session>;
};

/// A storage that can name other objects.
///   with_names(names)   a storage of the same kind and with the same options, of the objects with these names, as they are:
///                       no pattern is expanded. Sends nothing; an object that is not there is an error that recurs, as in
///                       any storage
template <class S>
concept renaming_storage = storage<S> && requires(const S& s, std::vector<std::string> names) {
  { s.with_names(std::move(names)) } -> std::same_as<S>;
};

/// A storage whose names are paths in the local file system: files that belong to an object may be kept
/// beside it.
template <class S>
concept local_storage = storage<S> && requires { requires bool(S::names_are_paths); };

/// Writes objects into a store, one after another, such as `s3_writer`.
///   open(name)      begins an object; one that is unfinished is given up
///   write(bytes)    appends bytes
///   finish()        makes the object appear, whole; returns its version, as a session would give it
///   abort()         gives an unfinished object up; does nothing if there is none. So does the destructor
template <class W>
concept object_writer = std::movable<W> && requires(W& w, std::string_view name, bytes_view bytes) {
  w.open(name);
  w.write(bytes);
  { w.finish() } -> std::same_as<object_version>;
  { w.abort() } noexcept;
};

/// Whether the names of a storage are paths: it is a `local_storage`, or a storage that is chosen at run time
/// says so with `local()`.
template <storage S>
[[nodiscard]] bool is_local(const S& where) {
  if constexpr (requires {
                  { where.local() } -> std::same_as<bool>;
                })
    return where.local();
  else
    return local_storage<S>;
}

}  // namespace penstock::inline v0_1
