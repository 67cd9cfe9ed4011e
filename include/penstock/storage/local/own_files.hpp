// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/local/paths.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

/// Folders that processes of one user share through files and locks of bytes. For bodies, not for headers.
namespace penstock::inline v0_1 {
namespace detail {

enum class byte_lock : short { none = F_UNLCK, shared = F_RDLCK, exclusive = F_WRLCK };

[[nodiscard]] inline struct flock lock_of_byte(std::uint64_t byte, byte_lock how) noexcept {
  struct flock what {};
  what.l_type = static_cast<short>(how);
  what.l_whence = SEEK_SET;
  what.l_start = static_cast<off_t>(byte);
  what.l_len = 1;
  return what;
}

/// Locks a byte of an open file, which need not be there, or lets it go. The lock belongs to the open file:
/// it does not keep its own threads apart, and the system takes it away when the file is closed, so also when
/// its process ends. Returns 0, or an errno value: EAGAIN or EACCES if another open file has it.
inline int try_lock_byte(int opened, std::uint64_t byte, byte_lock how) noexcept {
  struct flock what = lock_of_byte(byte, how);
  int result = 0;
  do result = ::fcntl(opened, F_OFD_SETLK, &what);
  while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}
inline bool lock_byte(int opened, std::uint64_t byte, byte_lock how) noexcept {
  return try_lock_byte(opened, byte, how) == 0;
}

/// Whether another open file has a lock of this byte, or that cannot be found out.
[[nodiscard]] inline bool is_locked(int opened, std::uint64_t byte) noexcept {
  struct flock what = lock_of_byte(byte, byte_lock::exclusive);
  return ::fcntl(opened, F_OFD_GETLK, &what) != 0 || what.l_type != F_UNLCK;
}

}  // namespace detail

namespace detail::files {

[[nodiscard]] inline std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

[[nodiscard]] inline error folder_failure(std::string_view doing, std::string_view called,
                                          const std::string& path) {
  const int code = errno;
  return failure(text({doing, called}), path, code);
}
/// A folder that was just opened, or could not be, which errors call `called`. Throws errc::argument if it is
/// another user's, or others may write to it.
[[nodiscard]] inline descriptor own_folder(descriptor opened, const std::string& path,
                                           std::string_view called) {
  struct stat status {};
  if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0) throw folder_failure("open ", called, path);
  if (status.st_uid != ::geteuid())
    throw error(errc::argument, {called, " belongs to user ", status.st_uid, ", and this process is of user ",
                                 ::geteuid(), "; give each user a folder of its own"})
        .in_file(path);
  if ((status.st_mode & 022) != 0)
    throw error(errc::argument,
                {"others may write to ", called, "; forbid it with `chmod go-w`, or give another folder"})
        .in_file(path);
  return opened;
}
/// Opens the folder `name` in another one, or makes it.
[[nodiscard]] inline descriptor open_own_folder(int in, const std::string& name, const std::string& path,
                                                std::string_view called) {
  if (::mkdirat(in, name.c_str(), 0700) != 0 && errno != EEXIST) throw folder_failure("make ", called, path);
  return own_folder(descriptor(::openat(in, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), path, called);
}
/// With the folders that it is in.
[[nodiscard]] inline descriptor open_own_folder(const std::string& path, std::string_view called) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw folder_failure("make ", called, path);
  return own_folder(descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), path, called);
}

/// Writes from an offset on, as far as it goes: `done` bytes, and an errno value if that is not all.
struct written {
  std::size_t done = 0;
  int code = 0;
};
[[nodiscard]] inline written write_at(int opened, std::uint64_t offset, bytes_view bytes) noexcept {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote =
        ::pwrite(opened, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return {done, wrote < 0 ? errno : ENOSPC};
    done += static_cast<std::size_t>(wrote);
  }
  return {done, 0};
}

/// Called in the child of a fork, to close files there: their locks belong to open files, and the child would
/// keep those of a parent that dies.
class in_child_of_fork : unmovable {
 public:
  using call_type = void (*)(void* self) noexcept;

  ~in_child_of_fork() {
    if (self_ == nullptr) return;
    const std::scoped_lock lock(process().mutex);
    std::erase(process().all, this);
  }
  void call(void* self, call_type what) {
    const std::scoped_lock lock(process().mutex);
    if (!std::exchange(process().asks, true))
      (void)::pthread_atfork([] { process().mutex.lock(); }, [] { process().mutex.unlock(); }, &in_child);
    process().all.push_back(this);
    self_ = self;
    what_ = what;
  }

 private:
  struct registry {
    std::mutex mutex;
    bool asks = false;
    std::vector<in_child_of_fork*> all;
  };
  // Never destroyed: a process may fork while it ends.
  static registry& process() {
    static registry* const all = new registry;
    return *all;
  }
  static void in_child() {
    for (const in_child_of_fork* const one : process().all) one->what_(one->self_);
    process().mutex.unlock();
  }

  void* self_ = nullptr;
  call_type what_ = nullptr;
};

}  // namespace detail::files
}  // namespace penstock::inline v0_1
