// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

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
/// A `~/` at the beginning of a name stands for the folder that HOME names.
/// Throws errc::missing if nothing matches, errc::io for a folder that cannot be read, and errc::argument for
/// a URL (`s3://...`) or a command (`pipe:...`), with what to use instead.
/// Source: POSIX.1-2017, glob and 2.13 "Pattern Matching Notation".
[[nodiscard]] std::vector<std::string> file_names(std::string_view pattern);

/// Any text that may be a URL, for messages: without user and password, and with `?...` for a query.
[[nodiscard]] std::string without_secrets(std::string_view text);

namespace detail::files {

/// A path as it is opened: a `~/` at its beginning stands for the folder that HOME names, as in a shell; a
/// folder that is called `~` is `./~`. Throws errc::argument for a URL or a command, with what to use
/// instead, and if HOME is not set.
[[nodiscard]] std::string local_path(std::string_view path);
/// The paths of a list; see `local_path`.
[[nodiscard]] std::vector<std::string> listed_names(std::vector<std::string> names);
/// The files that several patterns with `::` between them name, in their order.
[[nodiscard]] std::vector<std::string> names_of_patterns(std::string_view patterns);
/// What reads URLs of a scheme, as the end of a sentence; `url`, as it may be shown.
[[nodiscard]] std::string advice_for_url(std::string_view scheme, std::string_view url);

}  // namespace detail::files
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/file_names.ipp>
#endif
