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

namespace detail {
/// What `f` throws; null if that is nothing.
template <class F>
[[nodiscard]] std::exception_ptr thrown_by(F&& f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}
}  // namespace detail

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

/// How many of its objects a session shows in place; see `mapped_session`.
enum class mapped_objects : std::uint8_t { none, some, all };

/// The facts of a session's type. A session declares those that differ from the defaults:
///
///     static constexpr session_traits traits = {.latency = true};
struct session_traits {
  bool latency = false;  ///< its reads are so slow that starting them early pays
  mapped_objects mapped = mapped_objects::none;
  /// Whether `prefetch(id, offset, size)`, which is noexcept, fetches a range that will be read soon into the
  /// processor's cache; it does nothing for what is not in memory.
  bool prefetches = false;
};

/// The facts of a session's type.
template <class S>
[[nodiscard]] constexpr session_traits session_traits_of() noexcept {
  if constexpr (requires {
                  { S::traits } -> std::convertible_to<session_traits>;
                }) {
    return S::traits;
  } else {
    static_assert(!(
                      requires { requires std::same_as<decltype(S::views), const bool>; } ||
                      requires { requires std::same_as<decltype(S::has_latency), const bool>; }),
                  "penstock: a session declares its facts in one member: write `static constexpr "
                  "session_traits traits = {.latency = true, .mapped = mapped_objects::all}` instead of "
                  "has_latency and views");
    return {};
  }
}

/// What a run reads through. Any number of threads may call all members at once.
///   size(id)                        bytes in the object; errc::io names the object when it cannot be opened
///   version(id)                     its size and stamp
///   read(id, offset, into)          blocks until all of `into` is filled, or throws; a range beyond the end is errc::format
///                                   that names object and offset
///   traits                          `static constexpr session_traits`, unless the defaults hold
/// A session may have more. Nobody calls these members but the functions in brackets, which do without them:
///   will_need(id, offset, size)     a hint: these bytes will be read soon; never throws [`will_need`]
///   confirm(id)                     throws if bytes shown in place may not have been the object's [`confirm`]
///   resident(id)                    whether it is in memory: checks now and then, else costs almost nothing [`is_resident`]
///   tagged(id)                      whether equal versions have equal bytes: called after `version` or `expect`, sends
///                                   nothing [`is_tagged`]
///   expect(id, version)             true: from now on its reads fail if the object has another version. False: it
///                                   cannot tell by that, or knows the object with another one; ask `version`. Sends
///                                   nothing [`expect_version`]
///   cancel()                        ends the reads in progress and what they wait for, as soon as possible, with
///                                   errc::stopped; noexcept. The session stays usable [`cancel_reads`]
///   end_reads()                     as `cancel`, and reads that begin later do not wait; noexcept [`end_reads`]
///   report(), limits()              what it shows of itself, a `session_report` [`report_of`, `limits_of`]
template <class S>
concept storage_session = requires(S& s, object_id id, std::uint64_t n, mutable_bytes into) {
  { s.size(id) } -> std::same_as<std::uint64_t>;
  { s.version(id) } -> std::same_as<object_version>;
  s.read(id, n, into);
} && !requires { typename S::viewed_session; };  // a `session_view` knows what it can when the program runs

/// A session that can read many ranges at once while the calling threads do other work.
///   read_many(requests, listener)   starts all the reads, in any order, and returns without waiting for them. Does not
///                                   throw: the listener gets what `read` would have thrown, also for a request that
///                                   could not start. The span need not outlive the call. Called by one thread at a
///                                   time, while others call the other members
///   cancel()                        reads that did not happen are reported as errc::stopped. Destroying the session
///                                   cancels too, and waits until the last read has been reported
///   abandon(tag)                    optional, noexcept: ends the reads with that tag as `cancel` ends all of them; does
///                                   nothing if there are none. Any thread. See `abandons`
template <class S>
concept background_session =
    storage_session<S> && requires(S& s, std::span<const read_request> requests, read_listener listener) {
      s.read_many(requests, listener);
      { s.cancel() } noexcept;
    };

/// Whether a session can end one of its reads in the background. Where it cannot, the read runs to its end.
template <class S>
[[nodiscard]] constexpr bool abandons() noexcept {
  return background_session<S> && requires(S& s, std::uint64_t tag) { s.abandon(tag); };
}

