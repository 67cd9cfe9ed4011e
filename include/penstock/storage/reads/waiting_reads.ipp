// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/reads/waiting_reads.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void waiting_reads::push(std::span<const read_request> requests, read_listener listener) {
  if (first_ > list_.size() / 2) {
    list_.erase(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  const std::size_t wanted = list_.size() + requests.size();
  if (wanted > list_.capacity()) list_.reserve(std::max(wanted, 2 * list_.capacity()));
  for (const read_request& request : requests) list_.push_back({request, listener});
}

PENSTOCK_INLINE waiting_read waiting_reads::pop() noexcept {
  const waiting_read taken = list_[first_++];
  if (empty()) {
    list_.clear();
    first_ = 0;
  }
  return taken;
}

PENSTOCK_INLINE void waiting_reads::stop() noexcept {
  for (std::size_t i = first_; i < list_.size(); ++i) list_[i].stopped = true;
}

PENSTOCK_INLINE std::exception_ptr read_cancelled(const read_request& request,
                                                  std::span<const std::string> names) noexcept {
  return thrown_by([&] {
    throw error(errc::stopped, "the read was cancelled")
        .in_file(request.object < names.size() ? names[request.object] : "")
        .at_offset(request.offset);
  });
}

}  // namespace penstock::inline v0_1::detail
