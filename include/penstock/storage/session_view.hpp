// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

/// Bytes of an object, with the memory that they are in: that of the session where it shows them in place,
/// otherwise their own. `session_view::range` returns them.
///
///     std::ofstream("two.bin") << "four";
///     auto session = file("two.bin").connect();
///     const object_bytes all = session_view(session).range(0, 0, 4);
///     const bytes_view seen = all;  // valid as long as `all` and the session
///
/// Only a value with a name converts to a view: one that is about to be destroyed would leave the view
/// dangling. Move-only; what was moved from is empty.
class object_bytes {
 public:
  object_bytes() = default;
  object_bytes(object_bytes&& other) noexcept
      : room_(std::move(other.room_)), seen_(std::exchange(other.seen_, bytes_view())) {}
  object_bytes& operator=(object_bytes&& other) noexcept {
    room_ = std::move(other.room_);
    seen_ = std::exchange(other.seen_, bytes_view());
    return *this;
  }
  ~object_bytes() = default;

  [[nodiscard]] bytes_view view() const& noexcept { return seen_; }
  bytes_view view() const&& = delete;
  operator bytes_view() const& noexcept { return seen_; }
  operator bytes_view() const&& = delete;
  [[nodiscard]] std::size_t size() const noexcept { return seen_.size(); }

 private:
  friend class session_view;
  buffer room_;
  bytes_view seen_;  // of `room_`, or shown in place
};

/// A type-erased session of any storage, for work done once per object or per request: listing, scanning,
/// checking, fetching and building indexes need not be templates over the storage.
///
///     std::ofstream("one.bin") << "four";
///     auto session = file("one.bin").connect();
///     const session_view same = session;  // what takes a session_view is compiled once
///     const std::uint64_t four = same.size(0);
///
/// In: any `storage_session`, which must outlive the view. Copies refer to the same session. `confirm`,
/// `has_version`, `tagged`, `cancel`, `end_reads`, `report` and `limits` are the functions of the library
/// that do without what a session lacks.
/// Cost: two pointers; each call goes through a function pointer. Work done per sample takes the session
/// itself. Threads and errors: those of the session.
class session_view {
 public:
  using viewed_session = void;

  template <class S>
    requires(!std::same_as<std::remove_const_t<S>, session_view> && storage_session<S>)
  session_view(S& session) noexcept : session_(&session), calls_(&calls_of<S>) {}

