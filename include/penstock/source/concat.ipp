// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/concat.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE concat_starts starts_of_joined(const std::vector<order_input>& sources) {
  constexpr std::uint64_t maximum = std::uint64_t{1} << 62;
  concat_starts made;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const order_input& each = sources[k];
    const std::uint64_t first = made.firsts.back();
    if (each.size > maximum - first) {
      throw error(errc::argument,
                  {"source ", k,
                   " of concat is endless, or exceeds 2^62 samples together with those before it; write "
                   "repeat() after concat"})
          .in_stage("concat");
    }
    made.firsts.push_back(first + each.size);
    if (each.starts) {
      for (std::size_t i = 1; i < each.starts->size(); ++i) made.starts.push_back(first + (*each.starts)[i]);
    } else if (each.size != 0) {
      made.starts.push_back(first + each.size);
    }
  }
  if (made.starts.size() == 1) made.starts.push_back(0);
  return made;
}

}  // namespace penstock::inline v0_1::detail
