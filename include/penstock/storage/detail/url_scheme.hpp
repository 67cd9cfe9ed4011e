// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What `any_of` does with URLs before a storage is chosen. No message shows more of a URL than its scheme.
namespace penstock::inline v0_1 {
namespace detail {

/// The scheme of a URL (`s3` of `S3://...`) in lower case; `file` for a text that is no URL.
[[nodiscard]] std::string scheme_of(std::string_view url);

/// The scheme that all of them have. Throws errc::argument if they differ, or if there are none.
[[nodiscard]] std::string common_scheme(std::span<const std::string> urls);

/// What a storage of local files is given: the path of `file:///path`; other texts unchanged. Throws
/// errc::argument for a file on another machine.
[[nodiscard]] std::string path_of(std::string_view url);

/// The URL with its scheme in lower case.
[[nodiscard]] std::string with_lower_scheme(std::string_view url);

[[noreturn, gnu::cold]] void refuse_scheme(std::string_view scheme,
                                           const std::vector<std::string_view>& known);
[[noreturn, gnu::cold]] void refuse_list(std::string_view scheme);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/detail/url_scheme.ipp>
#endif