  /// The session, which tells it from others.
  [[nodiscard]] const void* self() const noexcept { return session_; }
  [[nodiscard]] session_traits traits() const noexcept { return calls_->traits; }
  [[nodiscard]] std::uint64_t size(object_id id) const { return calls_->size(session_, id); }
  [[nodiscard]] object_version version(object_id id) const { return calls_->version(session_, id); }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
    calls_->read(session_, id, offset, into);
  }
  /// Whether the session shows every object in place.
  [[nodiscard]] bool views() const noexcept { return traits().mapped == mapped_objects::all; }
  /// Bytes in place; requires `views()`.
  [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const {
    return calls_->view(session_, id, offset, size);
  }
  void confirm(object_id id) const { calls_->confirm(session_, id); }
  [[nodiscard]] bool has_version(object_id id, object_version what) const {
    return calls_->has_version(session_, id, what);
  }
  [[nodiscard]] bool tagged(object_id id) const { return calls_->tagged(session_, id); }
  /// A range: in place if the session has views, otherwise read into memory of its own. `reused` gives that
  /// memory, so that a loop allocates once: what it held is gone.
  [[nodiscard]] object_bytes range(object_id id, std::uint64_t offset, std::uint64_t size,
                                   object_bytes reused = {}) const {
    if (views()) {
      reused.seen_ = view(id, offset, size);
      return reused;
    }
    reused.seen_ = {};
    reused.room_.resize_for_overwrite(detail::to_size(size));
    read(id, offset, reused.room_.span());
    reused.seen_ = reused.room_.view();
    return reused;
  }

  /// Whether it is a `background_session`; only those may use `read_many`.
  [[nodiscard]] bool in_background() const noexcept { return calls_->read_many != nullptr; }
  void read_many(std::span<const read_request> requests, read_listener listener) const {
    calls_->read_many(session_, requests, listener);
  }
  /// Like `penstock::abandons`; only then may `abandon` be called.
  [[nodiscard]] bool abandons() const noexcept { return calls_->abandon != nullptr; }
  void abandon(std::uint64_t tag) const noexcept { calls_->abandon(session_, tag); }
  void cancel() const noexcept { calls_->cancel(session_); }
  void end_reads() const noexcept { calls_->end_reads(session_); }
  [[nodiscard]] session_report report() const { return calls_->report(session_); }
  [[nodiscard]] session_report limits() const { return calls_->limits(session_); }

 private:
  struct calls {
    session_traits traits;
    std::uint64_t (*size)(const void*, object_id) = nullptr;
    object_version (*version)(const void*, object_id) = nullptr;
    void (*read)(const void*, object_id, std::uint64_t, mutable_bytes) = nullptr;
    bytes_view (*view)(const void*, object_id, std::uint64_t, std::uint64_t) = nullptr;
    void (*confirm)(const void*, object_id) = nullptr;
    bool (*has_version)(const void*, object_id, object_version) = nullptr;
    bool (*tagged)(const void*, object_id) = nullptr;
    void (*read_many)(const void*, std::span<const read_request>, read_listener) = nullptr;
    void (*abandon)(const void*, std::uint64_t tag) noexcept = nullptr;
    void (*cancel)(const void*) noexcept = nullptr;
    void (*end_reads)(const void*) noexcept = nullptr;
    session_report (*report)(const void*) = nullptr;
    session_report (*limits)(const void*) = nullptr;
  };

  template <class S>
  [[nodiscard]] static S& at(const void* session) noexcept {
    return *static_cast<S*>(const_cast<void*>(session));
  }
  template <class S>
  [[nodiscard]] static constexpr calls made_for() noexcept {
    calls made;
    made.traits = session_traits_of<S>();
    made.size = [](const void* session, object_id id) { return at<S>(session).size(id); };
    made.version = [](const void* session, object_id id) { return at<S>(session).version(id); };
    made.read = [](const void* session, object_id id, std::uint64_t offset, mutable_bytes into) {
      at<S>(session).read(id, offset, into);
    };
    made.confirm = [](const void* session, object_id id) { penstock::confirm(at<S>(session), id); };
    made.has_version = [](const void* session, object_id id, object_version what) {
      return penstock::has_version(at<S>(session), id, what);
    };
    made.tagged = [](const void* session, object_id id) { return is_tagged(at<S>(session), id); };
    made.cancel = [](const void* session) noexcept { cancel_reads(at<S>(session)); };
    made.end_reads = [](const void* session) noexcept { penstock::end_reads(at<S>(session)); };
    made.report = [](const void* session) { return report_of(at<S>(session)); };
    made.limits = [](const void* session) { return limits_of(std::as_const(at<S>(session))); };
    if constexpr (all_mapped<S>())
      made.view = [](const void* session, object_id id, std::uint64_t offset, std::uint64_t size) {
        return at<S>(session).view(id, offset, size);
      };
    if constexpr (background_session<S>)
      made.read_many = [](const void* session, std::span<const read_request> requests, read_listener who) {
        at<S>(session).read_many(requests, who);
      };
    if constexpr (penstock::abandons<S>())
      made.abandon = [](const void* session, std::uint64_t tag) noexcept { at<S>(session).abandon(tag); };
    return made;
  }
  template <class S>
  static constexpr calls calls_of = made_for<S>();

  const void* session_;
  const calls* calls_;
};

/// What a storage says about itself, for code that is not a template over it. The storage owns the names.
struct storage_facts {
  std::span<const std::string> names;
  bool local = false;  ///< whether the names are paths; see `is_local`
};

/// The facts of a storage, which must outlive them.
template <storage Storage>
[[nodiscard]] storage_facts facts_of(const Storage& where) {
  return {where.names(), is_local(where)};
}

}  // namespace penstock::inline v0_1
