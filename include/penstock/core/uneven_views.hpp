// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>

#include <span>
#include <type_traits>

/// Views of a batch's values whose samples differ in length. `const T` makes the values read-only: a batch
/// gives `ragged_view`, `padded_view` and `padded_arrays_view`; a function of `map_batch` gets mutable views.
namespace penstock::inline v0_1 {

/// Values of different lengths, stored sample after sample: a range of spans, one per sample.
template <class T>
class basic_ragged_view : public std::ranges::view_base {
 public:
  /// Dereferences to a `std::span<T>`, the values of one sample.
  using iterator = detail::index_iterator<basic_ragged_view>;

  basic_ragged_view() = default;
  /// A mutable view converts to a const one.
  template <class U>
    requires(std::is_same_v<const U, T> && !std::is_const_v<U>)
  basic_ragged_view(const basic_ragged_view<U>& other) noexcept
      : values_(other.values_), offsets_(other.offsets_), shapes_(other.shapes_), size_(other.size_) {}
  basic_ragged_view(T* values, const std::uint64_t* offsets, const extents* shapes, std::size_t size) noexcept
      : values_(values), offsets_(offsets), shapes_(shapes), size_(size) {}

  /// The number of samples.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] iterator begin() const noexcept { return {*this, 0}; }
  [[nodiscard]] iterator end() const noexcept { return {*this, size()}; }
  /// All values: those of sample i are [offsets()[i], offsets()[i + 1]).
  [[nodiscard]] std::span<T> values() const noexcept {
    return {values_, size_ == 0 ? 0 : static_cast<std::size_t>(offsets_[size_])};
  }
  [[nodiscard]] std::span<const std::uint64_t> offsets() const noexcept { return {offsets_, size_ + 1}; }
  /// The values of sample i.
  [[nodiscard]] std::span<T> operator[](std::size_t i) const noexcept {
    return {values_ + offsets_[i], detail::to_size(offsets_[i + 1] - offsets_[i])};
  }
  [[nodiscard]] const extents& shape(std::size_t i) const noexcept { return shapes_[i]; }

 private:
  template <class U>
  friend class basic_ragged_view;

  T* values_ = nullptr;
  const std::uint64_t* offsets_ = nullptr;
  const extents* shapes_ = nullptr;
  std::size_t size_ = 0;
};

/// Arrays zero-padded to the longest along their first dimension: a range of spans, one per sample, without
/// the padding.
template <class T>
class basic_padded_view : public std::ranges::view_base {
 public:
  /// Dereferences to a `std::span<T>`, the values of one sample.
  using iterator = detail::index_iterator<basic_padded_view>;

  basic_padded_view() = default;
  /// A mutable view converts to a const one.
  template <class U>
    requires(std::is_same_v<const U, T> && !std::is_const_v<U>)
  basic_padded_view(const basic_padded_view<U>& other) noexcept
      : values_(other.values_), lengths_(other.lengths_), mask_(other.mask_) {}
  basic_padded_view(tensor_view<T> values, const std::uint64_t* lengths, const std::uint8_t* mask) noexcept
      : values_(values), lengths_(lengths), mask_(mask) {}

  /// The number of samples.
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(values_.shape()[0]); }
  [[nodiscard]] iterator begin() const noexcept { return {*this, 0}; }
  [[nodiscard]] iterator end() const noexcept { return {*this, size()}; }
  /// All values with padding, of shape (samples, longest, ...).
  [[nodiscard]] const tensor_view<T>& values() const noexcept { return values_; }
  [[nodiscard]] const extents& shape() const noexcept { return values_.shape(); }
  /// The length of each sample along the padded dimension.
  [[nodiscard]] std::span<const std::uint64_t> lengths() const noexcept { return {lengths_, size()}; }
  /// A (samples, longest) mask: 1 for a value, 0 for padding.
  [[nodiscard]] tensor_view<const std::uint8_t> mask() const noexcept {
    return {mask_, extents(values_.shape()[0], values_.shape()[1])};
  }
  /// The values of sample i, without its padding.
  [[nodiscard]] std::span<T> operator[](std::size_t i) const noexcept {
    const tensor_view<T> row = values_[i];
    const std::uint64_t inner = row.shape().drop_front().elements();
    return {row.data(), detail::to_size(lengths_[i] * inner)};
  }

 private:
  template <class U>
  friend class basic_padded_view;

  tensor_view<T> values_;
  const std::uint64_t* lengths_ = nullptr;
  const std::uint8_t* mask_ = nullptr;
};

/// Arrays of unequal shapes, such as images, in one block of equal slots: a range of strided views, one per
/// sample, without the padding. Each begins at the first element of its slot.
template <class T>
class basic_padded_arrays_view : public std::ranges::view_base {
 public:
  /// Dereferences to a `strided_view<T>`, the values of one sample.
  using iterator = detail::index_iterator<basic_padded_arrays_view>;

  basic_padded_arrays_view() = default;
  /// A mutable view converts to a const one.
  template <class U>
    requires(std::is_same_v<const U, T> && !std::is_const_v<U>)
  basic_padded_arrays_view(const basic_padded_arrays_view<U>& other) noexcept
      : values_(other.values_), sizes_(other.sizes_) {}
  basic_padded_arrays_view(tensor_view<T> values, const extents* sizes) noexcept
      : values_(values), sizes_(sizes) {}

  /// The number of samples.
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(values_.shape()[0]); }
  [[nodiscard]] iterator begin() const noexcept { return {*this, 0}; }
  [[nodiscard]] iterator end() const noexcept { return {*this, size()}; }
  /// All values with padding: of shape (samples, height, width, channels) for images.
  [[nodiscard]] const tensor_view<T>& values() const noexcept { return values_; }
  [[nodiscard]] const extents& shape() const noexcept { return values_.shape(); }
  /// The shape of each sample without padding; zeros for a slot without a sample.
  [[nodiscard]] std::span<const extents> sizes() const noexcept { return {sizes_, size()}; }
  /// The values of sample i, without its padding.
  [[nodiscard]] strided_view<T> operator[](std::size_t i) const noexcept {
    const tensor_view<T> slot = values_[i];
    return {slot.data(), sizes_[i], slot.strides()};
  }

 private:
  template <class U>
  friend class basic_padded_arrays_view;

  tensor_view<T> values_;
  const extents* sizes_ = nullptr;
};

// The read-only views that `get<"name">(batch)` returns; they are valid while the batch is held.

/// What a batch shows of values under `ragged`.
template <class T>
using ragged_view = basic_ragged_view<const T>;
/// What a batch shows of values under `pad_to_longest`.
template <class T>
using padded_view = basic_padded_view<const T>;
/// What a batch shows of values under `pad_to_largest`.
template <class T>
using padded_arrays_view = basic_padded_arrays_view<const T>;

}  // namespace penstock::inline v0_1

template <class T>
constexpr bool std::ranges::enable_borrowed_range<penstock::basic_ragged_view<T>> = true;
template <class T>
constexpr bool std::ranges::enable_borrowed_range<penstock::basic_padded_view<T>> = true;
template <class T>
constexpr bool std::ranges::enable_borrowed_range<penstock::basic_padded_arrays_view<T>> = true;
