// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/oracle_files.hpp"

namespace penstock_test {

/// Datasets that LitData's BinaryWriter has written: `values` with most formats, `tree`, `zstd`, `frames`,
/// `unframed`, `tokens`, `packed_tokens`, and `rows`, `packed_rows`, `uneven_rows`, `pair_rows` and
/// `part_rows` of Arrow.
inline constexpr oracle_file litdata_oracles[] = {
#include "source/oracles/litdata.inc"
};

/// All of these datasets in a folder of their own.
struct litdata_folder : oracle_folder {
  litdata_folder() : oracle_folder(litdata_oracles) {}
};

}  // namespace penstock_test
