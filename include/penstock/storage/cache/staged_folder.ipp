// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/staged_folder.hpp>

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/local/file_lock.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::staging {

using files::failure;

inline constexpr const char* kept_name = ".penstock-staged";

/// Closes the files of locks in the child of a fork: it would keep the locks of a parent that dies.
class staging_forks {
 public:
  static void join(descriptor& one) {
    staging_forks& all = process();
    const std::scoped_lock lock(all.mutex_);
    if (!std::exchange(all.asks_, true))
      (void)::pthread_atfork([] { process().mutex_.lock(); }, [] { process().mutex_.unlock(); }, &in_child);
    all.open_.push_back(&one);
  }
  static void leave(descriptor& one) noexcept {
    staging_forks& all = process();
    const std::scoped_lock lock(all.mutex_);
    std::erase(all.open_, &one);
  }

 private:
  // Never destroyed: a process may fork while it ends.
  static staging_forks& process() {
    static staging_forks* const all = new staging_forks;
    return *all;
  }
  static void in_child() {
    for (descriptor* const one : process().open_) *one = descriptor();
    process().mutex_.unlock();
  }
  std::mutex mutex_;
  bool asks_ = false;
  std::vector<descriptor*> open_;
};

PENSTOCK_INLINE std::string kept_file(const staged_object& what, const char* suffix) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::uint64_t number = fingerprint().add(std::string_view(what.file)).value();
  std::string name(16, '0');
  for (std::size_t i = name.size(); i-- > 0; number >>= 4) name[i] = digits[number & 15];
  return name + suffix;
}
PENSTOCK_INLINE std::uint64_t lock_byte_of(const staged_object& what) noexcept {
  return fingerprint().add(std::string_view(what.file)).value() >> 2;
}

PENSTOCK_INLINE std::optional<file_facts> facts_of_file(int in, const std::string& name, int flags) noexcept {
  struct statx status {};
  if (::statx(in, name.c_str(), AT_SYMLINK_NOFOLLOW | flags, STATX_BASIC_STATS | STATX_BTIME, &status) != 0)
    return std::nullopt;
  const auto nanoseconds = [](const struct statx_timestamp& at) {
    return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000u + at.tv_nsec;
  };
  file_facts found;
  found.size = status.stx_size;
  found.changed = nanoseconds(status.stx_mtime);
  found.inode = status.stx_ino;
  if ((status.stx_mask & STATX_BTIME) != 0) found.born = nanoseconds(status.stx_btime);
  found.regular = S_ISREG(status.stx_mode);
  return found;
}

