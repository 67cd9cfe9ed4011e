// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/local/output_file.hpp>

#include <penstock/core/message.hpp>
#include <penstock/core/random.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE bool read_all(int from, mutable_bytes into, std::uint64_t offset) noexcept {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got =
        ::pread(from, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

PENSTOCK_INLINE output_file::output_file(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".tmp-" + unique_ending()) {
  opened_ = owned_descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (opened_.get() < 0) throw failure("create");
}

PENSTOCK_INLINE output_file::output_file(output_file&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      opened_(std::move(other.opened_)),
      pending_(std::move(other.pending_)),
      size_(other.size_) {}

PENSTOCK_INLINE output_file& output_file::operator=(output_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(opened_, other.opened_);
  std::swap(pending_, other.pending_);
  std::swap(size_, other.size_);
  return *this;
}

PENSTOCK_INLINE output_file::~output_file() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

PENSTOCK_INLINE void output_file::write(bytes_view bytes) {
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

PENSTOCK_INLINE object_version output_file::commit() {
  flush();
  struct stat status {};
  if (::fsync(opened_.get()) != 0 || ::fstat(opened_.get(), &status) != 0) throw failure("write");
  if (::close(opened_.release()) != 0) throw failure("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw failure("rename the finished file to its name");
  temporary_.clear();
  return {size_, static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
                     static_cast<std::uint64_t>(status.st_mtim.tv_nsec)};
}

// Inline both in the header-only form and in the compiled one: a program with both has a single
// counter.
inline std::atomic<std::uint64_t> temporary_files{0};

PENSTOCK_INLINE std::string output_file::unique_ending() {
  const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  const std::uint64_t drawn = mix64(now ^ mix64(temporary_files.fetch_add(1) + 1));
  return detail::text({::getpid(), "-", drawn});
}

PENSTOCK_INLINE void output_file::flush() {
  write_out(pending_.view());
  pending_.clear();
}

PENSTOCK_INLINE void output_file::write_out(bytes_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(opened_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw failure("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

PENSTOCK_INLINE error output_file::failure(std::string_view doing) const {
  const int code = errno;
  return error(errc::io, {"cannot ", doing, ": ", std::generic_category().message(code)}).in_file(path_);
}

}  // namespace penstock::inline v0_1::detail
