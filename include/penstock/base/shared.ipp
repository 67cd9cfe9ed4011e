// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE shared_owner::shared_owner(std::shared_ptr<const void> kept) noexcept : kept_() {
  if (kept != nullptr) kept_.swap(kept);
}
PENSTOCK_INLINE shared_owner::shared_owner(const void* made, void (*destroy)(const void*) noexcept)
    : kept_() {
  if (made != nullptr) kept_.reset(made, destroy);
}
PENSTOCK_INLINE shared_owner::shared_owner(const shared_owner& other, const void* shown) noexcept
    : shared_owner(std::shared_ptr<const void>(other.kept_, shown)) {}
PENSTOCK_INLINE shared_owner::shared_owner(const shared_owner& other) noexcept : kept_(other.kept_) {}
PENSTOCK_INLINE void shared_owner::let_go() noexcept { kept_.~shared_ptr(); }

}  // namespace penstock::inline v0_1::detail
