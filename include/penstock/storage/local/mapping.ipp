// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/local/mapping.hpp>

#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/local/paths.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#if defined(__linux__)
#include <sys/statfs.h>
#endif
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

namespace penstock::inline v0_1::detail::files {

PENSTOCK_INLINE void throw_changed_while_mapped(const std::string& path, std::uint64_t offset) {
  throw error(errc::io, "the file was cut off or changed while it was mapped; open the dataset again")
      .in_file(path)
      .at_offset(offset);
}
PENSTOCK_INLINE mapping_counts count_mappings() noexcept {
  // Without a stream or a string: there may be no memory to have, either.
  char some[4096];
  const auto read_all = [&](const char* path, auto&& take) {
    const descriptor opened(::open(path, O_RDONLY | O_CLOEXEC));
    for (ssize_t got = 0; opened.get() >= 0 && (got = ::read(opened.get(), some, sizeof(some))) > 0;)
      take(std::string_view(some, static_cast<std::size_t>(got)));
  };
  mapping_counts made;
  read_all("/proc/sys/vm/max_map_count", [&](std::string_view text) {
    std::from_chars(text.data(), text.data() + text.size(), made.maximum);
  });
  read_all("/proc/self/maps", [&](std::string_view text) {
    made.there += static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  });
  return made;
}

PENSTOCK_INLINE error mapping_failure(const std::string& path, std::uint64_t bytes, int code,
                                      mapping_counts counts) {
  if (code != ENOMEM) return failure("map the file", path, code);
  constexpr std::uint64_t near = 16;  // other threads may have made or removed some
  const std::string_view instead = "give the source a storage that reads, such as file(...), if it takes one";
  if (counts.maximum != 0 && counts.there + near >= counts.maximum)
    return error(errc::io, {"cannot map the file: the process has ", counts.there,
                            " mappings, one for each file, and the system allows ", counts.maximum,
                            "; raise that with `sysctl vm.max_map_count=", 4 * counts.maximum,
                            "`, put the data into fewer files, or ", instead})
        .in_file(path);
  return error(errc::io, {"cannot map the file: there are no ", bytes,
                          " bytes of addresses left for it; raise `ulimit -v`, or ", instead})
      .in_file(path);
}

PENSTOCK_INLINE mapping::mapping(int opened, const object_version& version, const std::string& path,
                                 bool guarded)
    : version_(version) {
  if (version.size == 0) return;
  const auto length = static_cast<std::size_t>(version.size);
  void* const where = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, opened, 0);
  if (where == MAP_FAILED) {
    const int code = errno;
    throw mapping_failure(path, version.size, code, code == ENOMEM ? count_mappings() : mapping_counts());
  }
  data_ = static_cast<const std::byte*>(where);
  try {
    if (guarded) guard_ = sigbus_guard({data_, length});
  } catch (...) {
    ::munmap(where, length);
    throw;
  }
}
PENSTOCK_INLINE mapping::~mapping() {
  guard_ = sigbus_guard();  // before the addresses can be reused
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), detail::to_size(version_.size));
}

PENSTOCK_INLINE void mapping::will_need(std::uint64_t offset, std::uint64_t size) const noexcept {
  if (offset >= version_.size) return;
  const std::uint64_t end = size > version_.size - offset ? version_.size : offset + size;
  const std::uint64_t begin = offset - offset % page();
  ::madvise(const_cast<std::byte*>(data_) + begin, detail::to_size(end - begin), MADV_WILLNEED);
}
PENSTOCK_INLINE void mapping::advise(int advice) const noexcept {
  if (data_ != nullptr)
    ::madvise(const_cast<std::byte*>(data_), static_cast<std::size_t>(version_.size), advice);
}

PENSTOCK_INLINE std::uint64_t mapping::page() noexcept {
  static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

#if defined(__linux__)
/// Whether a file system exists only in memory; older kernels do not answer for its files.
PENSTOCK_INLINE bool lives_in_memory(int opened) noexcept {
  struct statfs of {};
  constexpr auto tmpfs = 0x01021994, ramfs = static_cast<int>(0x858458f6u);
  return ::fstatfs(opened, &of) == 0 &&
         (static_cast<int>(of.f_type) == tmpfs || static_cast<int>(of.f_type) == ramfs);
}
#endif

PENSTOCK_INLINE bool is_in_memory([[maybe_unused]] int opened, [[maybe_unused]] std::uint64_t size,
                                  [[maybe_unused]] std::uint64_t draw) noexcept {
#if defined(RWF_NOWAIT)
  constexpr std::uint64_t places = 16;
  if (size < places) return false;
  unsigned missing = 0;
  std::byte one{};
  const iovec into{&one, 1};
  for (std::uint64_t i = 0; i < places && missing < 2; ++i) {
    // mincore and cachestat reveal nothing about files of other users
    const std::uint64_t part = size / places;
    const auto at = static_cast<off_t>(part * i + mix64(draw * places + i) % part);
    ssize_t got = 0;
    do got = ::preadv2(opened, &into, 1, at, RWF_NOWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno != EAGAIN) return lives_in_memory(opened);
    if (got < 1) ++missing;
  }
  return missing < 2;
#else
  return false;
#endif
}

}  // namespace penstock::inline v0_1::detail::files
