// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <vector>

namespace penstock::inline v0_1::detail {

/// The columns of a batch of rows, and what they lie in if it is not a mapping.
struct arrow_batch {
  arrow_column root;
  std::vector<arrow_leaf> leaves;
  std::vector<buffer> owned;
  std::vector<std::unique_ptr<arrow_column>> widened;  // of leaves that the file has otherwise, or not at all
  std::vector<std::unique_ptr<arrow_type>> types;      // of those that it has not
  shared<const void> kept;                             // what another library allocated
  std::uint64_t kept_bytes = 0;

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t all = kept_bytes;
    for (const buffer& one : owned) all += one.capacity();
    return all;
  }
};

/// Whether values of a file's type are read like those of `wanted`, which `common_arrow_type` made of it, as
/// they lie there: texts in any encoding, lists of any offsets, and null.
[[nodiscard]] bool reads_unchanged(const arrow_type& file, const arrow_type& wanted) noexcept;

/// A column with its values as those of `wanted`, which `common_arrow_type` made of its type and which must
/// live as long as the column. Buffers that are the same are shared; others are made in `owned`. Throws
/// errc::format for a time that does not fit the finer unit.
[[nodiscard]] arrow_column widened(const arrow_column& column, const arrow_type& wanted,
                                   std::vector<buffer>& owned);

/// Replaces a leaf of a batch by its values as those of `wanted`, if they are others.
void widen_leaf(arrow_batch& batch, arrow_leaf& leaf, const arrow_type& wanted);

/// The leaf of a column, by its path, that a file lacks: null in all rows.
[[nodiscard]] arrow_leaf lacking_leaf(arrow_batch& batch, std::string_view path, std::uint64_t rows);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/arrow_batch.ipp>
#endif
