// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/prefetch.hpp>

#include <penstock/core/error.hpp>

#include <cstddef>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void prefetch_stage::apply(run_options& options, bool after_batch) const {
  if (!after_batch) {
    options.ahead = value;
    return;
  }
  if (value > most_batches)
    throw error(errc::argument,
                {"prefetch(", value, ") after batch holds that many batches; give it at most ", most_batches,
                 ", or write it before batch, where it counts samples"})
        .in_stage("prefetch");
  options.depth = static_cast<std::size_t>(value) + 1;
}

}  // namespace penstock::inline v0_1
