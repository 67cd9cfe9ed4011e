// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace penstock::inline v0_1 {

/// The shape of an array: up to eight lengths, outermost first, without an allocation. No length means a
/// scalar.
class extents {
 public:
  static constexpr std::size_t max_rank = 8;

  constexpr extents() = default;
  template <std::integral... Ns>
    requires(sizeof...(Ns) > 0 && sizeof...(Ns) <= max_rank)
  constexpr explicit extents(Ns... lengths)
      : lengths_{static_cast<std::uint64_t>(lengths)...}, rank_(static_cast<std::uint32_t>(sizeof...(Ns))) {}

  [[nodiscard]] constexpr std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] constexpr std::uint64_t operator[](std::size_t i) const noexcept { return lengths_[i]; }
  [[nodiscard]] constexpr const std::uint64_t* begin() const noexcept { return lengths_.data(); }
  [[nodiscard]] constexpr const std::uint64_t* end() const noexcept { return lengths_.data() + rank_; }
  /// The number of elements. Whoever fills the extents from foreign bytes checks that it does not overflow.
  [[nodiscard]] constexpr std::uint64_t elements() const noexcept {
    std::uint64_t product = 1;
    for (std::size_t i = 0; i < rank_; ++i) product *= lengths_[i];
    return product;
  }
  /// Appends a length; false when there is no room.
  constexpr bool push_back(std::uint64_t length) noexcept {
    if (rank_ == max_rank) return false;
    lengths_[rank_++] = length;
    return true;
  }
  /// The same shape with one more length in front: that of a batch of such arrays.
  [[nodiscard]] constexpr extents prepend(std::uint64_t length) const noexcept {
    extents result;
    result.push_back(length);
    for (std::size_t i = 0; i < rank_; ++i) result.push_back(lengths_[i]);
    return result;
  }
  /// The same shape without its first length: that of one row.
  [[nodiscard]] constexpr extents drop_front() const noexcept {
    extents result;
    for (std::size_t i = 1; i < rank_; ++i) result.push_back(lengths_[i]);
    return result;
  }
  friend constexpr bool operator==(const extents& a, const extents& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (std::size_t i = 0; i < a.rank_; ++i)
      if (a.lengths_[i] != b.lengths_[i]) return false;
    return true;
  }

 private:
  std::array<std::uint64_t, max_rank> lengths_{};
  std::uint32_t rank_ = 0;
};

/// "(3, 224, 224)", as numpy prints a shape.
[[nodiscard]] std::string to_string(const extents& shape);

namespace detail {
/// The first length of an array. Rows without elements take no bytes, so that a small file can claim any
/// number of them: more than 2^16 of those are `errc::limit`.
[[nodiscard]] std::uint64_t rows_of(const extents& shape);
}  // namespace detail

/// A view of elements of one type with a shape, row-major and dense. Somebody else owns the elements.
template <class T>
class tensor_view {
 public:
  using value_type = std::remove_cv_t<T>;

  constexpr tensor_view() = default;
  constexpr tensor_view(T* data, extents shape) noexcept : data_(data), shape_(shape) {}
  /// A view that may write becomes one that may not.
  template <class U>
    requires(std::is_same_v<const U, T> && !std::is_const_v<U>)
  constexpr tensor_view(const tensor_view<U>& other) noexcept : tensor_view(other.data(), other.shape()) {}

  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr const extents& shape() const noexcept { return shape_; }
  [[nodiscard]] constexpr std::size_t rank() const noexcept { return shape_.rank(); }
  [[nodiscard]] constexpr std::size_t size() const noexcept {
    return static_cast<std::size_t>(shape_.elements());
  }
  [[nodiscard]] constexpr std::span<T> values() const noexcept { return {data_, size()}; }
  [[nodiscard]] constexpr T* begin() const noexcept { return data_; }
  [[nodiscard]] constexpr T* end() const noexcept { return data_ + size(); }
  /// Row `i` along the first length; the view must have one.
  [[nodiscard]] constexpr tensor_view operator[](std::size_t i) const noexcept {
    const extents row = shape_.drop_front();
    return {data_ + i * static_cast<std::size_t>(row.elements()), row};
  }

 private:
  T* data_ = nullptr;
  extents shape_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/core/tensor.ipp>
#endif
