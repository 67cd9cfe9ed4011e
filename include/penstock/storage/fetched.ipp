// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/fetched.hpp>

#include <penstock/core/to_size.hpp>
#include <penstock/storage/range_store.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void fetched_sample::take() noexcept { parts_ = store_->take(row_); }

PENSTOCK_INLINE void fetched_sample::release() noexcept {
  for (const fetched_part& part : parts_) store_->release(*part.from);
  parts_ = {};
}

PENSTOCK_INLINE bytes_view fetched_sample::look(const void* session, object_id object, std::uint64_t offset,
                                                std::uint64_t size) const {
  for (const fetched_part& part : parts_) {
    if (part.session != session || part.object != object || offset < part.offset) continue;
    const std::uint64_t before = offset - part.offset;
    if (before > part.size || size > part.size - before) continue;
    if (!store_->wait(part)) return {};
    return {part.bytes + before, detail::to_size(size)};
  }
  return {};
}

}  // namespace penstock::inline v0_1
