// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// Keeps an object of any type alive. After a move, the compiler sees that nothing is left to release.
class shared_owner {
 public:
  shared_owner() noexcept : kept_() {}
  /// Empty if `kept` is a null pointer, even if it owns something.
  explicit shared_owner(std::shared_ptr<const void> kept) noexcept;
  /// Destroys `made` with the last owner, or immediately if the reference count cannot be allocated.
  shared_owner(const void* made, void (*destroy)(const void*) noexcept);
  /// Keeps what `other` keeps, and shows another part of it; empty if that is null.
  shared_owner(const shared_owner& other, const void* shown) noexcept;
  shared_owner(const shared_owner& other) noexcept;
  shared_owner(shared_owner&& other) noexcept : kept_(std::move(other.kept_)) {}
  shared_owner& operator=(shared_owner other) noexcept {
    kept_.swap(other.kept_);
    return *this;
  }
  ~shared_owner() {
    if (kept_.get() != nullptr) let_go();
  }

  [[nodiscard]] const std::shared_ptr<const void>& kept() const noexcept { return kept_; }

 private:
  void let_go() noexcept;

  union {  // only let_go destroys it
    std::shared_ptr<const void> kept_;
  };
};

}  // namespace detail

/// A std::shared_ptr whose reference counting is one function for all types: each place that releases a
/// std::shared_ptr costs a program about a hundred bytes of code, and each type that it is made for costs
/// five functions. The two convert to each other without copying the object.
///
/// Thread safety: as std::shared_ptr.
template <class T>
class shared {
 public:
  shared() noexcept = default;
  shared(std::nullptr_t) noexcept {}  // NOLINT: as std::shared_ptr
  /// Takes ownership of the result of `new`.
  template <class U>
    requires std::is_convertible_v<U*, T*>
  explicit shared(U* made)
      : owner_(static_cast<T*>(made),
               [](const void* p) noexcept { delete static_cast<const U*>(static_cast<const T*>(p)); }) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  shared(std::shared_ptr<U> kept) noexcept  // NOLINT: as std::shared_ptr
      : owner_(std::shared_ptr<T>(std::move(kept))) {}
  template <class U>
    requires(std::is_convertible_v<U*, T*> && !std::is_same_v<T, U>)
  shared(shared<U> kept) noexcept  // NOLINT: as std::shared_ptr
      : owner_(kept.owner_, static_cast<T*>(kept.get())) {}

  operator std::shared_ptr<T>() const noexcept {  // NOLINT: as if it were one
    return std::shared_ptr<T>(owner_.kept(), get());
  }

  template <class U>
  void reset(U* made) {
    *this = shared(made);
  }

  [[nodiscard]] T* get() const noexcept { return static_cast<T*>(const_cast<void*>(owner_.kept().get())); }
  [[nodiscard]] explicit operator bool() const noexcept { return get() != nullptr; }
  [[nodiscard]] friend bool operator==(const shared& a, std::nullptr_t) noexcept { return !a; }
  [[nodiscard]] friend bool operator==(const shared& a, const shared& b) noexcept {
    return a.get() == b.get();
  }
  [[nodiscard]] T* operator->() const noexcept { return get(); }
  [[nodiscard]] std::add_lvalue_reference_t<T> operator*() const noexcept
    requires(!std::is_void_v<T>)
  {
    return *get();
  }

 private:
  template <class>
  friend class shared;

  detail::shared_owner owner_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/base/shared.ipp>
#endif
