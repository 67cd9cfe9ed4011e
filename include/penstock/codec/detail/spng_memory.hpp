// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<spng.h>)
#error "penstock/codec/detail/spng_memory.hpp needs libspng: link penstock::png"
#endif

#include <penstock/codec/detail/allocation_pool.hpp>

#include <spng.h>

#include <memory>
#include <new>

namespace penstock::inline v0_1::detail {

struct free_spng {
  void operator()(spng_ctx* context) const noexcept { spng_ctx_free(context); }
};
using spng_context = std::unique_ptr<spng_ctx, free_spng>;

/// A context whose memory, and that of zlib behind it, is the thread's `allocation_pool`: only within a
/// scope.
[[nodiscard]] inline spng_context new_spng(int flags) {
  spng_alloc functions{allocation_pool::allocate, allocation_pool::reallocate,
                       allocation_pool::allocate_zeros, allocation_pool::release};
  spng_context context(spng_ctx_new2(&functions, flags));
  if (!context) throw std::bad_alloc();
  return context;
}

}  // namespace penstock::inline v0_1::detail
