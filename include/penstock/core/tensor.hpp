// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/detail/index_range.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/to_size.hpp>

#include <array>
#include <cassert>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <version>

#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif

namespace penstock::inline v0_1 {

/// The shape of an array: up to eight dimensions, outermost first, without an allocation. A scalar has none.
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
  /// The number of elements. If you fill the extents from untrusted bytes, check that it does not overflow.
  [[nodiscard]] constexpr std::uint64_t elements() const noexcept {
    std::uint64_t product = 1;
    for (std::size_t i = 0; i < rank_; ++i) product *= lengths_[i];
    return product;
  }
  /// Appends a dimension; returns false if there is no room.
  constexpr bool push_back(std::uint64_t length) noexcept {
    if (rank_ == max_rank) return false;
    lengths_[rank_++] = length;
    return true;
  }
  /// This shape with a new leading dimension: the shape of a batch of such arrays.
  [[nodiscard]] constexpr extents prepend(std::uint64_t length) const noexcept {
    extents result;
    result.push_back(length);
    for (std::size_t i = 0; i < rank_; ++i) result.push_back(lengths_[i]);
    return result;
  }
  /// This shape without its first dimension: the shape of one row.
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
/// The first dimension of an array. Rows without elements take no bytes, so a small file can claim any number
/// of them: throws `errc::limit` for more than 2^16.
[[nodiscard]] std::uint64_t rows_of(const extents& shape);
}  // namespace detail

/// The distance between neighbours along each dimension of an array, outermost first: in elements, not in
/// bytes, as in DLPack. Entries beyond the rank are zero.
using element_strides = std::array<std::int64_t, extents::max_rank>;

/// The strides of a row-major array without gaps.
[[nodiscard]] constexpr element_strides dense_strides(const extents& shape) noexcept {
  element_strides strides{};
  std::uint64_t step = 1;
  for (std::size_t i = shape.rank(); i-- > 0; step *= shape[i]) strides[i] = static_cast<std::int64_t>(step);
  return strides;
}

namespace detail {

/// Throws `errc::shape`: a row of this shape was used as an element.
[[noreturn]] void refuse_element(const extents& shape);
/// Throws `errc::shape`: the requested mdspan does not match an array of this shape.
[[noreturn]] void refuse_mdspan(const extents& shape, std::string_view fault);

}  // namespace detail

template <class T>
class tensor_part;

/// A non-owning view of elements of one type with a shape, row-major and dense. `get<"name">(batch)` returns
/// one for a field of arrays; its first dimension is the batch's slots.
///
/// `v(i, j)` is an element. `v[i]` and a loop run along the first dimension: they give rows, which are views
/// themselves, or elements if there is no other dimension. `flat()` gives all elements as one span. Only
/// `assert` checks that there are as many indexes as dimensions and that they are within the shape.
///
///     std::vector<float> memory{0, 1, 2, 3, 4, 5};
///     const tensor_view<float> v(memory.data(), extents(2, 3));
///     v(1, 2) = 7;                                             // an element
///     v[1][2] = 8;                                             // the same one
///     for (const auto row : v) row[0] = 0;                     // rows of shape (3,)
///     float sum = 0;
///     for (const float x : v.flat()) sum += x;                 // all six
template <class T>
class tensor_view {
 public:
  using value_type = std::remove_cv_t<T>;
  using iterator = detail::index_iterator<tensor_view>;

  constexpr tensor_view() = default;
  constexpr tensor_view(T* data, extents shape) noexcept : data_(data), shape_(shape) {}
  /// A mutable view converts to a const one.
  template <class U>
    requires(std::is_same_v<const U, T> && !std::is_const_v<U>)
  constexpr tensor_view(const tensor_view<U>& other) noexcept : tensor_view(other.data(), other.shape()) {}

  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr const extents& shape() const noexcept { return shape_; }
  [[nodiscard]] constexpr std::size_t rank() const noexcept { return shape_.rank(); }
  /// The distance between neighbours along each dimension, in elements.
  [[nodiscard]] constexpr element_strides strides() const noexcept { return dense_strides(shape_); }
  /// The number of elements; the number of rows is `shape()[0]`.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return detail::to_size(shape_.elements()); }
  /// All elements, one after another; `values()` returns the same span.
  [[nodiscard]] constexpr std::span<T> flat() const noexcept { return {data_, size()}; }
  [[nodiscard]] constexpr std::span<T> values() const noexcept { return flat(); }
  /// Converts to a span of all elements, for functions that take one.
  template <class U>
    requires(std::is_same_v<U, T> || std::is_same_v<U, const T>)
  [[nodiscard]] constexpr operator std::span<U>() const noexcept {
    return flat();
  }

  /// A mistake: no view copies its values by itself.
  template <class Container>
    requires requires { typename Container::allocator_type; }
  constexpr operator Container() const {  // NOLINT(google-explicit-constructor)
    static_assert(never<Container>,
                  "penstock: a view does not copy its values into a container; write "
                  "std::vector<float> v(view.flat().begin(), view.flat().end())");
    return {};
  }

