// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sidecar.hpp>

#include <mutex>

namespace penstock::inline v0_1 {
namespace detail {

/// The files beside the objects of a storage that is not local, such as their indexes in a store. Connected
/// at their first use. The storage must outlive it.
class sidecar_objects {
 public:
  /// Of a storage whose sidecars cannot be reached: there are none.
  sidecar_objects() = default;
  template <storage Storage>
  explicit sidecar_objects([[maybe_unused]] const Storage& where) {
    if constexpr (has_sidecars<Storage>()) {
      if (is_local(where)) return;
      storage_ = &where;
      connect_ = connected_to<Storage>;
    }
  }
  sidecar_objects(const sidecar_objects&) = delete;
  sidecar_objects& operator=(const sidecar_objects&) = delete;
  ~sidecar_objects();

  /// All bytes of a sidecar of an object. Nothing if it cannot be had: reading it fails with errc::io that
  /// recurs, or it has more than `maximum` bytes; `why` then gets the reason. Stores that do not let
  /// everybody list them, and signed URLs, answer 403 for what does not exist, so any failure that recurs
  /// means that there is none; what may pass is thrown, with the sidecar's name. Any thread.
  [[nodiscard]] std::optional<buffer> read(object_id object, sidecar which, std::uint64_t maximum,
                                           std::string* why = nullptr);

  /// Ends what is being read, and lets reads that begin later fail.
  void end_reads() noexcept;

 private:
  struct connection {
    sidecar which;
    session_view session;
    shared<void> owner;
  };
  template <class Storage>
  struct opened {
    explicit opened(Storage made) : where(std::move(made)), session(where.connect()) {}
    Storage where;
    typename Storage::session session;
  };
  template <class Storage>
  [[nodiscard]] static connection connected_to(const void* where, sidecar which) {
    shared<opened<Storage>> made(new opened<Storage>(static_cast<const Storage*>(where)->sidecars(which)));
    const session_view session(made->session);
    return {which, session, std::move(made)};
  }
  [[nodiscard]] session_view session_of(sidecar which);

  const void* storage_ = nullptr;
  connection (*connect_)(const void* where, sidecar which) = nullptr;
  std::mutex mutex_;
  std::vector<connection> open_;
  bool ended_ = false;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/sidecar_objects.ipp>
#endif
