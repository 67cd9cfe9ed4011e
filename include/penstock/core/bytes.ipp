// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void buffer::reserve(std::size_t size) {
  constexpr std::size_t largest = static_cast<std::size_t>(-1) / 4;  // so that no sum of sizes overflows
  if (size > largest) throw std::bad_alloc();
  const std::size_t wanted = size + size / 4;
  auto* fresh = static_cast<std::byte*>(::operator new(wanted, std::align_val_t{alignment}));
  release();
  data_ = fresh;
  capacity_ = wanted;
}

PENSTOCK_INLINE void buffer::append(bytes_view bytes) {
  const std::size_t before = size_;
  buffer grown;  // frees the old memory once everything is copied
  if (before + bytes.size() > capacity_) {
    grown.resize_for_overwrite((before + bytes.size()) * 2);
    if (before != 0) std::memcpy(grown.data_, data_, before);
    std::swap(data_, grown.data_);
    std::swap(capacity_, grown.capacity_);
  }
  if (!bytes.empty()) std::memcpy(data_ + before, bytes.data(), bytes.size());
  size_ = before + bytes.size();
}

}  // namespace penstock::inline v0_1
