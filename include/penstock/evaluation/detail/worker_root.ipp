// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/detail/worker_root.hpp>

#include <chrono>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::uint64_t detail::now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace penstock::inline v0_1
