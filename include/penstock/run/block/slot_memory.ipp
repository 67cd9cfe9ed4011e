// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/block/slot_memory.hpp>

#include <penstock/core/error.hpp>

#include <cstring>
#include <new>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE slot_memory& slot_memory::operator=(slot_memory&& other) noexcept {
  std::swap(session_, other.session_);
  std::swap(calls_, other.calls_);
  std::swap(account_, other.account_);
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  std::swap(space_, other.space_);
  return *this;
}

PENSTOCK_INLINE void slot_memory::grow(std::size_t bytes, std::size_t keep) {
  const std::size_t wanted = capacity_ == 0 ? bytes : bytes + bytes / 4;
  auto* const fresh = [&] {
    try {
      return static_cast<std::byte*>(calls_->allocate(session_, wanted));
    } catch (const std::bad_alloc&) {
      throw out_of_memory(wanted, "the slots of a batch",
                          "make batches smaller, or keep fewer of them with prefetch(n) after batch");
    }
  }();
  if (keep != 0) std::memcpy(fresh, data_, keep);
  release();
  data_ = fresh;
  capacity_ = wanted;
  account_->bytes.fetch_add(wanted, std::memory_order_relaxed);
}

PENSTOCK_INLINE void slot_memory::release() noexcept {
  if (data_ == nullptr) return;
  calls_->deallocate(session_, data_, capacity_);
  account_->bytes.fetch_sub(capacity_, std::memory_order_relaxed);
  data_ = nullptr;
  capacity_ = 0;
}

}  // namespace penstock::inline v0_1
