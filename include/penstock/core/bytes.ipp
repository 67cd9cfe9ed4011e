// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <penstock/core/error.hpp>

#include <new>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void buffer::reserve(std::size_t size) {
  constexpr std::size_t largest = static_cast<std::size_t>(-1) / 4;  // so that no sum of sizes overflows
  const std::size_t wanted = size > largest ? size : size + size / 4;
  void* const fresh =
      size > largest ? nullptr : ::operator new(wanted, std::align_val_t{alignment}, std::nothrow);
  if (fresh == nullptr)
    throw out_of_memory(size, "a buffer",
                        "if the file says that a sample is so large, it may be damaged: see bad_samples");
  release();
  data_ = static_cast<std::byte*>(fresh);
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
