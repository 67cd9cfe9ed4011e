// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/oracle_files.hpp"

#include <string>
#include <string_view>

namespace penstock_test {

/// Datasets that MosaicML's MDSWriter has written: `values` with most encodings, `images`, `zstd`, `gz`, `br`
/// and `pkl`.
inline constexpr oracle_file mds_oracles[] = {
#include "source/oracles/mds.inc"
};

/// The bytes of one of these files.
[[nodiscard]] inline std::string mds_bytes(std::string_view path) {
  for (const oracle_file& one : mds_oracles)
    if (one.path == path) return std::string(one.bytes);
  return {};
}

/// All of these datasets in a folder of their own.
struct mds_folder : oracle_folder {
  mds_folder() : oracle_folder(mds_oracles) {}
};

}  // namespace penstock_test
