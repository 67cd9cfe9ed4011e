// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// What file and mapped_file share: opening a path for reading, with errors that say what to do.
namespace penstock::inline v0_1::detail::files {

/// "cannot <doing>", with the system's reason for an errno value and what to do about it.
[[nodiscard]] error failure(std::string_view doing, std::string_view path, int code);

/// A descriptor that is closed on destruction.
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

[[nodiscard]] inline object_version version_in(const struct stat& status) noexcept {
  const auto stamp = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
                     static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  return {static_cast<std::uint64_t>(status.st_size), stamp};
}

/// Size and modification time of an open regular file; throws errc::io, naming the kind, for anything else.
[[nodiscard]] object_version version_of(int opened, const std::string& path);

/// Opens for reading; returns -1 with errno on failure. Non-blocking, because a named pipe would otherwise
/// hang here before it can be refused.
[[nodiscard]] int open_quietly(const std::string& path) noexcept;

[[noreturn, gnu::cold]] void refuse_range(std::uint64_t offset, std::uint64_t size, std::uint64_t end,
                                          const std::string& path);

inline void check_range(std::uint64_t offset, std::uint64_t size, std::uint64_t end,
                        const std::string& path) {
  if (offset > end || size > end - offset) [[unlikely]]
    refuse_range(offset, size, end, path);
}

}  // namespace penstock::inline v0_1::detail::files

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/local/paths.ipp>
#endif
