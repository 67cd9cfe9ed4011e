// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/local/residence.hpp>

#include <penstock/core/random.hpp>

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>

#if defined(__linux__)
#include <sys/statfs.h>
#endif

namespace penstock::inline v0_1 {
namespace detail::files {

#if defined(__linux__)
/// Whether a file system exists only in memory; older kernels do not answer for its files.
PENSTOCK_INLINE bool lives_in_memory(int opened) noexcept {
  struct statfs of {};
  constexpr auto tmpfs = 0x01021994, ramfs = static_cast<int>(0x858458f6u);
  return ::fstatfs(opened, &of) == 0 &&
         (static_cast<int>(of.f_type) == tmpfs || static_cast<int>(of.f_type) == ramfs);
}
#endif

PENSTOCK_INLINE bool is_in_memory([[maybe_unused]] int opened, [[maybe_unused]] std::uint64_t size,
                                  [[maybe_unused]] std::uint64_t draw) noexcept {
#if defined(RWF_NOWAIT)
  constexpr std::uint64_t places = 16;
  if (size < places) return false;
  unsigned missing = 0;
  std::byte one{};
  const iovec into{&one, 1};
  for (std::uint64_t i = 0; i < places && missing < 2; ++i) {
    // mincore and cachestat reveal nothing about files of other users
    const std::uint64_t part = size / places;
    const auto at = static_cast<off_t>(part * i + mix64(draw * places + i) % part);
    ssize_t got = 0;
    do got = ::preadv2(opened, &into, 1, at, RWF_NOWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno != EAGAIN) return lives_in_memory(opened);
    if (got < 1) ++missing;
  }
  return missing < 2;
#else
  return false;
#endif
}

}  // namespace detail::files
}  // namespace penstock::inline v0_1
