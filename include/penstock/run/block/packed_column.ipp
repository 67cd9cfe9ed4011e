// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/block/packed_column.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void refuse_rows_of_batch(std::size_t rows, std::size_t row_bytes) {
  throw error(errc::argument, {"a batch of ", rows, " rows of ", row_bytes,
                               " bytes is larger than any memory; make batches smaller"})
      .in_stage("batch");
}

PENSTOCK_INLINE void refuse_sequence(const extents& found) {
  throw error(errc::shape, {"pack puts sequences of one dimension into rows, and this value has the shape ",
                            to_string(found)})
      .in_stage("pack");
}

PENSTOCK_INLINE void refuse_length(const extents& found, const packed_document& expected,
                                   const packed_step& rows) {
  if (found.rank() != 1) refuse_sequence(found);
  throw error(errc::state, {"the sample has ", found[0], " tokens, and its length is ", expected.whole,
                            " in ", *rows.lengths, "; make the lengths again from these samples"})
      .in_stage("pack");
}

PENSTOCK_INLINE void refuse_pad(std::int64_t pad, std::size_t bits) {
  throw error(errc::argument,
              {".pad = ", pad, " is no value of tokens of ", bits, " bits; give pack one that they can have"})
      .in_stage("pack");
}

}  // namespace penstock::inline v0_1::detail
