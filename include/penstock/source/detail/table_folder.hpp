// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <span>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The paths of a dataset of Arrow files: those of a folder, or those that a pattern names. Throws
/// errc::missing for a folder without any, or without some of those that their names count, and
/// errc::argument for one that has those of several splits.
[[nodiscard]] std::vector<std::string> arrow_paths(const std::string& pattern);
/// The same for Parquet files, which may lie in folders of the folder.
[[nodiscard]] std::vector<std::string> parquet_paths(const std::string& pattern);

/// "train-00003-of-00012.arrow": throws errc::missing if one of these files is not there, which would go
/// unnoticed, and errc::argument if they are of several splits. Other names are ignored.
void check_numbered_files(const std::string& folder, std::span<const std::string> paths);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/table_folder.ipp>
#endif
