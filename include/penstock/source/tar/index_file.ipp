// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/index_file.hpp>

#include <penstock/source/detail/output_file.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1 {
namespace detail::tar {

PENSTOCK_INLINE std::string index_path(const std::string& shard) { return shard + ".penstock-index"; }

PENSTOCK_INLINE const char* to_text(index_state state) noexcept {
  switch (state) {
    case index_state::good:
      return "is in order";
    case index_state::missing:
      return "does not exist";
    case index_state::unreadable:
      return "cannot be read";
    case index_state::damaged:
      return "is damaged, or was written by another version";
    case index_state::stale:
      return "was made for another state of the shard";
  }
  return "";
}

PENSTOCK_INLINE bool read_all(int from, mutable_bytes into) noexcept {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(from, into.data() + done, into.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

// An open index file and its size.
struct opened_index {
  owned_descriptor number;
  std::uint64_t size = 0;
  index_state state = index_state::good;

  explicit opened_index(const std::string& path)
      : number(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (number.get() < 0) {
      state = errno == ENOENT || errno == ENOTDIR ? index_state::missing : index_state::unreadable;
    } else if (::fstat(number.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
      state = index_state::unreadable;
    } else {
      size = static_cast<std::uint64_t>(status.st_size);
    }
  }
};

PENSTOCK_INLINE std::pair<index_state, index_header> peek_index(const std::string& shard,
                                                                object_signature expected) {
  const opened_index file_of_index(index_path(shard));
  if (file_of_index.state != index_state::good) return {file_of_index.state, {}};
  std::array<std::byte, index_header::size> head;
  if (file_of_index.size < head.size() || !read_all(file_of_index.number.get(), head))
    return {index_state::damaged, {}};
  const auto header = index_header::load(head);
  if (!header || header->file_size() != file_of_index.size) return {index_state::damaged, {}};
  if (object_signature{header->shard_size, header->shard_stamp} != expected)
    return {index_state::stale, *header};
  return {index_state::good, *header};
}

PENSTOCK_INLINE std::unique_ptr<loaded_index> loaded_index::from_file(const std::string& shard) {
  const opened_index file_of_index(index_path(shard));
  if (file_of_index.state != index_state::good || file_of_index.size < index_header::size) return nullptr;
  std::unique_ptr<loaded_index> made(new loaded_index);
  const auto size = static_cast<std::size_t>(file_of_index.size);
  void* where = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_of_index.number.get(), 0);
  if (where != MAP_FAILED) {
    const bytes_view mapped(static_cast<const std::byte*>(where), size);
    made->mapped_ = mapped;
    return checked(std::move(made), mapped);
  }
  shared<buffer> copy(new buffer(size));
  if (!read_all(file_of_index.number.get(), copy->span())) return nullptr;
  return from_buffer(std::move(copy));
}

PENSTOCK_INLINE std::unique_ptr<loaded_index> loaded_index::from_buffer(shared<const buffer> bytes) {
  std::unique_ptr<loaded_index> made(new loaded_index);
  const bytes_view view = bytes->view();
  made->owned_ = std::move(bytes);
  return checked(std::move(made), view);
}

PENSTOCK_INLINE loaded_index::~loaded_index() {
  if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

PENSTOCK_INLINE std::unique_ptr<loaded_index> loaded_index::checked(std::unique_ptr<loaded_index> made,
                                                                    bytes_view bytes) {
  const auto tables = shard_index::over(bytes);
  if (!tables) return nullptr;
  made->tables_ = *tables;
  return made;
}

PENSTOCK_INLINE void loaded_index::use(const projection& used) {
  if (used.everything()) return;
  used_.resize(static_cast<std::size_t>(tables_.header().suffixes) + 1);
  for (std::uint32_t i = 0; i < tables_.header().suffixes; ++i)
    used_[i] = used.uses(tables_.suffix_text(i)) ? 1 : 0;
  tables_.use(used_.data());
}

PENSTOCK_INLINE bool keep_index(const std::string& shard, bytes_view bytes) noexcept {
  try {
    output_file out(index_path(shard));
    out.write(bytes);
    out.commit();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
