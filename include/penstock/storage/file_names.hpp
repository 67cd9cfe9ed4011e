// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// The files that a pattern stands for: braces are expanded first (see `expand_braces`), then `*`, `?` and
/// `[...]`, which match the files that are there, in the order of their names' bytes.
///
/// A `*` matches no slash and no dot at the beginning of a name, and files that Penstock keeps beside shards
/// (`.penstock-index`) match nothing. A file whose name is the text itself, brackets included, is that file;
/// `\*`, `\?` and `\[` are literal. Names without such characters are taken as they are, whether there is
/// such a file or not.
/// Throws errc::missing where nothing matches, errc::io for a folder that cannot be read, and errc::argument
/// for an address (`s3://...`) or a command (`pipe:...`), with what to use for it.
/// Source: POSIX.1-2017, glob and 2.13 "Pattern Matching Notation".
[[nodiscard]] std::vector<std::string> file_names(std::string_view pattern);

namespace detail::files {

/// The names of a list, which are taken as they are. Throws errc::argument for addresses and commands.
[[nodiscard]] std::vector<std::string> listed_names(std::vector<std::string> names);

}  // namespace detail::files
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/file_names.ipp>
#endif
