// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/values_lock.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/files/unpacked_copy.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE making_lock::making_lock(const std::string& path) : lock_(path + ".lock") {
  do {
    opened_ = owned_descriptor(::open(lock_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
    if (opened_.get() < 0) {
      const int code = errno;
      throw error(errc::io, {"cannot create: ", std::generic_category().message(code),
                             "; name a file in a writable folder"})
          .in_file(lock_);
    }
    int locked = 0;
    while ((locked = ::flock(opened_.get(), LOCK_EX)) != 0 && errno == EINTR) {
    }
    if (locked != 0) break;
    // the previous holder removed this lock file, and another process may already lock a new one
  } while (!still_there());
  remove_leftovers(path);
}

PENSTOCK_INLINE making_lock::~making_lock() { ::unlink(lock_.c_str()); }

PENSTOCK_INLINE bool making_lock::still_there() const noexcept {
  struct stat ours {
  }, named{};
  return ::fstat(opened_.get(), &ours) == 0 && ::stat(lock_.c_str(), &named) == 0 &&
         ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
