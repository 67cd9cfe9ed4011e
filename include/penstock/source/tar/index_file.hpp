// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/source/tar/shard_index.hpp>
#include <penstock/storage/concepts.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Index files beside their shards.
namespace penstock::inline v0_1 {
namespace detail::tar {

[[nodiscard]] std::string index_path(const std::string& shard);

enum class index_state { good, missing, unreadable, damaged, stale };

[[nodiscard]] const char* to_text(index_state state) noexcept;

bool read_all(int from, mutable_bytes into) noexcept;

/// Reads the header of the index beside `shard`, and nothing else of it.
[[nodiscard]] std::pair<index_state, index_header> peek_index(const std::string& shard,
                                                              object_signature expected);

/// An index with what owns its bytes: a mapping, or a buffer shared with the plan.
class loaded_index {
 public:
  /// Maps the index beside `shard`, and checks all of it; nothing where it is not in order. Where there are
  /// too many mappings already, it is read instead.
  [[nodiscard]] static std::unique_ptr<loaded_index> from_file(const std::string& shard);

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
  std::vector<unsigned char> used_;  // by suffix; empty where all are
  bytes_view mapped_;
  shared<const buffer> owned_;
};

/// Keeps an index beside its shard. False where that is not possible, for example in a folder that may not be
/// written.
bool keep_index(const std::string& shard, bytes_view bytes) noexcept;

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/index_file.ipp>
#endif
