// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/crypto.h>)
#error "penstock/storage/s3/requests/own_copy.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail::s3 {

/// The same error with texts of its own, for another thread.
[[nodiscard, gnu::cold]] inline error own_copy(const error& failure) {
  error made(failure);
  return made.own_texts();
}

}  // namespace penstock::inline v0_1::detail::s3