/// A session that shows objects in place: memory, mapped files, and `file`, which decides while it is in use.
///   view(id, offset, size)          bytes that live as long as the session
///   mapped(id)                      if its traits say `mapped_objects::some`: whether `view` may be called for this
///                                   object; once true it stays so. See `is_mapped`
///   confirm(id)                     if views may turn out to be invalid; see `confirm`
///   read(id, offset, into, copy)    optional: as `read`, where bytes in place are copied by `copy(into, from)`
template <class S>
concept mapped_session = storage_session<S> && session_traits_of<S>().mapped != mapped_objects::none &&
                         requires(S& s, object_id id, std::uint64_t n) {
                           { s.view(id, n, n) } -> std::same_as<bytes_view>;
                         };

/// Whether a session shows every object in place, always.
template <class S>
[[nodiscard]] constexpr bool all_mapped() noexcept {
  return session_traits_of<S>().mapped == mapped_objects::all;
}

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

/// Whether `view` may be called for an object; once true it stays so.
template <storage_session S>
[[nodiscard]] bool is_mapped([[maybe_unused]] S& session, [[maybe_unused]] object_id id) {
  if constexpr (session_traits_of<S>().mapped == mapped_objects::some)
    return session.mapped(id);
  else
    return all_mapped<S>();
}

/// For a session whose views may turn out to be invalid, such as `mapped_file` with `guarded`: throws if an
/// object's views were. Does nothing for other sessions. Sources call it after using views of a sample, even
/// if that failed, since lost bytes are the better explanation. `read` must check its own bytes.
template <storage_session S>
void confirm(const S& session, object_id id) {
  if constexpr (requires { session.confirm(id); }) session.confirm(id);
}

/// Tells a session that bytes will be read soon.
template <storage_session S>
void will_need(S& session, object_id id, std::uint64_t offset, std::uint64_t size) {
  if constexpr (requires { session.will_need(id, offset, size); }) session.will_need(id, offset, size);
}

/// Whether an object's bytes are in memory, or seem to be, so that fetching them ahead would only make
/// another copy.
template <storage_session S>
[[nodiscard]] bool is_resident(S& session, object_id id) {
  if constexpr (requires { session.resident(id); })
    return session.resident(id);
  else
    return all_mapped<S>();
}

/// Whether an object's version is a tag of its bytes: if it is equal, so are they, as with the ETags of
/// object stores. A size and a time are no such tag: a file may be replaced by another one that has both.
template <storage_session S>
[[nodiscard]] bool is_tagged(const S& session, object_id id) {
  if constexpr (requires { session.tagged(id); })
    return session.tagged(id);
  else
    return false;
}

/// Whether a session checks by the answers to its reads that an object has this version, so that nobody need
/// ask for it first.
template <storage_session S>
[[nodiscard]] bool expect_version(S& session, object_id id, object_version what) {
  if constexpr (requires { session.expect(id, what); })
    return session.expect(id, what);
  else
    return false;
}

/// Whether an object has this version. A session that expects it need not be asked: if it is another object,
/// its reads will fail.
template <storage_session S>
[[nodiscard]] bool has_version(S& session, object_id id, object_version what) {
  return expect_version(session, id, what) || session.version(id) == what;
}

/// Ends the reads in progress, and their waits.
template <storage_session S>
void cancel_reads(S& session) noexcept {
  if constexpr (requires { session.cancel(); }) session.cancel();
}

/// Cancels the reads of a session that will not be used again. `session.end_reads()`, if there is one, also
/// keeps reads that begin later from waiting.
template <storage_session S>
void end_reads(S& session) noexcept {
  if constexpr (requires { session.end_reads(); })
    session.end_reads();
  else
    cancel_reads(session);
}

/// A named place that holds objects, as part of a plan: cheap to copy, with nothing open.
///   names()            the objects, in order; brace patterns are expanded
///   connect()          a session for them, of the type `session`
///   names_are_paths    optional: true if names are paths in the local file system, so that files that belong to an
///                      object may be kept beside it; see `is_local`
///   with_names(names), sidecars(which), schemes    optional; see `renaming_storage`, `has_sidecars` and `any_of`
template <class S>
concept storage = std::copy_constructible<S> && storage_session<typename S::session> && requires(const S& s) {
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

/// Whether the names of all storages of a type are paths: it says so with `names_are_paths`.
template <storage S>
[[nodiscard]] constexpr bool is_local() noexcept {
  return requires { requires bool(S::names_are_paths); };
}

/// Whether the names of a storage are paths. One that is chosen at run time says so with `local()`.
template <storage S>
[[nodiscard]] bool is_local(const S& where) {
  if constexpr (requires {
                  { where.local() } -> std::same_as<bool>;
                })
    return where.local();
  else
    return is_local<S>();
}

}  // namespace penstock::inline v0_1
