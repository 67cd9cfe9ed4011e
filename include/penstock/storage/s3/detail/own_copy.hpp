// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/crypto.h>)
#error "penstock/storage/s3/detail/own_copy.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/core/error.hpp>

#include <utility>

namespace penstock::inline v0_1::detail::s3 {

/// The same error with texts of its own, for another thread: copies share theirs, and the last owner frees
/// them.
[[nodiscard, gnu::cold]] inline error own_copy(const error& failure) {
  error made(failure.code(), failure.message());
  if (!failure.file().empty()) made.in_file(failure.file());
  if (const auto at = failure.offset()) made.at_offset(*at);
  if (const auto asked = failure.retry_after_ms()) static_cast<void>(std::move(made).asked_to_wait(*asked));
  if (failure.timed_out()) static_cast<void>(std::move(made).after_time_out());
  return std::move(made).recurring(failure.recurs());
}

}  // namespace penstock::inline v0_1::detail::s3
