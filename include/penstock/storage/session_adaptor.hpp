// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>

#include <cstdint>
#include <span>

namespace penstock::inline v0_1 {

/// A session around another one, which passes everything to it: derive from it, and declare what changes.
///
///     struct traced_session : session_adaptor<traced_session, memory_files::session> {
///       memory_files::session& inner;
///       explicit traced_session(memory_files::session& around) : inner(around) {}
///       memory_files::session& inside() const { return inner; }
///       object_version version(object_id id) const {
///         std::clog << "asks for the version of object " << id << '\n';
///         return inner.version(id);
///       }
///     };
///
/// In: `Derived` has `inside()`, which returns the session that is around. What that one cannot do, this one
/// cannot, either: each member asks the type, and calls it. What must not be passed on, `Derived` deletes:
/// `abandon` where reads get other tags. Bytes are read in several ways: a session that changes them declares
/// `read` and, over a `background_session`, `read_many`, sets `views` to false, and deletes `mapped`, `view`
/// and `prefetch`; where it changes sizes or offsets, `size`, `version`, `expect`, `will_need` and
/// `plan_read` as well.
/// Not passed on: `read` with a function that copies, so that all bytes go through `read` or `view`.
/// Cost: none; each call is the call of the session inside. Threads and errors: those of that session.
template <class Derived, storage_session Inner>
class session_adaptor {
 public:
  static constexpr bool views = Inner::views;
  static constexpr bool has_latency = latent_session<Inner>;

  [[nodiscard]] std::uint64_t size(object_id id) const { return inner().size(id); }
  [[nodiscard]] object_version version(object_id id) const { return inner().version(id); }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const { inner().read(id, offset, into); }
  void read_many(std::span<const read_request> requests, read_listener listener) const noexcept
    requires background_session<Inner>
  {
    inner().read_many(requests, listener);
  }
  void cancel() const noexcept
    requires background_session<Inner>
  {
    inner().cancel();
  }
  void abandon(std::uint64_t tag) const noexcept
    requires abandoning_session<Inner>
  {
    inner().abandon(tag);
  }
  /// Ends the waits of reads in the calling threads, with errc::stopped.
  void cancel_waits() const noexcept
    requires(!background_session<Inner> && requires(Inner& s) { s.cancel_waits(); })
  {
    inner().cancel_waits();
  }
  void end_reads() const noexcept { penstock::end_reads(inner()); }

  void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const {
    inner().will_need(id, offset, size);
  }
  [[gnu::always_inline]] void prefetch(object_id id, std::uint64_t offset, std::uint64_t size) const noexcept
    requires prefetching_session<Inner>
  {
    inner().prefetch(id, offset, size);
  }
  [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const
    requires viewing_session<Inner> || mapped_session<Inner>
  {
    return inner().view(id, offset, size);
  }
  [[nodiscard]] bool mapped(object_id id) const
    requires mapped_session<Inner>
  {
    return inner().mapped(id);
  }
  void confirm(object_id id) const
    requires requires(const Inner& s) { s.confirm(id); }
  {
    inner().confirm(id);
  }
  [[nodiscard]] bool resident(object_id id) const
    requires residency_session<Inner>
  {
    return inner().resident(id);
  }

  [[nodiscard]] bool tagged(object_id id) const { return is_tagged(inner(), id); }
  [[nodiscard]] bool expect(object_id id, object_version what) const
    requires expecting_session<Inner>
  {
    return inner().expect(id, what);
  }
  [[nodiscard]] access_plan_sink access_plan() const
    requires planning_session<Inner>
  {
    return inner().access_plan();
  }
  void plan_read(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) const
    requires planning_session<Inner>
  {
    inner().plan_read(id, offset, size, row);
  }
  [[nodiscard]] session_report report() const { return report_of(inner()); }

 private:
  [[nodiscard, gnu::always_inline]] Inner& inner() const {
    return static_cast<const Derived*>(this)->inside();
  }
};

}  // namespace penstock::inline v0_1
