// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

/// What file and mapped_file share: opening a path for reading, with messages that say what to do.
namespace penstock::inline v0_1 {
namespace detail::files {

/// The system's sentence for an errno value; thread-safe, unlike strerror.
inline std::string sentence(int code) { return std::generic_category().message(code); }

inline std::string_view advice(int code) noexcept {
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

inline error failure(std::string_view doing, std::string_view path, int code) {
  return error(errc::io, {"cannot ", doing, ": ", sentence(code), advice(code)}).in_file(path);
}

/// A descriptor that is closed when it goes.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int value) noexcept : value_(value) {}
  descriptor(descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const noexcept { return value_; }
  [[nodiscard]] int release() noexcept { return std::exchange(value_, -1); }

 private:
  int value_ = -1;
};

[[nodiscard]] inline object_signature signature_in(const struct stat& status) noexcept {
  const auto stamp = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
                     static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  return {static_cast<std::uint64_t>(status.st_size), stamp};
}

/// Size and time of change of an open regular file; errc::io for anything else, by its name.
inline object_signature signature_of(int opened, const std::string& path) {
  struct stat status {};
  if (::fstat(opened, &status) != 0) throw failure("read the size", path, errno);
  if (S_ISDIR(status.st_mode)) {
    throw error(
        errc::io,
        "this is a folder, not a file; name the files in it, for example 'folder/train-{0000..0127}.tar'")
        .in_file(path);
  }
  if (!S_ISREG(status.st_mode)) throw error(errc::io, "this is not a regular file").in_file(path);
  return signature_in(status);
}

/// Opens for reading; -1 with errno when that fails. Non-blocking, or a named pipe would hang here before it
/// can be refused.
inline int open_quietly(const std::string& path) noexcept {
  if (path.find('\0') != std::string::npos) {  // the system would open what stands before it
    errno = ENOENT;
    return -1;
  }
  for (;;) {
    const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened >= 0 || errno != EINTR) return opened;
  }
}

inline void check_range(std::uint64_t offset, std::uint64_t size, std::uint64_t end,
                        const std::string& path) {
  if (offset > end || size > end - offset) {
    throw error(errc::format, {"the file ends at ", end, ", but ", size, " bytes were wanted"})
        .in_file(path)
        .at_offset(offset);
  }
}

}  // namespace detail::files
}  // namespace penstock::inline v0_1
