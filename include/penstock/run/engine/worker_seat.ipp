// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/worker_seat.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void worker_seat::take_back() noexcept {
  if (!change(asked, own) && change(lent, own)) word_.notify_one();
}

PENSTOCK_INLINE void worker_seat::lend() noexcept {
  change(asked, lent);
  while (word_.load() == lent) {
    word_.wait(lent);
    change(asked, lent);  // returned, and asked for again
  }
}

PENSTOCK_INLINE void worker_seat::stop() noexcept {
  word_.store(stopped);
  word_.notify_one();
}

}  // namespace penstock::inline v0_1
