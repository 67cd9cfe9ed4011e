// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// Expands a pattern to file names: first the braces (see `expand_braces`), then `*`, `?` and `[...]`, which
/// match existing files, sorted by the bytes of their names.
///
/// A `*` matches neither a slash nor a dot at the beginning of a name. A file that Penstock keeps beside
/// shards, with `.penstock-` in its name, never matches, and a file that two of the names match is taken
/// once.
/// If a file's name is the pattern itself, brackets included, that
/// file is used; `\*`, `\?` and `\[` are literal. Names without these characters are used literally, whether
/// or not the file exists.
/// Throws errc::missing if nothing matches, errc::io for a folder that cannot be read, and errc::argument for
/// a URL (`s3://...`) or a command (`pipe:...`), with what to use instead.
/// Source: POSIX.1-2017, glob and 2.13 "Pattern Matching Notation".
[[nodiscard]] std::vector<std::string> file_names(std::string_view pattern);

namespace detail::files {

/// Returns the names of a list unchanged. Throws errc::argument for URLs and commands.
[[nodiscard]] std::vector<std::string> listed_names(std::vector<std::string> names);

}  // namespace detail::files
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/file_names.ipp>
#endif
