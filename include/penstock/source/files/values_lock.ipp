// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/values_lock.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/files/unpacked_copy.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE making_lock::making_lock(const std::string& path) : path_(path), lock_(path + ".lock") {
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
  remove_leftovers();
}

PENSTOCK_INLINE making_lock::~making_lock() { ::unlink(lock_.c_str()); }

PENSTOCK_INLINE bool making_lock::still_there() const noexcept {
  struct stat ours {
  }, named{};
  return ::fstat(opened_.get(), &ours) == 0 && ::stat(lock_.c_str(), &named) == 0 &&
         ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

PENSTOCK_INLINE void making_lock::remove_leftovers() const {
  const std::string folder = folder_of(path_), start = base_name(path_) + ".tmp-";
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(::opendir(folder.c_str()), &::closedir);
  if (!listed) return;
  while (const dirent* const entry = ::readdir(listed.get())) {
    const std::string name(static_cast<const char*>(entry->d_name));
    if (name.starts_with(start)) ::unlink((folder + "/" + name).c_str());
  }
}

}  // namespace penstock::inline v0_1::detail
