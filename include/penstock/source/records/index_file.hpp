// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/sidecar.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

/// The files that hold the indexes of shards.
namespace penstock::inline v0_1 {
namespace detail {

/// The name of the file that holds an index: `train-0.tar.penstock-index`.
inline constexpr sidecar own_index{".penstock-index"};

/// The most bytes that a shard's index can have: a member's entry takes less than its headers in the shard,
/// which hold its name; the entry has it twice.
[[nodiscard]] constexpr std::uint64_t max_index_bytes(std::uint64_t shard_size) noexcept {
  return 2 * shard_size + 64 * 1024;
}

/// The index file beside a shard.
[[nodiscard]] std::string index_path(const std::string& shard);
/// The index file of a shard in the user's cache folder; empty if neither XDG_CACHE_HOME nor HOME is set to
/// an absolute path, and `folder`, which counts first, is empty. Source: XDG Base Directory Specification
/// 0.8.
[[nodiscard]] std::string cached_index_path(const std::string& folder, const std::string& shard);

/// The index file of an object of a store in a local folder, named by a hash of the object's name, size and
/// stamp; empty if the object has no stamp, so that one cannot tell whether it is the same, or if `folder` is
/// empty and there is no cache folder.
[[nodiscard]] std::string kept_index_path(const std::string& folder, const std::string& name,
                                          object_version object);

enum class index_state { good, missing, unreadable, damaged, stale };

[[nodiscard]] std::string_view to_text(index_state state) noexcept;

/// Reads the header of an index file and nothing else.
[[nodiscard]] std::pair<index_state, index_header> peek_index(const std::string& path,
                                                              object_version expected);

/// An index together with the owner of its bytes: a mapping, or a buffer shared with the plan.
class loaded_index {
 public:
  /// Maps an index file and checks all of it; returns null if it is not valid. If it cannot be mapped,
  /// because there are too many mappings, it is read instead.
  [[nodiscard]] static std::unique_ptr<loaded_index> from_file(const std::string& path);

  [[nodiscard]] static std::unique_ptr<loaded_index> from_buffer(shared<const buffer> bytes);

  loaded_index(const loaded_index&) = delete;
  loaded_index& operator=(const loaded_index&) = delete;
  ~loaded_index();

  [[nodiscard]] const shard_index& tables() const noexcept { return tables_; }
  /// Marks the members that are used.
  void use(const projection& used);

 private:
  loaded_index() = default;

  static std::unique_ptr<loaded_index> checked(std::unique_ptr<loaded_index> made, bytes_view bytes);

  shard_index tables_;
  std::vector<unsigned char> used_;  // by suffix; empty if all are used
  bytes_view mapped_;
  shared<const buffer> owned_;
};

/// Writes an index file, completely or not at all, and makes its folder if it is missing. Returns false if
/// that is not possible, for example in a folder that is not writable.
bool keep_index(const std::string& path, bytes_view bytes) noexcept;

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/index_file.ipp>
#endif
