// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

/// All bytes of a regular file, for small formats that are kept in memory. Throws `errc::io` that names the
/// file.
[[nodiscard]] inline buffer read_whole_file(const std::string& path) {
  const auto failed = [&](const char* what) {
    return error(errc::io, {"the file cannot be ", what, ": ", std::generic_category().message(errno)})
        .in_file(path);
  };
  struct descriptor {
    int number;
    ~descriptor() {
      if (number >= 0) ::close(number);
    }
  };
  const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) throw failed("opened");
  struct stat status {};
  if (::fstat(file.number, &status) != 0) throw failed("opened");
  if (!S_ISREG(status.st_mode)) throw error(errc::io, "this is not a regular file").in_file(path);
  buffer bytes(static_cast<std::size_t>(status.st_size));
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const auto got = ::read(file.number, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw failed("read");
    if (got == 0)
      throw error(errc::io, "the file became shorter while it was read").in_file(path).at_offset(filled);
    filled += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
