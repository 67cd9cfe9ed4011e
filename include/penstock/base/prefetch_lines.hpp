// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

/// Prefetches the beginning of a range, up to 4 KiB, into the processor's cache; in longer ranges the
/// processor itself notices what is read next. Does nothing where no memory is mapped.
// Always inline: at -O2 the call of a function that only prefetches counts as having no effect, and is
// removed.
[[gnu::always_inline]] inline void prefetch_lines(const void* begin, std::uint64_t size) noexcept {
  constexpr std::uint64_t line = 64, maximum = 4096;
  const auto* const bytes = static_cast<const char*>(begin);
  for (std::uint64_t at = 0; at < std::min(size, maximum); at += line) __builtin_prefetch(bytes + at);
}

}  // namespace penstock::inline v0_1::detail
