// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/sidecar.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Storage of named buffers in memory: for tests, and for data that was generated or arrived by other means.
///
/// `memory_files().add("a.tar", bytes)` copies the bytes; `add_view` keeps only the view, whose bytes must
/// then outlive every run. Copies of the value share the buffers. Sessions return views; reading is a memcpy.
/// A range beyond an object's end is errc::format, a name added twice is errc::argument.
/// Threads: `add` by one thread at a time; sessions by any number.
class memory_files {
  struct table {
    std::vector<std::string> names;
    std::vector<bytes_view> contents;
    std::vector<std::shared_ptr<const buffer>> owned;
    std::vector<bool> absent;  // of sidecars: which are not there; empty if all are
  };

 public:
  /// What a run reads through; see `mapped_session`.
  class session {
   public:
    static constexpr session_traits traits = {.mapped = mapped_objects::all};

    [[nodiscard]] std::uint64_t size(object_id id) const { return content(id).size(); }
    [[nodiscard]] object_version version(object_id id) const { return {size(id), 0}; }
    /// The bytes of an object never change.
    [[nodiscard]] static constexpr bool tagged(object_id) noexcept { return true; }
    [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const {
      const bytes_view all = content(id);
      if (offset > all.size() || size > all.size() - offset) [[unlikely]]
        refuse(id, offset, size);
      return all.subspan(detail::to_size(offset), detail::to_size(size));
    }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      const bytes_view found = view(id, offset, into.size());
      if (!found.empty()) std::memcpy(into.data(), found.data(), found.size());
    }

   private:
    friend memory_files;
    explicit session(std::shared_ptr<const table> shared) : table_(std::move(shared)) {}

    [[nodiscard]] const bytes_view& content(object_id id) const {
      if (id >= table_->contents.size() || !table_->absent.empty()) [[unlikely]]
        check(id);
      return table_->contents[id];
    }
    void check(object_id id) const;
    [[noreturn, gnu::cold]] void refuse(object_id id, std::uint64_t offset, std::uint64_t size) const;

    std::shared_ptr<const table> table_;
  };

  memory_files() : table_(new table()) {}

  memory_files& add(std::string_view name, bytes_view bytes) &;
  memory_files& add(std::string_view name, std::string_view text) & { return add(name, bytes_of(text)); }
  memory_files& add_view(std::string_view name, bytes_view bytes) &;
  memory_files&& add(std::string_view name, bytes_view bytes) && { return std::move(add(name, bytes)); }
  memory_files&& add(std::string_view name, std::string_view text) && { return std::move(add(name, text)); }
  memory_files&& add_view(std::string_view name, bytes_view bytes) && {
    return std::move(add_view(name, bytes));
  }

  [[nodiscard]] std::span<const std::string> names() const noexcept { return table_->names; }
  [[nodiscard]] session connect() const { return session(table_); }
  /// See `has_sidecars`: those that were added under their names.
  [[nodiscard]] memory_files sidecars(sidecar which) const { return with_names(which.of_each(names())); }
  /// See `renaming_storage`: those that were added under these names.
  [[nodiscard]] memory_files with_names(std::vector<std::string> names) const;
  [[nodiscard]] std::string describe() const;

 private:
  void insert(std::string_view name, bytes_view bytes, std::shared_ptr<const buffer> owner);

  std::shared_ptr<const table> table_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/memory_files.ipp>
#endif
