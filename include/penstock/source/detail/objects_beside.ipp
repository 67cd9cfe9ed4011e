// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/detail/objects_beside.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE objects_beside::~objects_beside() = default;

PENSTOCK_INLINE std::optional<buffer> objects_beside::read(object_id object, sibling which,
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

PENSTOCK_INLINE session_view objects_beside::session_of(sibling which) {
  const std::scoped_lock held(mutex_);
  if (ended_) throw error(errc::stopped, "the run was stopped");
  for (const connection& one : open_)
    if (one.which == which) return one.session;
  return open_.emplace_back(connect_(where_, which)).session;
}

PENSTOCK_INLINE void objects_beside::end_reads() noexcept {
  const std::scoped_lock held(mutex_);
  ended_ = true;
  for (const connection& one : open_) one.end(one.owner.get());
}

}  // namespace penstock::inline v0_1::detail
