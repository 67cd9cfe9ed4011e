// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/workers.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void refuse_workers(std::uint64_t threads) {
  throw error(errc::argument, {"workers(", threads, ") starts that many threads; give it at most ",
                               std::uint64_t{workers_stage::most}})
      .in_stage("workers");
}

}  // namespace penstock::inline v0_1::detail
