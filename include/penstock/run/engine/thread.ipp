// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/thread.hpp>

#include <exception>
#include <system_error>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void joined_thread::join() noexcept {
  if (runs_ && ::pthread_join(id_, nullptr) != 0) std::terminate();  // a thread cannot join itself
  runs_ = false;
}

PENSTOCK_INLINE void joined_thread::begin(void* (*what)(void*), void* it) {
  if (const int code = ::pthread_create(&id_, nullptr, what, it); code != 0)
    throw std::system_error(code, std::generic_category());
  runs_ = true;
}

}  // namespace penstock::inline v0_1
