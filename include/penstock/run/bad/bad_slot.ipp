// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/bad/bad_slot.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void bad_slots::add(const bad_slot& one) { all_.push_back(one); }
PENSTOCK_INLINE void bad_slots::sort() noexcept {
  std::sort(all_.begin(), all_.end(),
            [](const auto& a, const auto& b) { return a.row != b.row ? a.row < b.row : a.at < b.at; });
}

namespace detail {

PENSTOCK_INLINE error error_like(const error& e, std::initializer_list<piece> message) {
  error made(e.code(), message);
  if (!e.stage().empty()) made.in_stage(e.stage());
  if (!e.file().empty()) made.in_file(e.file());
  if (!e.key().empty()) made.for_key(e.key());
  if (e.offset()) made.at_offset(*e.offset());
  if (e.at()) made.add_context(*e.at());
  return made;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
