// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace penstock::inline v0_1 {
namespace detail {

enum class byte_lock : short { none = F_UNLCK, shared = F_RDLCK, exclusive = F_WRLCK };

/// Locks a byte of an open file, which need not be there, or lets it go. The lock belongs to the open file:
/// it does not keep its own threads apart, and the system takes it away when the file is closed, so also when
/// its process ends. False if another open file has it.
inline int try_lock_byte(int opened, std::uint64_t byte, byte_lock how) noexcept {
  struct flock what {};
  what.l_type = static_cast<short>(how);
  what.l_whence = SEEK_SET;
  what.l_start = static_cast<off_t>(byte);
  what.l_len = 1;
  int result = 0;
  do result = ::fcntl(opened, F_OFD_SETLK, &what);
  while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}
/// Whether that worked.
inline bool lock_byte(int opened, std::uint64_t byte, byte_lock how) noexcept {
  return try_lock_byte(opened, byte, how) == 0;
}

/// Whether another open file has a lock of this byte, or that cannot be found out.
[[nodiscard]] inline bool is_locked(int opened, std::uint64_t byte) noexcept {
  struct flock what {};
  what.l_type = F_WRLCK;
  what.l_whence = SEEK_SET;
  what.l_start = static_cast<off_t>(byte);
  what.l_len = 1;
  return ::fcntl(opened, F_OFD_GETLK, &what) != 0 || what.l_type != F_UNLCK;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
