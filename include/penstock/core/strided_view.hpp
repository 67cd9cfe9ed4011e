// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>

#include <array>
#include <concepts>
#include <span>
#include <type_traits>
#include <version>

#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif

namespace penstock::inline v0_1 {

namespace detail {

/// Whether `std::layout_stride` takes these strides: all are positive, and no two indexes reach one element.
/// Strides that reach nothing, because their dimension has one element or the array has none, are replaced by
/// ones that it takes.
/// Source: ISO C++23, [mdspan.layout.stride.cons], preconditions.
[[nodiscard]] constexpr bool fit_layout_stride(const extents& shape, element_strides& strides) noexcept {
  if (shape.elements() == 0) {
    std::uint64_t step = 1;
    for (std::size_t i = shape.rank(); i-- > 0; step *= shape[i] == 0 ? 1 : shape[i])
      strides[i] = static_cast<std::int64_t>(step);
    return true;
  }
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (shape[i] == 1) strides[i] = 1;
  // From the smallest stride to the largest, each must step over everything that those before it reach.
  std::array<bool, extents::max_rank> done{};
  std::uint64_t reached = 1;
  for (std::size_t k = 0; k < shape.rank(); ++k) {
    std::size_t next = shape.rank();
    for (std::size_t i = 0; i < shape.rank(); ++i)
      if (!done[i] && (next == shape.rank() || strides[i] < strides[next] ||
                       (strides[i] == strides[next] && shape[i] < shape[next])))
        next = i;
    if (strides[next] <= 0 || static_cast<std::uint64_t>(strides[next]) < reached) return false;
    done[next] = true;
    reached = static_cast<std::uint64_t>(strides[next]) * shape[next];
  }
  return true;
}

}  // namespace detail

/// Whether an array with these strides is row-major without gaps, so that its elements form one span. An
/// array without elements is dense.
[[nodiscard]] constexpr bool is_dense(const extents& shape, const element_strides& strides) noexcept {
  bool dense = true;
  std::uint64_t step = 1;
  for (std::size_t i = shape.rank(); i-- > 0; step *= shape[i]) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != static_cast<std::int64_t>(step)) dense = false;
  }
  return dense;
}

/// A non-owning view of elements of one type with a shape and strides: the elements may have gaps between
/// them or be stored in an order other than row-major. `get<"name">(batch)` returns one for a field collated
/// with `pitched`.
///
/// It has no `values()`, `begin()` or `size()`, so that nobody reads gaps by mistake: access elements by
/// index or by row. Indexes are not checked; they must be within the shape.
template <class T>
class strided_view {
 public:
  using value_type = std::remove_cv_t<T>;

  constexpr strided_view() = default;
  constexpr strided_view(T* data, const extents& shape, const element_strides& strides) noexcept
      : data_(data), shape_(shape), strides_(strides) {}
  /// A dense view converts to a strided one, and a mutable view to a const one.
  template <class U>
    requires(std::is_same_v<U, T> || std::is_same_v<const U, T>)
  constexpr strided_view(const tensor_view<U>& dense) noexcept
      : data_(dense.data()), shape_(dense.shape()), strides_(dense_strides(dense.shape())) {}
  template <class U>
    requires(std::is_same_v<const U, T> && !std::is_const_v<U>)
  constexpr strided_view(const strided_view<U>& other) noexcept
      : strided_view(other.data(), other.shape(), other.strides()) {}

  /// The element whose indexes are all 0.
  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr const extents& shape() const noexcept { return shape_; }
  [[nodiscard]] constexpr std::size_t rank() const noexcept { return shape_.rank(); }
  [[nodiscard]] constexpr const element_strides& strides() const noexcept { return strides_; }
  /// Whether the view is row-major and has no gaps.
  [[nodiscard]] constexpr bool dense() const noexcept { return is_dense(shape_, strides_); }

  /// Part `i` along the first dimension. The view must have at least one dimension.
  [[nodiscard]] constexpr strided_view operator[](std::size_t i) const noexcept {
    strided_view part(data_ + static_cast<std::int64_t>(i) * strides_[0], shape_.drop_front(), {});
    for (std::size_t k = 1; k < shape_.rank(); ++k) part.strides_[k - 1] = strides_[k];
    return part;
  }
  /// The element at these indexes, one per dimension.
  template <std::integral... Is>
  [[nodiscard]] constexpr T& operator()(Is... indexes) const noexcept {
    std::size_t k = 0;
    std::int64_t offset = 0;
    ((offset += static_cast<std::int64_t>(indexes) * strides_[k++]), ...);
    return data_[offset];
  }

  /// The number of rows: a row is all elements that differ only in the last index. A scalar is one row.
  [[nodiscard]] constexpr std::size_t rows() const noexcept {
    std::uint64_t rows = 1;
    for (std::size_t i = 0; i + 1 < shape_.rank(); ++i) rows *= shape_[i];
    return detail::to_size(rows);
  }
  /// Row `i`, counted row-major. The view must have at least one dimension and a last stride of 1.
  [[nodiscard]] constexpr std::span<T> row(std::size_t i) const noexcept {
    const std::size_t last = shape_.rank() - 1;
    std::int64_t offset = 0;
    for (std::size_t k = last; k-- > 0; i /= detail::to_size(shape_[k]))
      offset += static_cast<std::int64_t>(i % detail::to_size(shape_[k])) * strides_[k];
    return {data_ + offset, detail::to_size(shape_[last])};
  }
  /// Bytes from one row to the next, as image libraries and graphics devices expect them; 0 if the shape has
  /// fewer than two dimensions.
  [[nodiscard]] constexpr std::int64_t row_pitch() const noexcept {
    return shape_.rank() < 2 ? 0 : strides_[shape_.rank() - 2] * static_cast<std::int64_t>(sizeof(T));
  }

#ifdef __cpp_lib_mdspan
  /// The view as a `std::mdspan` with `Rank` dimensions and the view's strides. Throws `errc::shape` if the
  /// view's rank differs, or if a stride is not positive or several indexes reach one element, which
  /// `std::layout_stride` does not allow.
  template <std::size_t Rank>
  [[nodiscard]] constexpr auto mdspan() const {
    if (Rank != rank()) detail::refuse_mdspan(shape_, "a different rank");
    element_strides fitted = strides_;
    if (!detail::fit_layout_stride(shape_, fitted))
      detail::refuse_mdspan(shape_,
                            "strides that are not positive, or lead from several indexes to one element");
    std::array<std::size_t, Rank> lengths{}, steps{};
    for (std::size_t i = 0; i < Rank; ++i) {
      lengths[i] = detail::to_size(shape_[i]);
      steps[i] = static_cast<std::size_t>(fitted[i]);
    }
    using mapping = std::layout_stride::mapping<std::dextents<std::size_t, Rank>>;
    return std::mdspan<T, std::dextents<std::size_t, Rank>, std::layout_stride>(
        data_, mapping(std::dextents<std::size_t, Rank>(lengths), steps));
  }
#endif

 private:
  T* data_ = nullptr;
  extents shape_;
  element_strides strides_{};
};

namespace detail {

/// A value whose elements may have gaps: a type with strides, other than the views that are always dense.
template <class V>
inline constexpr bool tells_strides = requires(const V& v) { v.strides(); };
template <class T>
inline constexpr bool tells_strides<tensor_view<T>> = false;
template <class T>
inline constexpr bool tells_strides<tensor_part<T>> = false;

}  // namespace detail

}  // namespace penstock::inline v0_1
