// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/staged_object.hpp>
#include <penstock/storage/local/output_file.hpp>
#include <penstock/storage/local/own_files.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1::detail::staging {

using files::descriptor;
using files::failure;

/// What there is of an object.
struct found_copy {
  bool whole = false;
  std::uint64_t part = 0;  ///< bytes that can be gone on with
};

/// A folder of complete files under their names, and a folder in it, `.penstock-staged`, of what belongs to
/// them: a record of each, the files that are not complete, and a file whose bytes are locked.
///
/// Whoever changes what belongs to an object has the lock of its byte, which the system takes away when the
/// process ends, however it ends.
/// Threads: any number, each with another object.
class staged_folder {
 public:
  /// Opens the folder, or makes it. Throws as `stage_to` says.
  explicit staged_folder(std::string path) : path_(files::without_slashes(std::move(path))) {
    folder_ = files::open_own_folder(path_, called);
    const std::string kept_path = path_ + "/.penstock-staged", lock_path = kept_path + "/lock";
    kept_ = files::open_own_folder(folder_.get(), ".penstock-staged", kept_path, called);
    lock_ = descriptor(::openat(kept_.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (lock_.get() < 0) throw failure("open the file of the locks", lock_path, errno);
    if (!lock_byte(lock_.get(), 0, byte_lock::shared))
      throw error(errc::argument,
                  "this file system has no locks that belong to open files; stage to a local disk")
          .in_file(lock_path);
    forks_.call(&lock_, [](void* lock) noexcept { *static_cast<descriptor*>(lock) = descriptor(); });
  }

  [[nodiscard]] std::string path_of(const staged_object& what) const { return path_ + '/' + what.file; }
  /// Bytes that the file system has left for this user.
  [[nodiscard]] std::uint64_t available() const {
    struct statvfs status {};
    if (::fstatvfs(folder_.get(), &status) != 0) throw failure("ask for the room on the disk", path_, errno);
    return std::uint64_t{status.f_bavail} * status.f_frsize;
  }
  [[nodiscard]] error no_room(std::uint64_t needed, std::string_view file) const {
    return error(errc::io, {"the disk has ", available(), " bytes free, and ", needed,
                            " more are needed; make room, or stage to another disk"})
        .in_file(file.empty() ? path_ : file);
  }

  [[nodiscard]] bool try_lock(const staged_object& what) const noexcept {
    return lock_byte(lock_.get(), lock_byte_of(what), byte_lock::exclusive);
  }
  void unlock(const staged_object& what) const noexcept {
    (void)lock_byte(lock_.get(), lock_byte_of(what), byte_lock::none);
  }

  /// Looks at what is there. Throws errc::argument for a file that is not a copy of this object. `resumes`:
  /// whether a part may be gone on with. Needs no lock.
  [[nodiscard]] found_copy look(const staged_object& what, bool resumes) const {
    // Another process may give the file its name between two looks; its record is there before that.
    constexpr int max_tries = 3;
    for (int tries = 1;; ++tries) {
      const std::optional<file_facts> file = facts_of_file(folder_.get(), what.file, 0);
      if (!file && errno != ENOENT && errno != ENOTDIR) throw failed(what, "look at the file");
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

  // ---- who has the lock of the object

  /// The unfinished file of an object, with its first `from` bytes, or a new one.
  [[nodiscard]] descriptor open_part(const staged_object& what, std::uint64_t from) const {
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    if (from == 0) {
      // What was there is of another object, and must be gone before the record says that it is of this one.
      discard_part(what);
      const record about = begin_record(what);
      write_record(what, about, about.before.has_value());
      flags |= O_CREAT | O_EXCL;
    }
    descriptor opened(::openat(kept_.get(), kept_file(what, ".part").c_str(), flags, 0600));
    if (opened.get() < 0) throw failed(what, "open the unfinished copy of the file");
    return opened;
  }
  void write(const staged_object& what, int part, std::uint64_t offset, bytes_view bytes) const {
    const auto [done, code] = files::write_at(part, offset, bytes);
    if (code != 0) throw failed_write(what, offset + done, bytes.size() - done, code);
    begin_flush(part, offset, bytes.size());
  }
  /// Copies from a file, inside the system. Returns how many bytes, or nothing if that cannot be done here.
  [[nodiscard]] std::optional<std::uint64_t> copy(const staged_object& what, int from, int part,
                                                  std::uint64_t offset, std::uint64_t size) const {
    ssize_t copied = 0;
    do {
      auto in = static_cast<off_t>(offset), out = in;
      copied = ::copy_file_range(from, &in, part, &out, to_size(size), 0);
    } while (copied < 0 && errno == EINTR);
    if (copied < 0 && (errno == ENOSPC || errno == EDQUOT)) throw failed_write(what, offset, size, errno);
    if (copied <= 0) return std::nullopt;
    begin_flush(part, offset, static_cast<std::uint64_t>(copied));
    return static_cast<std::uint64_t>(copied);
  }
  /// Reads what `open_part` found there.
  void read(const staged_object& what, int part, std::uint64_t offset, mutable_bytes into) const {
    errno = EIO;  // of a file that is too short
    if (!read_all(part, into, offset))
      throw failed(what, "read the unfinished copy of the file").at_offset(offset);
  }
  void finish(const staged_object& what, const descriptor& part) const {
    if (::fsync(part.get()) != 0) throw failed_write(what, what.version.size, 0, errno);
    const std::optional<file_facts> facts = facts_of_file(part.get(), "", AT_EMPTY_PATH);
    if (!facts) throw failed(what, "look at the file");
    descriptor parent;
    int in = folder_.get();
    std::string_view rest = what.file;
    for (std::size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
      parent = files::open_own_folder(in, std::string(rest.substr(0, slash)), path_of(what), called);
      in = parent.get();
      rest.remove_prefix(slash + 1);
    }
    record about = begin_record(what);
    about.last = whole_copy{what.version, *facts};
    write_record(what, about, true);
    if (::renameat(kept_.get(), kept_file(what, ".part").c_str(), in, std::string(rest).c_str()) != 0 ||
        ::fsync(in) != 0)
      throw failed(what, "give the finished file its name");
  }
  void discard_part(const staged_object& what) const {
    if (::unlinkat(kept_.get(), kept_file(what, ".part").c_str(), 0) != 0 && errno != ENOENT)
      throw failed(what, "remove the unfinished copy of the file");
  }

 private:
  static constexpr std::string_view called = "the folder";

  [[nodiscard]] static std::uint64_t number_of(const staged_object& what) noexcept {
    return fingerprint().add(std::string_view(what.file)).value();
  }
  [[nodiscard]] static std::string kept_file(const staged_object& what, const char* suffix) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::uint64_t number = number_of(what);
    std::string name(16, '0');
    for (std::size_t i = name.size(); i-- > 0; number >>= 4) name[i] = digits[number & 15];
    return name + suffix;
  }
  [[nodiscard]] static std::uint64_t lock_byte_of(const staged_object& what) noexcept {
    return 1 + (number_of(what) >> 2);
  }
  [[nodiscard]] static std::optional<file_facts> facts_of_file(int in, const std::string& name,
                                                               int flags) noexcept {
    struct statx status {};
    if (::statx(in, name.c_str(), AT_SYMLINK_NOFOLLOW | flags, STATX_BASIC_STATS | STATX_BTIME, &status) != 0)
      return std::nullopt;
    const auto nanoseconds = [](const struct statx_timestamp& at) {
      return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000u + at.tv_nsec;
    };
    return file_facts{.size = status.stx_size,
                      .changed = nanoseconds(status.stx_mtime),
                      .inode = status.stx_ino,
                      .born = (status.stx_mask & STATX_BTIME) != 0 ? nanoseconds(status.stx_btime) : 0,
                      .regular = S_ISREG(status.stx_mode)};
  }
  [[nodiscard]] static std::string boot_of_machine() {
    const descriptor opened(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    std::array<char, 64> text{};
    const ssize_t got = opened.get() < 0 ? 0 : ::read(opened.get(), text.data(), text.size());
    std::string name(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return name;
  }

  [[nodiscard]] error failed(const staged_object& what, std::string_view doing) const {
    const int code = errno;
    return failure(doing, path_of(what), code);
  }
  [[nodiscard]] error failed_write(const staged_object& what, std::uint64_t offset, std::uint64_t size,
                                   int code) const {
    if (code == ENOSPC || code == EDQUOT)
      return no_room(what.version.size - std::min(offset, what.version.size), path_of(what))
          .at_offset(offset);
    return failure(text({"write ", size, " bytes"}), path_of(what), code).at_offset(offset);
  }
  /// Begins to write to the disk, so that the flush at the end has little left to do.
  static void begin_flush(int part, std::uint64_t offset, std::uint64_t size) noexcept {
    (void)::sync_file_range(part, static_cast<off_t>(offset), static_cast<off_t>(size),
                            SYNC_FILE_RANGE_WRITE);
  }

  [[nodiscard]] std::optional<record> read_record(const staged_object& what) const {
    const descriptor opened(
        ::openat(kept_.get(), kept_file(what, ".record").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (opened.get() < 0 && errno == ENOENT) return std::nullopt;
    struct stat status {};
    if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0)
      throw failed(what, "open the record of the file");
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    errno = EIO;
    if (!read_all(opened.get(), std::as_writable_bytes(std::span(text))))
      throw failed(what, "read the record of the file");
    std::optional<record> found = parse_record(text);
    if (found && found->file != what.file) found.reset();
    return found;
  }
  void write_record(const staged_object& what, const record& about, bool flush) const {
    const std::string name = kept_file(what, ".record"), coming = kept_file(what, ".new");
    const descriptor opened(
        ::openat(kept_.get(), coming.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (opened.get() < 0) throw failed(what, "make the record of the file");
    write(what, opened.get(), 0, bytes_of(to_text(about)));
    if ((flush && ::fsync(opened.get()) != 0) ||
        ::renameat(kept_.get(), coming.c_str(), kept_.get(), name.c_str()) != 0 ||
        (flush && ::fsync(kept_.get()) != 0))
      throw failed(what, "write the record of the file");
  }
  /// The record for what comes: with the copy that is there, if it is one.
  [[nodiscard]] record begin_record(const staged_object& what) const {
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

  std::string path_;
  std::string boot_ = boot_of_machine();  // empty if it is not known
  descriptor folder_, kept_, lock_;
  files::in_child_of_fork forks_;
};

}  // namespace penstock::inline v0_1::detail::staging
