// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <compare>
#include <concepts>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

/// Where bytes come from. A *storage* is a value that is part of a plan: it names objects and holds options,
/// and has opened nothing. `connect()` makes a *session*: it owns descriptors, mappings or connections, is
/// shared by all workers of a run, and reads ranges of objects to where the caller wants them.
namespace penstock::inline v0_1 {

/// The number of an object in a session: the place of its name in `storage.names()`.
using object_id = std::uint32_t;

/// What tells that an object is still the same one: its size and a stamp (mtime in nanoseconds, or a hash of
/// the ETag).
struct object_signature {
  std::uint64_t size = 0;
  std::uint64_t stamp = 0;
  friend auto operator<=>(const object_signature&, const object_signature&) = default;
};

/// One range of one object and where its bytes shall go.
struct read_request {
  object_id object = 0;
  std::uint64_t offset = 0;
  mutable_bytes into;     ///< must live until the read has ended
  std::uint64_t tag = 0;  ///< handed back when it has
};

/// Is told that a read has ended: once for each request, from any thread, maybe before `read_many` returns.
/// It should be quick, and must neither wait for other reads nor end the session.
struct read_listener {
  void* self = nullptr;
  /// `error` is null where `into` is filled.
  void (*done)(void* self, std::uint64_t tag, std::exception_ptr error) noexcept = nullptr;
};

/// What a run reads through. All members may be called from many threads at once.
///   size(id)                        bytes in the object; errc::io names the object when it cannot be opened
///   signature(id)                   its size and stamp
///   read(id, offset, into)          blocks until all of `into` is filled, or throws; a range beyond the end is errc::format
///                                   that names object and offset
///   will_need(id, offset, size)     a hint: these bytes will be read soon; never throws, may do nothing
///   confirm(id)                     only where views may turn out to be no good; see `confirm`
///   views                           whether `view(id, offset, size)` gives bytes that live as long as the session
template <class S>
concept storage_session = requires(S& s, object_id id, std::uint64_t n, mutable_bytes into) {
  { s.size(id) } -> std::same_as<std::uint64_t>;
  { s.signature(id) } -> std::same_as<object_signature>;
  s.read(id, n, into);
  s.will_need(id, n, n);
  { S::views } -> std::convertible_to<bool>;
};

/// A session that can read many ranges at once, while the threads that asked do other work.
///   read_many(requests, listener)   begins all the reads, in any order, and returns without waiting for them. It throws
///                                   nothing: what is wrong with a request is told as `read` would throw it, and so is a
///                                   request that could not begin. The span need not outlive the call. Called by one
///                                   thread at a time, while others call the other members
///   cancel()                        the reads that were begun end as soon as they can; those that did not happen are told as
///                                   errc::stopped. The session can be used further. Its end cancels too, and waits until the
///                                   last read has been told
template <class S>
concept background_session =
    storage_session<S> && requires(S& s, std::span<const read_request> requests, read_listener listener) {
      s.read_many(requests, listener);
      { s.cancel() } noexcept;
    };

/// A session whose reads take so long that they are worth beginning early: it says
/// `static constexpr bool has_latency = true`.
template <class S>
concept latent_session = storage_session<S> && requires { requires bool(S::has_latency); };

/// A session that knows when an object's bytes are in memory already, so that fetching them ahead would only
/// be one more copy: `file`.
///   warm(id)                        whether they are, or seem to be; looks now and then, and otherwise costs next to nothing
template <class S>
concept warming_session = storage_session<S> && requires(S& s, object_id id) {
  { s.warm(id) } -> std::same_as<bool>;
};

/// A session that can show bytes in place: mapped files, memory.
template <class S>
concept viewing_session = storage_session<S> && S::views && requires(S& s, object_id id, std::uint64_t n) {
  { s.view(id, n, n) } -> std::same_as<bytes_view>;
};

/// A session that can show some of its objects in place, as it turns out while it is used: `file`.
///   shows(id)                       whether `view(id, offset, size)` may be called; once true it stays so
///   view(id, offset, size)          bytes that live as long as the session
///   confirm(id)                     when they have been used; see `confirm`
template <class S>
concept partly_viewing_session =
    storage_session<S> && !S::views && requires(const S& s, object_id id, std::uint64_t n) {
      { s.shows(id) } -> std::same_as<bool>;
      { s.view(id, n, n) } -> std::same_as<bytes_view>;
      s.confirm(id);
    };

/// Asks a session whose views may turn out to be no good, such as `mapped_file` with `guarded`, whether those
/// of an object were: it throws where they were not. Nothing for other sessions. Sources ask when a sample
/// has been used, and also when using it failed, since bytes that were lost are the better reason.
template <storage_session S>
void confirm(const S& session, object_id id) {
  if constexpr (requires { session.confirm(id); }) session.confirm(id);
}

/// A named place with objects in it, as part of a plan: cheap to copy, nothing opened.
///   names()      the objects, in order; brace patterns are expanded
///   connect()    a session for them
template <class S>
concept storage = std::copy_constructible<S> && requires(const S& s) {
  typename S::session;
  requires storage_session<typename S::session>;
  { s.names() } -> std::convertible_to<std::span<const std::string>>;
  { s.connect() } -> std::same_as<typename S::session>;
};

/// A storage whose names are paths of this machine's file system: what belongs to an object may be kept in a
/// file beside it.
template <class S>
concept local_storage = storage<S> && requires { requires bool(S::names_are_paths); };

}  // namespace penstock::inline v0_1
