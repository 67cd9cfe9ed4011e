// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/uneven_views.hpp>

/// What `get<"name">(batch)` gives, by collate policy. Views: they live as long as the batch is held.
namespace penstock::inline v0_1 {

/// Values of different lengths, one sample's after another's: a range of
/// `std::span<const T>`, one a sample.
template <class T>
class ragged_view : public basic_ragged_view<const T> {
 public:
  using basic_ragged_view<const T>::basic_ragged_view;
  ragged_view() = default;
  /// Of a view that may write too.
  ragged_view(const basic_ragged_view<T>& writes) noexcept : basic_ragged_view<const T>(writes) {}
};

/// Arrays padded with zeros to the longest along their first length: a range of
/// `std::span<const T>`, one a sample, without the padding.
template <class T>
class padded_view : public basic_padded_view<const T> {
 public:
  using basic_padded_view<const T>::basic_padded_view;
  padded_view() = default;
  /// Of a view that may write too.
  padded_view(const basic_padded_view<T>& writes) noexcept : basic_padded_view<const T>(writes) {}
};

}  // namespace penstock::inline v0_1

template <class T>
constexpr bool std::ranges::enable_borrowed_range<penstock::ragged_view<T>> = true;
template <class T>
constexpr bool std::ranges::enable_view<penstock::ragged_view<T>> = true;
template <class T>
constexpr bool std::ranges::enable_borrowed_range<penstock::padded_view<T>> = true;
template <class T>
constexpr bool std::ranges::enable_view<penstock::padded_view<T>> = true;
