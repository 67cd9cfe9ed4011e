// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/whole_file.hpp>

#include <penstock/storage/file_names.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE regular_file::regular_file(const std::string& path) : path_(&path), number_(opened(path)) {
  if (number_ < 0) throw failed("opened");
  struct stat status {};
  const bool known = ::fstat(number_, &status) == 0;
  if (known && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  const error reason = known ? error(errc::io, "this is not a regular file").in_file(path) : failed("opened");
  ::close(number_);
  throw reason;
}

PENSTOCK_INLINE regular_file::~regular_file() { ::close(number_); }

PENSTOCK_INLINE void regular_file::read(mutable_bytes into) const {
  std::size_t filled = 0;
  while (filled < into.size()) {
    const auto got = ::read(number_, into.data() + filled, into.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw failed("read");
    if (got == 0)
      throw error(errc::io, "the file shrank while it was being read").in_file(*path_).at_offset(filled);
    filled += static_cast<std::size_t>(got);
  }
}

PENSTOCK_INLINE int regular_file::opened(const std::string& path) noexcept {
  if (path.find('\0') == std::string::npos) return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  errno = ENOENT;  // the system would open the path before the NUL
  return -1;
}

PENSTOCK_INLINE error regular_file::failed(const char* what) const {
  const int code = errno;
  return error(errc::io, {"the file cannot be ", what, ": ", std::generic_category().message(code),
                          code == ENOENT ? "; check the path" : ""})
      .in_file(*path_);
}

PENSTOCK_INLINE buffer read_whole_file(const std::string& given, std::uint64_t maximum,
                                       std::string_view what) {
  const std::string path = files::local_path(given);
  const regular_file file(path);
  if (file.size() > maximum) {
    const bool round = maximum % 1_MiB == 0;
    throw error(errc::limit, {what, " may not have more than ", round ? maximum / 1_MiB : maximum,
                              round ? " MiB" : " bytes"})
        .in_file(path);
  }
  buffer bytes(detail::to_size(file.size()));
  file.read(bytes.span());
  return bytes;
}

PENSTOCK_INLINE bool stays_in_folder(std::string_view path) noexcept {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (path.substr(begin, end - begin) == "..") return false;
    begin = end + 1;
  }
  return true;
}

PENSTOCK_INLINE void check_index_size(std::uint64_t bytes) {
  if (bytes > max_description_bytes)
    throw error(errc::limit, {"an index of ", bytes, " bytes; the limit is 256 MiB"});
}

}  // namespace detail
}  // namespace penstock::inline v0_1
