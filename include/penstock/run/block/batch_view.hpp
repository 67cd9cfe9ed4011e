// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/uneven_views.hpp>

/// The views that `get<"name">(batch)` returns, by collate policy. They are valid while the batch is held.
namespace penstock::inline v0_1 {

/// Values of different lengths, back to back: a range of `std::span<const T>`, one per sample.
template <class T>
class ragged_view : public basic_ragged_view<const T> {
 public:
  using basic_ragged_view<const T>::basic_ragged_view;
  ragged_view() = default;
  /// Converts from a writable view.
  ragged_view(const basic_ragged_view<T>& writes) noexcept : basic_ragged_view<const T>(writes) {}
};

/// Arrays padded with zeros to the longest along their first dimension: a range of `std::span<const T>`, one
/// per sample, without the padding.
template <class T>
class padded_view : public basic_padded_view<const T> {
 public:
  using basic_padded_view<const T>::basic_padded_view;
  padded_view() = default;
  /// Converts from a writable view.
  padded_view(const basic_padded_view<T>& writes) noexcept : basic_padded_view<const T>(writes) {}
};

/// Arrays of unequal shapes in one block of equal slots: a range of `strided_view<const T>`, one per sample,
/// without the padding.
template <class T>
class padded_arrays_view : public basic_padded_arrays_view<const T> {
 public:
  using basic_padded_arrays_view<const T>::basic_padded_arrays_view;
  padded_arrays_view() = default;
  /// Converts from a writable view.
  padded_arrays_view(const basic_padded_arrays_view<T>& writes) noexcept
      : basic_padded_arrays_view<const T>(writes) {}
};

}  // namespace penstock::inline v0_1

template <class T>
constexpr bool std::ranges::enable_borrowed_range<penstock::ragged_view<T>> = true;
template <class T>
constexpr bool std::ranges::enable_borrowed_range<penstock::padded_view<T>> = true;
template <class T>
constexpr bool std::ranges::enable_borrowed_range<penstock::padded_arrays_view<T>> = true;
