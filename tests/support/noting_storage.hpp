// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/memory_files.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock_test {

/// A requested range of bytes.
struct noted_range {
  std::uint64_t begin = 0, end = 0;
  friend bool operator==(const noted_range&, const noted_range&) = default;
};

/// The requests to the sessions of a `noting_storage`, from any thread.
struct storage_notes {
  std::mutex busy;
  std::vector<noted_range> reads, hints;
  std::vector<noted_range> planned;  ///< of row 5
  bool plans = false;                ///< whether sessions want to know what is read far ahead
  std::uint64_t versions = 0;
  std::uint64_t worn_begin = 0, worn_end = 0;  ///< bytes that cannot be read

  void clear() {
    reads.clear();
    hints.clear();
    versions = 0;
  }
  [[nodiscard]] std::uint64_t bytes_read() const {
    std::uint64_t bytes = 0;
    for (const noted_range& r : reads) bytes += r.end - r.begin;
    return bytes;
  }
};

/// Files in memory that are read by copying, with a list of the requests.
struct noting_storage {
  penstock::memory_files files;
  std::shared_ptr<storage_notes> notes = std::make_shared<storage_notes>();

  struct session : penstock::memory_files::session {
    static constexpr penstock::session_traits traits = {};  // shows nothing in place
    std::shared_ptr<storage_notes> notes;

    session(penstock::memory_files::session good, std::shared_ptr<storage_notes> kept)
        : penstock::memory_files::session(std::move(good)), notes(std::move(kept)) {}
    [[nodiscard]] penstock::object_version version(penstock::object_id id) const {
      const std::scoped_lock lock(notes->busy);
      ++notes->versions;
      return penstock::memory_files::session::version(id);
    }
    void read(penstock::object_id id, std::uint64_t offset, penstock::mutable_bytes into) const {
      const std::scoped_lock lock(notes->busy);
      notes->reads.push_back({offset, offset + into.size()});
      if (offset < notes->worn_end && notes->worn_begin < offset + into.size())
        throw penstock::error(penstock::errc::io, "worn out").at_offset(offset);
      penstock::memory_files::session::read(id, offset, into);
    }
    void will_need(penstock::object_id, std::uint64_t offset, std::uint64_t size) const noexcept {
      const std::scoped_lock lock(notes->busy);
      notes->hints.push_back({offset, offset + size});
    }
    [[nodiscard]] penstock::access_plan_sink access_plan() const {
      if (!notes->plans) return {};
      return {notes.get(), [](void*) { return true; },
              [](void*, std::uint64_t, std::uint64_t, bool) noexcept {}, [](void*) noexcept {}};
    }
    void plan_read(penstock::object_id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) const {
      const std::scoped_lock lock(notes->busy);
      if (row == 5) notes->planned.push_back({offset, offset + size});
    }
  };
  [[nodiscard]] std::span<const std::string> names() const { return files.names(); }
  [[nodiscard]] session connect() const { return {files.connect(), notes}; }
};

}  // namespace penstock_test
