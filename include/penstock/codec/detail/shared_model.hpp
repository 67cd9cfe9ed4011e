// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <atomic>
#include <utility>

namespace penstock::inline v0_1::detail {

/// An object that copies share, or none: like std::shared_ptr, but a literal type, as codecs must be for
/// `decode<Codec>` to be a constant. The object is constant once it is shared.
template <class T>
class shared_model {
 public:
  constexpr shared_model() noexcept = default;
  template <class... Args>
  [[nodiscard]] static shared_model make(Args&&... args) {
    shared_model made;
    made.kept_ = new kept(std::forward<Args>(args)...);
    return made;
  }
  constexpr shared_model(const shared_model& other) noexcept : kept_(other.kept_) {
    if (kept_ != nullptr) kept_->users.fetch_add(1, std::memory_order_relaxed);
  }
  constexpr shared_model(shared_model&& other) noexcept : kept_(std::exchange(other.kept_, nullptr)) {}
  constexpr shared_model& operator=(shared_model other) noexcept {
    std::swap(kept_, other.kept_);
    return *this;
  }
  constexpr ~shared_model() {
    if (kept_ != nullptr && kept_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete kept_;
  }

  [[nodiscard]] explicit operator bool() const noexcept { return kept_ != nullptr; }
  [[nodiscard]] const T* get() const noexcept { return kept_ == nullptr ? nullptr : &kept_->value; }
  [[nodiscard]] const T& operator*() const noexcept { return kept_->value; }
  [[nodiscard]] const T* operator->() const noexcept { return &kept_->value; }
  /// The object, before it is shared.
  [[nodiscard]] T& fresh() noexcept { return kept_->value; }

  friend bool operator==(const shared_model& a, const shared_model& b) noexcept { return a.kept_ == b.kept_; }

 private:
  struct kept {
    template <class... Args>
    explicit kept(Args&&... args) : value(std::forward<Args>(args)...) {}
    std::atomic<std::size_t> users{1};
    T value;
  };
  kept* kept_ = nullptr;
};

}  // namespace penstock::inline v0_1::detail
