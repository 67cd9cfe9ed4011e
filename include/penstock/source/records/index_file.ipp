// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/index_file.hpp>

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/local/output_file.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE std::string index_path(const std::string& shard) { return shard + ".penstock-index"; }

// The user's cache folder with a trailing slash, or an empty text. Relative paths are ignored.
PENSTOCK_INLINE std::string cache_folder() {
  const auto absolute = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);
    return value != nullptr && value[0] == '/' ? value : "";
  };
  if (const auto chosen = absolute("XDG_CACHE_HOME"); !chosen.empty()) return std::string(chosen) + "/";
  if (const auto home = absolute("HOME"); !home.empty()) return std::string(home) + "/.cache/";
  return {};
}

PENSTOCK_INLINE std::string in_hex(std::uint64_t value) {
  std::string digits(16, '0');
  for (auto at = digits.rbegin(); at != digits.rend(); ++at, value >>= 4)
    *at = "0123456789abcdef"[value & 15];
  return digits;
}

// The folder for indexes with a trailing slash, or an empty text.
PENSTOCK_INLINE std::string index_folder(const std::string& chosen) {
  if (!chosen.empty()) return chosen.ends_with('/') ? chosen : chosen + "/";
  const std::string cache = cache_folder();
  return cache.empty() ? cache : cache + "penstock/indexes/";
}

// Without links, if the shard can be reached.
PENSTOCK_INLINE std::string whole_path(const std::string& shard) {
  using allocated = std::unique_ptr<char, void (*)(void*)>;
  if (const allocated real(::realpath(shard.c_str(), nullptr), &std::free); real) return real.get();
  if (shard.starts_with('/')) return shard;
  const allocated here(::getcwd(nullptr, 0), &std::free);
  return here ? std::string(here.get()) + "/" + shard : shard;
}

PENSTOCK_INLINE std::string cached_index_path(const std::string& chosen, const std::string& shard) {
  const std::string folder = index_folder(chosen);
  if (folder.empty()) return {};
  const std::string whole = whole_path(shard);
  // Two 64-bit hashes: if two shards shared a name, each would overwrite the other's index again and
  // again.
  const std::uint64_t one = fingerprint().add("index", whole).value();
  const std::uint64_t two = fingerprint().add("cache", whole, one).value();
  return folder + in_hex(one) + in_hex(two) + ".penstock-index";
}

PENSTOCK_INLINE std::string kept_index_path(const std::string& chosen, const std::string& name,
                                            object_version object) {
  const std::string folder = index_folder(chosen);
  if (folder.empty() || object.stamp == 0) return {};
  const std::uint64_t one = fingerprint().add("object", name, object.size, object.stamp).value();
  const std::uint64_t two = fingerprint().add("kept", name, object.size, object.stamp, one).value();
  return folder + in_hex(one) + in_hex(two) + ".penstock-index";
}

PENSTOCK_INLINE std::string_view to_text(index_state state) noexcept {
  return enum_name(
      {"is valid", "does not exist", "cannot be read", "is damaged, or was written by another version",
       "was made for another state of the shard"},
      state);
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

PENSTOCK_INLINE std::pair<index_state, index_header> peek_index(const std::string& path,
                                                                object_version expected) {
  const opened_index file_of_index(path);
  if (file_of_index.state != index_state::good) return {file_of_index.state, {}};
  std::array<std::byte, index_header::size> head;
  if (file_of_index.size < head.size() || !read_all(file_of_index.number.get(), head))
    return {index_state::damaged, {}};
  const auto header = index_header::load(head);
  if (!header || header->file_size() != file_of_index.size) return {index_state::damaged, {}};
  if (object_version{header->shard_size, header->shard_stamp} != expected)
    return {index_state::stale, *header};
  return {index_state::good, *header};
}

PENSTOCK_INLINE std::unique_ptr<loaded_index> loaded_index::from_file(const std::string& path) {
  const opened_index file_of_index(path);
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

// Makes a file's missing folders, accessible only to their owner, as the XDG specification asks.
PENSTOCK_INLINE void make_folders_of(const std::string& path) {
  struct stat status {};
  const std::size_t last = path.find_last_of('/');
  if (last == std::string::npos || ::stat(path.substr(0, last).c_str(), &status) == 0) return;
  for (std::size_t end = path.find('/', 1); end <= last; end = path.find('/', end + 1))
    ::mkdir(path.substr(0, end).c_str(), 0700);
}

PENSTOCK_INLINE bool keep_index(const std::string& path, bytes_view bytes) noexcept {
  try {
    make_folders_of(path);
    output_file out(path);
    out.write(bytes);
    out.commit();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace detail
}  // namespace penstock::inline v0_1
