// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/block/held_column.hpp>

#include <atomic>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE block_share::block_share(block& of, give_back how) noexcept : block_(&of), give_back_(how) {
  of.shares.fetch_add(1, std::memory_order_relaxed);
}
PENSTOCK_INLINE block_share::block_share(const block_share& other) noexcept
    : block_(other.block_), give_back_(other.give_back_) {
  if (block_ != nullptr) block_->shares.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace detail
}  // namespace penstock::inline v0_1
