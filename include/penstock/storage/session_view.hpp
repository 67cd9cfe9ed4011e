// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace penstock::inline v0_1 {

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
  [[nodiscard]] object_signature signature(object_id id) const { return calls_->signature(session_, id); }
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
  /// Like `penstock::has_signature`.
  [[nodiscard]] bool has_signature(object_id id, object_signature what) const {
    return calls_->has_signature(session_, id, what);
  }
  /// A range: in place if the session has views, otherwise read into `room`. Lives as long as both.
  [[nodiscard]] bytes_view range(object_id id, std::uint64_t offset, std::uint64_t size, buffer& room) const {
    if (views()) return view(id, offset, size);
    room.resize_for_overwrite(detail::to_size(size));
    read(id, offset, room.span());
    return room.view();
  }

 private:
  struct calls {
    std::uint64_t (*size)(const void*, object_id);
    object_signature (*signature)(const void*, object_id);
    void (*read)(const void*, object_id, std::uint64_t, mutable_bytes);
    bytes_view (*view)(const void*, object_id, std::uint64_t, std::uint64_t);
    void (*confirm)(const void*, object_id);
    bool (*has_signature)(const void*, object_id, object_signature);
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
               [](const void* session, object_id id) { return at<S>(session).signature(id); },
               [](const void* session, object_id id, std::uint64_t offset, mutable_bytes into) {
                 at<S>(session).read(id, offset, into);
               },
               nullptr,
               [](const void* session, object_id id) { penstock::confirm(at<S>(session), id); },
               [](const void* session, object_id id, object_signature what) {
                 return penstock::has_signature(at<S>(session), id, what);
               }};
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
