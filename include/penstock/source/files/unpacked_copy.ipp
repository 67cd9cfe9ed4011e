// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/unpacked_copy.hpp>

#include <penstock/core/fingerprint.hpp>
#include <penstock/source/files/hash_bytes.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE std::optional<object_version> version_of_file(const std::string& path) noexcept {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return object_version{static_cast<std::uint64_t>(status.st_size),
                        static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
                            static_cast<std::uint64_t>(status.st_mtim.tv_nsec)};
}

PENSTOCK_INLINE std::uint64_t ends_of_file(const std::string& path) noexcept {
  constexpr std::size_t part = 4096;
  const owned_descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0) return 0;
  const auto size = static_cast<std::size_t>(status.st_size), some = std::min(size, part);
  std::array<std::byte, 2 * part> ends{};
  if (!read_all(opened.get(), mutable_bytes(ends).first(some)) ||
      !read_all(opened.get(), mutable_bytes(ends).subspan(part, some), size - some))
    return 0;
  return checksum(ends) | 1;
}

PENSTOCK_INLINE std::array<std::byte, copy_record::size> copy_record::bytes() const noexcept {
  std::array<std::byte, size> to{};
  store_head(to, magic, version, {packed.size, packed.stamp, copy.size, copy.stamp, ends});
  return to;
}

PENSTOCK_INLINE std::optional<copy_record> copy_record::load(bytes_view from) noexcept {
  if (from.size() != size) return std::nullopt;
  const auto number = [from](std::size_t at) { return load_little<std::uint64_t>(from.data() + at); };
  const copy_record made{{number(16), number(24)}, {number(32), number(40)}, number(48)};
  const auto same = made.bytes();
  if (std::memcmp(same.data(), from.data(), size) != 0) return std::nullopt;
  return made;
}

PENSTOCK_INLINE std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

inline std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

PENSTOCK_INLINE std::string copy_path(const std::string& packed, const std::string& folder) {
  constexpr std::string_view ending = ".penstock-unpacked";
  if (folder.empty()) return packed + std::string(ending);
  const std::string own = folder_of(packed);
  const std::unique_ptr<char, void (*)(void*)> whole(::realpath(own.c_str(), nullptr), &std::free);
  penstock::fingerprint mark;
  mark.add("unpacked", whole ? std::string_view(whole.get()) : std::string_view(own));
  std::string part(16, '0');
  for (std::size_t i = 0; i < part.size(); ++i)
    part[i] = "0123456789abcdef"[mark.value() >> (60 - 4 * i) & 15];
  return detail::text({folder, "/", part, "/", base_name(packed), ending});
}

PENSTOCK_INLINE void remove_leftovers(const std::string& path) {
  const std::string folder = folder_of(path), start = base_name(path) + ".tmp-";
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(::opendir(folder.c_str()), &::closedir);
  if (!listed) return;
  while (const dirent* const entry = ::readdir(listed.get())) {
    const std::string name(static_cast<const char*>(entry->d_name));
    if (name.starts_with(start)) ::unlink((folder + "/" + name).c_str());
  }
}

PENSTOCK_INLINE int make_folders(const std::string& path) {
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    if (::mkdir(path.substr(0, end).c_str(), 0777) != 0 && errno != EEXIST) {
      const int code = errno;
      struct stat status {};
      if (::stat(path.substr(0, end).c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return code;
    }
  }
  return 0;
}

PENSTOCK_INLINE bool copy_is_current(int record, const std::string& copy, const packed_state& packed) {
  std::array<std::byte, copy_record::size> bytes{};
  if (!read_all(record, bytes)) return false;
  const auto said = copy_record::load(bytes);
  return said && said->packed == packed.version && version_of_file(copy) == said->copy &&
         (said->ends == 0 || said->ends == ends_of_file(packed.path));
}

PENSTOCK_INLINE bool copy_is_current(const std::string& copy, const packed_state& packed) {
  const owned_descriptor record(::open(record_path(copy).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return record.get() >= 0 && copy_is_current(record.get(), copy, packed);
}

PENSTOCK_INLINE copy_lock::copy_lock(std::string copy) : copy_(std::move(copy)) {
  const std::string name = record_path(copy_);
  opened_ = owned_descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
  if (opened_.get() < 0) throw failure("create", name);
  while (::flock(opened_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) throw failure("lock", name);
  }
}

PENSTOCK_INLINE bool copy_lock::current(const packed_state& packed) const {
  return copy_is_current(opened_.get(), copy_, packed);
}

PENSTOCK_INLINE void copy_lock::begin() const {
  if (::ftruncate(opened_.get(), 0) != 0) throw failure("write", record_path(copy_));
  remove_leftovers(copy_);
}

PENSTOCK_INLINE void copy_lock::finish(const copy_record& record) const {
  const owned_descriptor parent(::open(folder_of(copy_).c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (parent.get() >= 0) (void)::fsync(parent.get());
  const auto bytes = record.bytes();
  if (::pwrite(opened_.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()) ||
      ::fsync(opened_.get()) != 0) {
    throw failure("write", record_path(copy_));
  }
}

PENSTOCK_INLINE error copy_lock::failure(std::string_view doing, const std::string& path) {
  const int code = errno;
  return error(errc::io,
               {"cannot ", doing, " the record of an unpacked copy: ", std::generic_category().message(code),
                "; name a writable folder in unpacked_options::folder"})
      .in_file(path);
}

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
