// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/sidecar_objects.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE sidecar_objects::~sidecar_objects() = default;

PENSTOCK_INLINE std::optional<buffer> sidecar_objects::read(object_id object, sidecar which,
                                                            std::uint64_t maximum, std::string* why) {
  if (connect_ == nullptr) {
    if (why != nullptr) *why = "this storage cannot name the files beside its objects";
    return std::nullopt;
  }
  try {
    const session_view session = session_of(which);
    const std::uint64_t size = session.size(object);
    if (size > maximum) {
      if (why != nullptr) *why = text({"it has ", size, " bytes, more than this shard's index can have"});
      return std::nullopt;
    }
    buffer bytes(to_size(size));
    session.read(object, 0, bytes.span());
    return bytes;
  } catch (const error& e) {
    if (e.code() != errc::io || !e.recurs()) throw;
    if (why != nullptr) *why = e.message();
    return std::nullopt;
  }
}

PENSTOCK_INLINE session_view sidecar_objects::session_of(sidecar which) {
  const std::scoped_lock held(mutex_);
  if (ended_) throw error(errc::stopped, "the run was stopped");
  for (const connection& one : open_)
    if (one.which == which) return one.session;
  return open_.emplace_back(connect_(storage_, which)).session;
}

PENSTOCK_INLINE void sidecar_objects::end_reads() noexcept {
  const std::scoped_lock held(mutex_);
  ended_ = true;
  for (const connection& one : open_) one.session.end_reads();
}

}  // namespace penstock::inline v0_1::detail
