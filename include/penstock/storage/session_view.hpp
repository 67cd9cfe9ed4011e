// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>

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

/// A type-erased session of any storage, for work done once per object: listing, scanning, checking and
/// building indexes need not be templates over the storage.
///
///     std::ofstream("one.bin") << "four";
///     auto session = file("one.bin").connect();
///     const session_view same = session;  // what takes a session_view is compiled once
///     const std::uint64_t four = same.size(0);
///
/// In: any `storage_session`, which must outlive the view. Copies refer to the same session.
/// Cost: two pointers; each call goes through a function pointer. Work done per sample takes the session
/// itself. Threads and errors: those of the session.
class session_view {
 public:
  template <class S>
    requires(!std::same_as<std::remove_const_t<S>, session_view> && storage_session<S>)
  session_view(S& session) noexcept : session_(&session), calls_(&calls_of<S>) {}

  [[nodiscard]] std::uint64_t size(object_id id) const { return calls_->size(session_, id); }
  [[nodiscard]] object_version version(object_id id) const { return calls_->version(session_, id); }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
    calls_->read(session_, id, offset, into);
  }
  /// Whether the session shows its bytes in place.
  [[nodiscard]] bool views() const noexcept { return calls_->view != nullptr; }
  /// Bytes in place; requires `views()`.
  [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const {
    return calls_->view(session_, id, offset, size);
  }
  /// Like `penstock::confirm`.
  void confirm(object_id id) const { calls_->confirm(session_, id); }
  /// Like `penstock::has_version`.
  [[nodiscard]] bool has_version(object_id id, object_version what) const {
    return calls_->has_version(session_, id, what);
  }
  /// Like `penstock::is_tagged`.
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

 private:
  struct calls {
    std::uint64_t (*size)(const void*, object_id);
    object_version (*version)(const void*, object_id);
    void (*read)(const void*, object_id, std::uint64_t, mutable_bytes);
    bytes_view (*view)(const void*, object_id, std::uint64_t, std::uint64_t);
    void (*confirm)(const void*, object_id);
    bool (*has_version)(const void*, object_id, object_version);
    bool (*tagged)(const void*, object_id);
  };

  template <class S>
  [[nodiscard]] static S& at(const void* session) noexcept {
    return *static_cast<S*>(const_cast<void*>(session));
  }
  template <class S>
  static bytes_view view_of(const void* session, object_id id, std::uint64_t offset, std::uint64_t size) {
    return at<S>(session).view(id, offset, size);
  }
  template <class S>
  [[nodiscard]] static constexpr calls made_for() noexcept {
    calls made{[](const void* session, object_id id) { return at<S>(session).size(id); },
               [](const void* session, object_id id) { return at<S>(session).version(id); },
               [](const void* session, object_id id, std::uint64_t offset, mutable_bytes into) {
                 at<S>(session).read(id, offset, into);
               },
               nullptr,
               [](const void* session, object_id id) { penstock::confirm(at<S>(session), id); },
               [](const void* session, object_id id, object_version what) {
                 return penstock::has_version(at<S>(session), id, what);
               },
               [](const void* session, object_id id) { return penstock::is_tagged(at<S>(session), id); }};
    if constexpr (viewing_session<S>) made.view = &view_of<S>;
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
