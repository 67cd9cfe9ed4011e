// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/zip.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::uint64_t zipped_size(const std::vector<std::uint64_t>& sizes, bool to_the_shortest) {
  for (std::size_t k = 1; k < sizes.size() && !to_the_shortest; ++k) {
    if (sizes[k] != sizes[0]) {
      throw error(errc::argument, {"source ", k, " of zip has ", sizes[k], " samples and source 0 has ",
                                   sizes[0], "; write zip(..., shortest) to end with the shortest"})
          .in_stage("zip");
    }
  }
  return *std::min_element(sizes.begin(), sizes.end());
}

}  // namespace penstock::inline v0_1::detail
