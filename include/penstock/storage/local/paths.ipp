// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/local/paths.hpp>

#include <fcntl.h>

#include <cerrno>
#include <system_error>

namespace penstock::inline v0_1::detail::files {

PENSTOCK_INLINE std::string_view advice(int code) noexcept {
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      return "; check the path, and the range in its braces if it has one";
    case EACCES:
    case EPERM:
      return "; check the mode of the file and of the folders above it";
    case EMFILE:
    case ENFILE:
      return "; raise `ulimit -n`, or give file_options a smaller number of descriptors";
    default:
      return "";
  }
}

PENSTOCK_INLINE error failure(std::string_view doing, std::string_view path, int code) {
  const bool recurs = code == ENOENT || code == ENOTDIR || code == EACCES || code == EPERM ||
                      code == EISDIR || code == ELOOP || code == ENAMETOOLONG;
  // thread-safe, unlike strerror
  return error(errc::io, {"cannot ", doing, ": ", std::generic_category().message(code), advice(code)})
      .in_file(path)
      .recurring(recurs);
}

PENSTOCK_INLINE object_version version_of(int opened, const std::string& path) {
  struct stat status {};
  if (::fstat(opened, &status) != 0) throw failure("read the size", path, errno);
  if (S_ISDIR(status.st_mode)) {
    throw error(
        errc::io,
        "this is a folder, not a file; name the files in it, for example 'folder/train-{0000..0127}.tar'")
        .in_file(path)
        .recurring();
  }
  if (!S_ISREG(status.st_mode)) throw error(errc::io, "this is not a regular file").in_file(path).recurring();
  return version_in(status);
}

PENSTOCK_INLINE int open_quietly(const std::string& path) noexcept {
  if (path.find('\0') != std::string::npos) {  // the system would open the part before the NUL
    errno = ENOENT;
    return -1;
  }
  for (;;) {
    const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened >= 0 || errno != EINTR) return opened;
  }
}

PENSTOCK_INLINE void refuse_range(std::uint64_t offset, std::uint64_t size, std::uint64_t end,
                                  const std::string& path) {
  throw error(errc::format, {"the file ends at ", end, ", but ", size, " bytes were requested"})
      .in_file(path)
      .at_offset(offset);
}

}  // namespace penstock::inline v0_1::detail::files
