// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <utility>

namespace penstock::inline v0_1::detail {

/// Owns one object: like std::unique_ptr, but ten times faster to compile. The type may be incomplete until
/// the owner is destroyed, so a header need not show what only its bodies use.
template <class T>
class owned {
 public:
  owned() noexcept = default;
  /// Takes ownership of the result of `new`.
  explicit owned(T* made) noexcept : object_(made) {}
  owned(owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  owned& operator=(owned&& other) noexcept {
    owned taken(std::move(other));
    std::swap(object_, taken.object_);
    return *this;
  }
  ~owned() {
    static_assert(sizeof(T) != 0, "penstock: an owner is destroyed where its object's type is incomplete");
    delete object_;
  }

  [[nodiscard]] T* get() const noexcept { return object_; }
  [[nodiscard]] T& operator*() const noexcept { return *object_; }
  [[nodiscard]] T* operator->() const noexcept { return object_; }
  [[nodiscard]] explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

/// A base of what is neither copied nor moved.
class unmovable {
 public:
  unmovable() = default;
  unmovable(const unmovable&) = delete;
  unmovable& operator=(const unmovable&) = delete;
};

}  // namespace penstock::inline v0_1::detail
