// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/uneven_views.hpp>

/// The views that `get<"name">(batch)` returns, by collate policy. They are valid while the batch is held.
namespace penstock::inline v0_1 {

/// Values of different lengths, back to back: a range of `std::span<const T>`, one per sample.
template <class T>
using ragged_view = basic_ragged_view<const T>;

/// Arrays padded with zeros to the longest along their first dimension: a range of `std::span<const T>`, one
/// per sample, without the padding.
template <class T>
using padded_view = basic_padded_view<const T>;

/// Arrays of unequal shapes in one block of equal slots: a range of `strided_view<const T>`, one per sample,
/// without the padding.
template <class T>
using padded_arrays_view = basic_padded_arrays_view<const T>;

}  // namespace penstock::inline v0_1
