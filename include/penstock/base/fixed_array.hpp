// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <utility>

namespace penstock::inline v0_1::detail {

/// A fixed number of values that never move: like std::unique_ptr<T[]>, but ten times faster to
/// compile.
template <class T>
class fixed_array {
 public:
  fixed_array() noexcept = default;
  explicit fixed_array(std::size_t count) : values_(new T[count]()) {}
  fixed_array(fixed_array&& other) noexcept : values_(std::exchange(other.values_, nullptr)) {}
  fixed_array& operator=(fixed_array&& other) noexcept {
    std::swap(values_, other.values_);
    return *this;
  }
  ~fixed_array() { delete[] values_; }

  [[nodiscard]] T* get() const noexcept { return values_; }
  [[nodiscard]] T& operator[](std::size_t i) const noexcept { return values_[i]; }
  [[nodiscard]] explicit operator bool() const noexcept { return values_ != nullptr; }
  void reset() noexcept { delete[] std::exchange(values_, nullptr); }

 private:
  T* values_ = nullptr;
};

}  // namespace penstock::inline v0_1::detail
