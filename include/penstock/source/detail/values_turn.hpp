// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/source/detail/output_file.hpp>
#include <penstock/source/detail/unpacked_copy.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// The right to make one file: one at a time, of all threads and processes of the machine. Ends with the
/// process, however that ends. The file appears by renaming, so that without locks, which some file systems
/// do not have, work would be done twice, and no more.
template <class = void>
class basic_making_turn {
 public:
  /// Waits for the others.
  explicit basic_making_turn(const std::string& path) : path_(path), lock_(path + ".lock") {
    do {
      opened_ = tar::owned_descriptor(::open(lock_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
      if (opened_.get() < 0) {
        const int code = errno;
        throw error(errc::io, {"cannot create: ", std::generic_category().message(code),
                               "; name a file in a folder that may be written"})
            .in_file(lock_);
      }
      int locked = 0;
      while ((locked = ::flock(opened_.get(), LOCK_EX)) != 0 && errno == EINTR) {
      }
      if (locked != 0) break;
      // who had the turn before has removed the file, and somebody may lock a new one
    } while (!still_there());
    remove_leftovers();
  }
  basic_making_turn(const basic_making_turn&) = delete;
  basic_making_turn& operator=(const basic_making_turn&) = delete;
  ~basic_making_turn() { ::unlink(lock_.c_str()); }

 private:
  [[nodiscard]] bool still_there() const noexcept {
    struct stat ours {
    }, named{};
    return ::fstat(opened_.get(), &ours) == 0 && ::stat(lock_.c_str(), &named) == 0 &&
           ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
  }
  void remove_leftovers() const {
    const std::string folder = tar::folder_of(path_), start = tar::name_of(path_) + ".tmp-";
    const std::unique_ptr<DIR, int (*)(DIR*)> listed(::opendir(folder.c_str()), &::closedir);
    if (!listed) return;
    while (const dirent* const entry = ::readdir(listed.get())) {
      const std::string name(static_cast<const char*>(entry->d_name));
      if (name.starts_with(start)) ::unlink((folder + "/" + name).c_str());
    }
  }

  std::string path_, lock_;
  tar::owned_descriptor opened_;
};
using making_turn = basic_making_turn<>;

}  // namespace detail
}  // namespace penstock::inline v0_1
