// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/detail/output_file.hpp>
#include <penstock/source/tar/shard_index.hpp>
#include <penstock/storage/concepts.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

/// Index files beside their shards.
namespace penstock::inline v0_1 {
namespace detail::tar {

template <class = void>
[[nodiscard]] std::string index_path(const std::string& shard) {
  return shard + ".penstock-index";
}

enum class index_state { good, missing, unreadable, damaged, stale };

[[nodiscard]] inline const char* to_text(index_state state) noexcept {
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

inline bool read_all(int from, mutable_bytes into) noexcept {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(from, into.data() + done, into.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

/// An open index file and its size.
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

/// Reads the header of the index beside `shard`, and nothing else of it.
template <class = void>
[[nodiscard]] std::pair<index_state, index_header> peek_index(const std::string& shard,
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

/// An index with what owns its bytes: a mapping, or a buffer shared with the plan.
template <class = void>
class basic_loaded_index {
 public:
  /// Maps the index beside `shard`, and checks all of it; nothing where it is not in order. Where there are
  /// too many mappings already, it is read instead.
  [[nodiscard]] static std::unique_ptr<basic_loaded_index> from_file(const std::string& shard) {
    const opened_index file_of_index(index_path(shard));
    if (file_of_index.state != index_state::good || file_of_index.size < index_header::size) return nullptr;
    std::unique_ptr<basic_loaded_index> made(new basic_loaded_index);
    const auto size = static_cast<std::size_t>(file_of_index.size);
    void* where = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_of_index.number.get(), 0);
    if (where != MAP_FAILED) {
      const bytes_view mapped(static_cast<const std::byte*>(where), size);
      made->mapped_ = mapped;
      return checked(std::move(made), mapped);
    }
    std::shared_ptr<buffer> copy(new buffer(size));
    if (!read_all(file_of_index.number.get(), copy->span())) return nullptr;
    return from_buffer(std::move(copy));
  }

  [[nodiscard]] static std::unique_ptr<basic_loaded_index> from_buffer(std::shared_ptr<const buffer> bytes) {
    std::unique_ptr<basic_loaded_index> made(new basic_loaded_index);
    const bytes_view view = bytes->view();
    made->owned_ = std::move(bytes);
    return checked(std::move(made), view);
  }

  basic_loaded_index(const basic_loaded_index&) = delete;
  basic_loaded_index& operator=(const basic_loaded_index&) = delete;
  ~basic_loaded_index() {
    if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
  }

  [[nodiscard]] const shard_index& tables() const noexcept { return tables_; }

 private:
  basic_loaded_index() = default;

  static std::unique_ptr<basic_loaded_index> checked(std::unique_ptr<basic_loaded_index> made,
                                                     bytes_view bytes) {
    const auto tables = shard_index::over(bytes);
    if (!tables) return nullptr;
    made->tables_ = *tables;
    return made;
  }

  shard_index tables_;
  bytes_view mapped_;
  std::shared_ptr<const buffer> owned_;
};
using loaded_index = basic_loaded_index<>;

/// Keeps an index beside its shard. False where that is not possible, for example in a folder that may not be
/// written.
template <class = void>
bool keep_index(const std::string& shard, bytes_view bytes) noexcept {
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
