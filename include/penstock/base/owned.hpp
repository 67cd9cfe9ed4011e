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

/// A deleter for std::unique_ptr that is a function of a library in C: `freed_by<ZSTD_freeDCtx>`.
template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* object) const noexcept {
    static_cast<void>(Free(object));
  }
};

/// A deleter for a library's state that `new` made and a function takes down: `ended_by<inflateEnd>`.
template <auto End>
struct ended_by {
  template <class T>
  void operator()(T* state) const noexcept {
    static_cast<void>(End(state));
    delete state;
  }
};

/// A base of what is neither copied nor moved.
class unmovable {
 public:
  unmovable() = default;
  unmovable(const unmovable&) = delete;
  unmovable& operator=(const unmovable&) = delete;
};

}  // namespace penstock::inline v0_1::detail
