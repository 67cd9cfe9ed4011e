// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/named_split.hpp>

#include <vector>

namespace penstock::inline v0_1::detail {

/// A name that says which of how many files it is: "train-00003-of-00012.arrow".
struct numbered_name {
  std::string_view front;  // "train-"
  std::size_t number = 0, count = 0;

  /// The front without the marks at its end: "train".
  [[nodiscard]] std::string_view split() const noexcept;
};
[[nodiscard]] std::optional<numbered_name> numbered_name_of(std::string_view path) noexcept;

/// A split, and the places of its files in a list.
struct files_of_split {
  std::string name;
  std::vector<std::size_t> files;  // ascending

  friend bool operator==(const files_of_split&, const files_of_split&) = default;
};

/// Whether a file or folder is called after a split: "val2017" after "validation".
[[nodiscard]] bool is_called_after(std::string_view name, std::string_view split) noexcept;

/// Where names of splits are looked for.
enum class split_place : unsigned char { sharded, folder, file };

/// The files whose paths, relative to the dataset's folder, say at such a place that they are of a split;
/// "train", "validation" and "test" first, then others in the order of their names.
[[nodiscard]] std::vector<files_of_split> splits_at(std::span<const std::string> paths, split_place where);
/// Whether a path says that it is of "train", "validation" or "test".
[[nodiscard]] bool says_split(std::string_view path, split_place where) noexcept;
/// Those of the first place that has any, as Hugging Face's `datasets` does; after them files that are
/// numbered as belonging to several sets.
[[nodiscard]] std::vector<files_of_split> splits_of(std::span<const std::string> paths);

/// How many characters the folder has that all names have in common, with its slash.
[[nodiscard]] std::size_t common_folder(std::span<const std::string> names) noexcept;
/// The paths relative to the folder that all have in common; what follows `?` in a URL is left out.
[[nodiscard]] std::vector<std::string> relative_paths(std::span<const std::string> names);

/// How a source is called, for messages: `parquet("imdb", ...`.
struct source_call {
  std::string_view source;  // "parquet"
  std::string_view folder;  // empty: a storage
};

/// Of files by their relative paths those of one split; all for "all". Throws errc::missing if there is no
/// such split, with those that there are.
[[nodiscard]] std::vector<std::size_t> files_of(std::span<const std::string> relative,
                                                const named_split& wanted, const source_call& call);
/// Throws errc::argument if the files are of several splits, or of one and others, with their names and what
/// to write.
void refuse_several_splits(std::span<const std::string> relative, const source_call& call);
/// Throws errc::missing if some of the files that their names count are not there, and errc::argument for
/// files of several counts, as two writings leave them.
void check_numbered_files(std::span<const std::string> paths, const source_call& call);

/// The names of a storage's objects that are of a split.
[[nodiscard]] std::vector<std::string> names_of_split(std::span<const std::string> names,
                                                      const named_split& wanted, const source_call& call);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/split_files.ipp>
#endif