PENSTOCK_INLINE std::string boot_of_machine() {
  const descriptor opened(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  const ssize_t got = opened.get() < 0 ? 0 : ::read(opened.get(), text.data(), text.size());
  std::string name(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

PENSTOCK_INLINE descriptor staged_folder::open_folder(int in, const std::string& name,
                                                      const std::string& path) {
  if (::mkdirat(in, name.c_str(), 0700) != 0 && errno != EEXIST)
    throw failure("make the folder", path, errno);
  descriptor opened(::openat(in, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0) throw failure("open the folder", path, errno);
  if (status.st_uid != ::geteuid())
    throw error(errc::argument,
                {"the folder belongs to user ", status.st_uid, ", and this process is of user ", ::geteuid(),
                 "; give each user a folder of its own"})
        .in_file(path);
  if ((status.st_mode & 022) != 0)
    throw error(errc::argument,
                "others may write to the folder; forbid it with `chmod go-w`, or give another folder")
        .in_file(path);
  return opened;
}

PENSTOCK_INLINE staged_folder::staged_folder(std::string path)
    : path_(std::move(path)), boot_(boot_of_machine()) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), failed);
  folder_ = open_folder(AT_FDCWD, path_, path_);
  const std::string kept_path = path_ + '/' + kept_name, lock_path = kept_path + "/lock";
  kept_ = open_folder(folder_.get(), kept_name, kept_path);
  lock_ = descriptor(::openat(kept_.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock_.get() < 0) throw failure("open the file of the locks", lock_path, errno);
  const int code = try_lock_byte(lock_.get(), 0, byte_lock::shared);
  if (code != 0)
    throw error(errc::argument,
                "this file system has no locks that belong to open files; stage to a local disk")
        .in_file(lock_path);
  staging_forks::join(lock_);
}
PENSTOCK_INLINE staged_folder::~staged_folder() { staging_forks::leave(lock_); }

PENSTOCK_INLINE std::uint64_t staged_folder::available() const {
  struct statvfs status {};
  if (::fstatvfs(folder_.get(), &status) != 0) throw failure("ask for the room on the disk", path_, errno);
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}
PENSTOCK_INLINE error staged_folder::no_room(std::uint64_t needed, std::string_view file) const {
  return error(errc::io, {"the disk has ", available(), " bytes free, and ", needed,
                          " more are needed; make room, or stage to another disk"})
      .in_file(file.empty() ? path_ : file);
}

PENSTOCK_INLINE bool staged_folder::try_lock(const staged_object& what) const noexcept {
  return lock_byte(lock_.get(), 1 + lock_byte_of(what), byte_lock::exclusive);
}
PENSTOCK_INLINE void staged_folder::unlock(const staged_object& what) const noexcept {
  (void)lock_byte(lock_.get(), 1 + lock_byte_of(what), byte_lock::none);
}

PENSTOCK_INLINE found_copy staged_folder::look(const staged_object& what, bool resumes) const {
  // Another process may give the file its name between two looks; its record is there before that.
  constexpr int max_tries = 3;
  for (int tries = 1;; ++tries) {
    const std::optional<file_facts> file = facts_of_file(folder_.get(), what.file, 0);
    if (!file && errno != ENOENT && errno != ENOTDIR) throw failure("look at the file", path_of(what), errno);
    const std::optional<record> about = read_record(what);
    found_copy found;
    if (file) {
      const whole_copy* const copy = about && file->regular ? about->copy_of(*file) : nullptr;
      if (copy == nullptr && tries < max_tries) continue;
      if (copy == nullptr)
        throw error(errc::argument,
                    "there is a file of this name that was not staged; move it away, or stage to "
                    "another folder")
            .in_file(path_of(what));
      if (about->object != what.known_as)
        throw error(errc::argument, {"this file was staged from ", about->object, ", and not from ",
                                     what.known_as, "; stage to another folder"})
            .in_file(path_of(what));
      found.whole = copy->intact(*file) && copy->of == what.version;
    }
    if (!found.whole && resumes && about && about->object == what.known_as && about->part == what.version &&
        !boot_.empty() && about->boot == boot_) {
      const auto part = facts_of_file(kept_.get(), kept_file(what, ".part"), 0);
      if (part && part->regular && part->size <= what.version.size) found.part = part->size;
    }
    return found;
  }
}

PENSTOCK_INLINE std::optional<record> staged_folder::read_record(const staged_object& what) const {
  const descriptor opened(
      ::openat(kept_.get(), kept_file(what, ".record").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (opened.get() < 0 && errno == ENOENT) return std::nullopt;
  if (opened.get() < 0) throw failure("open the record of the file", path_of(what), errno);
  std::string text;
  std::array<char, 4096> some{};
  for (;;) {
    const ssize_t got = ::read(opened.get(), some.data(), some.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw failure("read the record of the file", path_of(what), errno);
    if (got == 0) break;
    text.append(some.data(), static_cast<std::size_t>(got));
  }
  std::optional<record> found = parse_record(text);
  if (found && found->file != what.file) found.reset();
  return found;
}

PENSTOCK_INLINE void staged_folder::write_record(const staged_object& what, const record& about,
                                                 bool flush) const {
  const std::string name = kept_file(what, ".record"), coming = kept_file(what, ".new");
  const descriptor opened(
      ::openat(kept_.get(), coming.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (opened.get() < 0) throw failure("make the record of the file", path_of(what), errno);
  const std::string text = to_text(about);
  write(what, opened.get(), 0, bytes_of(text));
  if ((flush && ::fsync(opened.get()) != 0) ||
      ::renameat(kept_.get(), coming.c_str(), kept_.get(), name.c_str()) != 0 ||
      (flush && ::fsync(kept_.get()) != 0))
    throw failure("write the record of the file", path_of(what), errno);
}

PENSTOCK_INLINE record staged_folder::begin_record(const staged_object& what) const {
  record made;
  made.object = what.known_as;
  made.file = what.file;
  const std::optional<file_facts> file = facts_of_file(folder_.get(), what.file, 0);
  if (const std::optional<record> about = read_record(what); file && about)
    if (const whole_copy* const copy = about->copy_of(*file)) made.before = *copy;
  made.part = what.version;
  made.boot = boot_;
  return made;
}

PENSTOCK_INLINE descriptor staged_folder::open_part(const staged_object& what, std::uint64_t from) const {
  const std::string name = kept_file(what, ".part");
  int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  if (from == 0) {
    // What was there is of another object, and must be gone before the record says that it is of this one.
    discard_part(what);
    const record about = begin_record(what);
    write_record(what, about, about.before.has_value());
    flags |= O_CREAT | O_EXCL;
  }
  descriptor opened(::openat(kept_.get(), name.c_str(), flags, 0600));
  if (opened.get() < 0) throw failure("open the unfinished copy of the file", path_of(what), errno);
  return opened;
}

PENSTOCK_INLINE error staged_folder::failed_write(const staged_object& what, std::uint64_t offset,
                                                  std::uint64_t size, int code) const {
  if (code == ENOSPC || code == EDQUOT)
    return no_room(what.version.size - std::min(offset, what.version.size), path_of(what)).at_offset(offset);
  return failure(text({"write ", size, " bytes"}), path_of(what), code).at_offset(offset);
}

PENSTOCK_INLINE void staged_folder::write(const staged_object& what, int part, std::uint64_t offset,
                                          bytes_view bytes) const {
  const std::uint64_t begin = offset, size = bytes.size();
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(part, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) throw failed_write(what, offset, bytes.size(), wrote < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  // Begins to write to the disk, so that the flush at the end has little left to do.
  (void)::sync_file_range(part, static_cast<off_t>(begin), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE);
}

PENSTOCK_INLINE std::optional<std::uint64_t> staged_folder::copy(const staged_object& what, int from,
                                                                 int part, std::uint64_t offset,
                                                                 std::uint64_t size) const {
  for (;;) {
    auto in = static_cast<off_t>(offset);
    off_t out = in;
    const ssize_t copied = ::copy_file_range(from, &in, part, &out, to_size(size), 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && (errno == ENOSPC || errno == EDQUOT)) throw failed_write(what, offset, size, errno);
    if (copied <= 0) return std::nullopt;
    (void)::sync_file_range(part, static_cast<off_t>(offset), copied, SYNC_FILE_RANGE_WRITE);
    return static_cast<std::uint64_t>(copied);
  }
}

PENSTOCK_INLINE void staged_folder::read(const staged_object& what, int part, std::uint64_t offset,
                                         mutable_bytes into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(part, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw failure("read the unfinished copy of the file", path_of(what), got < 0 ? errno : EIO)
          .at_offset(offset);
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

PENSTOCK_INLINE void staged_folder::finish(const staged_object& what, const descriptor& part) const {
  if (::fsync(part.get()) != 0) throw failed_write(what, what.version.size, 0, errno);
  const std::optional<file_facts> facts = facts_of_file(part.get(), "", AT_EMPTY_PATH);
  if (!facts) throw failure("look at the file", path_of(what), errno);
  descriptor parent;
  int in = folder_.get();
  std::string_view rest = what.file;
  for (std::size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
    parent = open_folder(in, std::string(rest.substr(0, slash)), path_of(what));
    in = parent.get();
    rest.remove_prefix(slash + 1);
  }
  record about = begin_record(what);
  about.last = whole_copy{what.version, *facts};
  write_record(what, about, true);
  if (::renameat(kept_.get(), kept_file(what, ".part").c_str(), in, std::string(rest).c_str()) != 0 ||
      ::fsync(in) != 0)
    throw failure("give the finished file its name", path_of(what), errno);
}

PENSTOCK_INLINE void staged_folder::discard_part(const staged_object& what) const {
  if (::unlinkat(kept_.get(), kept_file(what, ".part").c_str(), 0) != 0 && errno != ENOENT)
    throw failure("remove the unfinished copy of the file", path_of(what), errno);
}

}  // namespace detail::staging
}  // namespace penstock::inline v0_1
