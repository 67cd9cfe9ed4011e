// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/random.hpp>
#include <penstock/storage/concepts.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// A descriptor that is closed when it goes.
class owned_descriptor {
 public:
  owned_descriptor() = default;
  explicit owned_descriptor(int value) noexcept : value_(value) {}
  owned_descriptor(owned_descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  owned_descriptor& operator=(owned_descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~owned_descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const noexcept { return value_; }
  [[nodiscard]] int release() noexcept { return std::exchange(value_, -1); }

 private:
  int value_ = -1;
};

/// A file that appears under its name when it is complete, or not at all.
///
/// Written under a temporary name in the same folder; `commit` flushes it to the disk and renames it. Without
/// a commit the temporary file is removed.
template <class = void>
class basic_output_file {
 public:
  explicit basic_output_file(std::string path)
      : path_(std::move(path)), temporary_(path_ + ".tmp-" + unique_ending()) {
    opened_ = owned_descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (opened_.get() < 0) throw failure("create");
  }
  basic_output_file(basic_output_file&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        opened_(std::move(other.opened_)),
        pending_(std::move(other.pending_)),
        size_(other.size_) {}
  basic_output_file& operator=(basic_output_file&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(temporary_, other.temporary_);
    std::swap(opened_, other.opened_);
    std::swap(pending_, other.pending_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~basic_output_file() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  void write(bytes_view bytes) {
    size_ += bytes.size();
    if (bytes.size() < together - pending_.size()) {
      if (pending_.capacity() == 0) {
        pending_.resize_for_overwrite(together);
        pending_.clear();
      }
      pending_.append(bytes);
      return;
    }
    flush();
    write_out(bytes);
  }

  /// Makes the file complete and visible. What it then is.
  object_signature commit() {
    flush();
    struct stat status {};
    if (::fsync(opened_.get()) != 0 || ::fstat(opened_.get(), &status) != 0) throw failure("write");
    if (::close(opened_.release()) != 0) throw failure("write");
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
      throw failure("rename the finished file to its name");
    temporary_.clear();
    return {size_, static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
                       static_cast<std::uint64_t>(status.st_mtim.tv_nsec)};
  }

 private:
  static constexpr std::size_t together = std::size_t{1} << 20;

  static std::string unique_ending() {
    static std::atomic<std::uint64_t> count{0};
    const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    const std::uint64_t drawn = mix64(now ^ mix64(count.fetch_add(1) + 1));
    return detail::text({::getpid(), "-", drawn});
  }

  void flush() {
    write_out(pending_.view());
    pending_.clear();
  }

  void write_out(bytes_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(opened_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw failure("write");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  [[nodiscard]] error failure(std::string_view doing) const {
    const int code = errno;
    return error(errc::io, {"cannot ", doing, ": ", std::generic_category().message(code)}).in_file(path_);
  }

  std::string path_;
  std::string temporary_;
  owned_descriptor opened_;
  buffer pending_;
  std::uint64_t size_ = 0;
};
using output_file = basic_output_file<>;

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
