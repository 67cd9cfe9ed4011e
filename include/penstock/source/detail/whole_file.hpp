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
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

/// A regular file that is open while this lives. Throws `errc::io` that names the file.
class regular_file {
 public:
  explicit regular_file(const std::string& path) : path_(&path), number_(opened(path)) {
    if (number_ < 0) throw failed("opened");
    struct stat status {};
    const bool known = ::fstat(number_, &status) == 0;
    if (known && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
      return;
    }
    const error reason =
        known ? error(errc::io, "this is not a regular file").in_file(path) : failed("opened");
    ::close(number_);
    throw reason;
  }
  regular_file(const regular_file&) = delete;
  regular_file& operator=(const regular_file&) = delete;
  ~regular_file() { ::close(number_); }

  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// The first `into.size()` bytes.
  void read(mutable_bytes into) const {
    std::size_t filled = 0;
    while (filled < into.size()) {
      const auto got = ::read(number_, into.data() + filled, into.size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw failed("read");
      if (got == 0)
        throw error(errc::io, "the file became shorter while it was read").in_file(*path_).at_offset(filled);
      filled += static_cast<std::size_t>(got);
    }
  }

 private:
  [[nodiscard]] static int opened(const std::string& path) noexcept {
    if (path.find('\0') == std::string::npos) return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    errno = ENOENT;  // the system would open what stands before it
    return -1;
  }
  [[nodiscard]] error failed(const char* what) const {
    const int code = errno;
    return error(errc::io, {"the file cannot be ", what, ": ", std::generic_category().message(code),
                            code == ENOENT ? "; check the path" : ""})
        .in_file(*path_);
  }

  const std::string* path_;
  int number_;
  std::uint64_t size_ = 0;
};

/// All bytes of a regular file, for small formats that are kept in memory. Throws `errc::io` that names the
/// file, and before anything is read `errc::limit` where it has more than `most` bytes; `what` it is, for the
/// message.
template <class = void>
[[nodiscard]] buffer read_whole_file(const std::string& path,
                                     std::uint64_t most = std::numeric_limits<std::uint64_t>::max(),
                                     std::string_view what = "a file") {
  const regular_file file(path);
  if (file.size() > most) {
    const bool round = most % 1_MiB == 0;
    throw error(errc::limit,
                {what, " may not have more than ", round ? most / 1_MiB : most, round ? " MiB" : " bytes"})
        .in_file(path);
  }
  buffer bytes(static_cast<std::size_t>(file.size()));
  file.read(bytes.span());
  return bytes;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