  /// The element at these indexes, one per dimension.
  template <std::integral... Is>
  [[nodiscard]] constexpr T& operator()(Is... indexes) const noexcept {
    assert(sizeof...(Is) == rank() && "penstock: a view is called with one index for each length");
    std::size_t k = 0, offset = 0;
    ((offset = offset * detail::to_size(shape_[k++]) + static_cast<std::size_t>(indexes)), ...);
    return data_[offset];
  }
  /// Row `i` along the first dimension, or element `i` if that is the only one. The view must have at least
  /// one dimension.
  [[nodiscard]] constexpr tensor_part<T> operator[](std::size_t i) const noexcept {
    const extents row = shape_.drop_front();
    return {data_ + i * detail::to_size(row.elements()), row};
  }
  /// Iterates over the rows along the first dimension. A scalar has none.
  [[nodiscard]] constexpr iterator begin() const noexcept { return {*this, 0}; }
  [[nodiscard]] constexpr iterator end() const noexcept { return {*this, detail::to_size(shape_[0])}; }
  /// The rows along the first dimension, as a range whose `size()` is the number of rows.
  [[nodiscard]] constexpr detail::index_range<tensor_view> rows() const noexcept {
    return detail::index_range<tensor_view>(*this);
  }

#ifdef __cpp_lib_mdspan
  /// The view as a `std::mdspan` with `Rank` dimensions. Throws `errc::shape` if the view's rank differs.
  template <std::size_t Rank>
  [[nodiscard]] constexpr auto mdspan() const {
    return static_cast<std::mdspan<T, std::dextents<std::size_t, Rank>>>(*this);
  }
  /// The view as a `std::mdspan`. Throws `errc::shape` if its rank differs, or if a static extent of the
  /// mdspan's type does, or if its index type is too small.
  template <class U, class Index, std::size_t... Lengths>
    requires(std::is_same_v<U, T> || std::is_same_v<U, const T>)
  [[nodiscard]] constexpr operator std::mdspan<U, std::extents<Index, Lengths...>>() const {
    using lengths = std::extents<Index, Lengths...>;
    if (lengths::rank() != rank()) detail::refuse_mdspan(shape_, "a different rank");
    std::array<Index, lengths::rank()> given{};
    bool small = !std::in_range<Index>(shape_.elements());
    for (std::size_t i = 0; i < lengths::rank(); ++i) {
      given[i] = static_cast<Index>(shape_[i]);
      small = small || !std::in_range<Index>(shape_[i]);
      if (lengths::static_extent(i) != std::dynamic_extent && lengths::static_extent(i) != shape_[i])
        detail::refuse_mdspan(shape_, "different extents");
    }
    if (small) detail::refuse_mdspan(shape_, "too many elements for its index type");
    return std::mdspan<U, lengths>(data_, lengths(given));
  }
#endif

 private:
  T* data_ = nullptr;
  extents shape_;
};

/// The result of `v[i]` and of a loop over `v`: a row, which is a `tensor_view` with one dimension less. If
/// the view has only one dimension, it is an element and works like a `T&`. `v(i)` is a `T&`.
template <class T>
class tensor_part : public tensor_view<T> {
 public:
  using tensor_view<T>::tensor_view;
  constexpr tensor_part() = default;
  constexpr tensor_part(const tensor_part&) = default;
  /// Assigning to a named one makes it view another part.
  constexpr tensor_part& operator=(const tensor_part&) & = default;

  /// The element. Throws `errc::shape` if this is a row: a loop that mistakes rows of images for numbers must
  /// not continue.
  constexpr operator T&() const {  // NOLINT: it stands for an element
    if (this->rank() != 0) [[unlikely]]
      detail::refuse_element(this->shape());
    return *this->data();
  }
  /// Writes the element: `v[i] = x`.
  constexpr const tensor_part& operator=(const std::remove_cv_t<T>& value) const&&
    requires(!std::is_const_v<T>)
  {
    element() = value;
    return *this;
  }
  constexpr T& operator+=(const std::remove_cv_t<T>& value) const
    requires(!std::is_const_v<T>)
  {
    return element() = static_cast<T>(element() + value);
  }
  constexpr T& operator-=(const std::remove_cv_t<T>& value) const
    requires(!std::is_const_v<T>)
  {
    return element() = static_cast<T>(element() - value);
  }
  constexpr T& operator*=(const std::remove_cv_t<T>& value) const
    requires(!std::is_const_v<T>)
  {
    return element() = static_cast<T>(element() * value);
  }
  constexpr T& operator/=(const std::remove_cv_t<T>& value) const
    requires(!std::is_const_v<T>)
  {
    return element() = static_cast<T>(element() / value);
  }

 private:
  [[nodiscard]] constexpr T& element() const { return *this; }
};

}  // namespace penstock::inline v0_1

/// A loop visits rows, which are fewer than elements: `size()` is not the length of the range.
template <class T>
constexpr bool std::ranges::disable_sized_range<penstock::tensor_view<T>> = true;
template <class T>
constexpr bool std::ranges::disable_sized_range<penstock::tensor_part<T>> = true;
template <class T>
constexpr bool std::ranges::enable_borrowed_range<penstock::tensor_view<T>> = true;
template <class T>
constexpr bool std::ranges::enable_view<penstock::tensor_view<T>> = true;
template <class T>
constexpr bool std::ranges::enable_borrowed_range<penstock::tensor_part<T>> = true;
template <class T>
constexpr bool std::ranges::enable_view<penstock::tensor_part<T>> = true;

#ifndef PENSTOCK_COMPILED
#include <penstock/core/tensor.ipp>
#endif
