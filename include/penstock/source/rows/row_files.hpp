// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The rows of a file: the shape of the array, with at least one dimension, and the offset of its bytes;
/// `described` is the offset of its description.
struct stored_rows {
  extents shape;
  std::uint64_t begin = 0;
  std::uint64_t described = 0;
  bool swapped = false;  // its byte order is not this machine's
};

/// A format's function that finds the rows of a file.
struct row_finder {
  const void* format;
  stored_rows (*find)(const void* format, session_view session, object_id object, std::uint64_t size);
  std::string_view what;  ///< the name of the rows' container, for messages
  std::size_t item;       ///< bytes of a number
};

template <class T, class Format>
[[nodiscard]] row_finder finder_of(const Format& format) noexcept {
  return {&format,
          [](const void* chosen, session_view session, object_id object, std::uint64_t size) {
            return static_cast<const Format*>(chosen)->find(session, object, size);
          },
          Format::holder, sizeof(T)};
}

/// The files of an array that is cut along its first dimension, and where their rows begin.
struct row_files : known_files {
  extents row;
  std::uint64_t row_bytes = 0;
  std::vector<stored_rows> rows;  // by shard

  [[nodiscard]] static std::uint64_t number(const manifest::place& at, std::size_t&) noexcept {
    return at.sample;
  }
  [[nodiscard]] std::uint64_t offset(const manifest::place& at, std::uint64_t number) const noexcept {
    return rows[at.shard].begin + number * row_bytes;
  }
  [[nodiscard]] bool swapped(std::size_t shard) const noexcept { return rows[shard].swapped; }
  /// Finds the rows of each file. `wanted` is the shape of a row if it is part of the type, otherwise
  /// null.
  void read(storage_facts where, session_view session, const extents* wanted, const row_finder& finder);
};

inline void row_files::read(storage_facts where, session_view session, const extents* wanted,
                            const row_finder& finder) {
  rows.resize(where.names.size());
  read_each(where, session, [&](std::size_t i, object_version version) {
    const auto object = static_cast<object_id>(i);
    rows[i] = finder.find(finder.format, session, object, version.size);
    const std::uint64_t hash = hash_of_file(session, object, version.size);
    return file_facts{rows[i].shape[0], rows[i].shape.elements() * finder.item, hash, hash};
  });
  row = wanted != nullptr ? *wanted : rows.front().shape.drop_front();
  row_bytes = finder.item * row.elements();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (const extents found = rows[i].shape.drop_front(); !(found == row))
      throw error(errc::shape, {"the rows of ", finder.what, " have shape ", to_string(found), ", and ",
                                to_string(row), wanted != nullptr ? " was asked for" : " in ",
                                wanted != nullptr ? "" : where.names.front()})
          .in_file(path(i))
          .at_offset(rows[i].described);
}

}  // namespace detail
}  // namespace penstock::inline v0_1
