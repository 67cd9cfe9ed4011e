// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/detail/mapping.hpp>

#include <penstock/core/to_size.hpp>
#include <penstock/storage/detail/paths.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace penstock::inline v0_1 {
namespace detail::files {

PENSTOCK_INLINE error changed_while_mapped(const std::string& path, std::uint64_t offset) {
  return error(errc::io, "the file was cut off or changed while it was mapped; open the dataset again")
      .in_file(path)
      .at_offset(offset);
}

PENSTOCK_INLINE mapping::mapping(int opened, const object_signature& signature, const std::string& path,
                                 bool guarded)
    : signature_(signature) {
  if (signature.size == 0) return;
  const auto length = static_cast<std::size_t>(signature.size);
  void* const where = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, opened, 0);
  if (where == MAP_FAILED) throw failure("map the file", path, errno);
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
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), detail::to_size(signature_.size));
}

PENSTOCK_INLINE void mapping::will_need(std::uint64_t offset, std::uint64_t size) const noexcept {
  if (offset >= signature_.size) return;
  const std::uint64_t end = size > signature_.size - offset ? signature_.size : offset + size;
  const std::uint64_t begin = offset - offset % page();
  ::madvise(const_cast<std::byte*>(data_) + begin, detail::to_size(end - begin), MADV_WILLNEED);
}
PENSTOCK_INLINE void mapping::advise(int advice) const noexcept {
  if (data_ != nullptr)
    ::madvise(const_cast<std::byte*>(data_), static_cast<std::size_t>(signature_.size), advice);
}

PENSTOCK_INLINE std::uint64_t mapping::page() noexcept {
  static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace detail::files
}  // namespace penstock::inline v0_1
