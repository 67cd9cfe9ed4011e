// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <span>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// Tables keep a list of the files that are rows; others in their folder are not any more, or not yet.
enum class table_format : std::uint8_t { none, delta, iceberg, hudi, spark };

/// A table, and its folder; of objects of a storage the front of their names.
struct table_mark {
  table_format format = table_format::none;
  std::string folder;
};

/// Whether a path is one of Iceberg's metadata files. `named`: by a name that Iceberg gives, "v3." of tables
/// in a file system, "00003-" and a UUID of those in a catalogue; otherwise by its ending.
[[nodiscard]] bool is_iceberg_metadata(std::string_view path, bool named) noexcept;

/// The table that a folder is, or is in.
[[nodiscard]] table_mark table_at(const std::string& folder);
/// The table that some of the objects describe.
[[nodiscard]] table_mark table_among(std::span<const std::string> names);

/// Throw errc::argument for a table, with the source to use: for a folder, for the folders of some files, and
/// for the objects of a storage.
void refuse_table_folder(const std::string& folder, std::string_view source);
void refuse_table_files(std::span<const std::string> paths, std::string_view source);
void refuse_table_objects(std::span<const std::string> names, std::string_view source);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/table_marks.ipp>
#endif
