// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>

#include <cstdint>
#include <memory>
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

}  // namespace penstock::inline v0_1::detail
