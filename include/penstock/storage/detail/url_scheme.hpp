// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/url.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What `any_of` does with URLs before a storage is chosen. No message shows more of a URL than its scheme.
namespace penstock::inline v0_1::detail {

/// The length of a URL's scheme; 0 for a text that is no URL.
[[nodiscard]] inline std::size_t scheme_length(std::string_view url) noexcept {
  const std::size_t end = urls::end_of_scheme(url);
  return end != std::string_view::npos && url.substr(end).starts_with("://") ? end : 0;
}

/// The URL with its scheme in lower case.
[[nodiscard]] inline std::string with_lower_scheme(std::string_view url) {
  std::string text(url);
  std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(scheme_length(url)), text.begin(),
                 to_lower);
  return text;
}

/// The scheme of a URL (`s3` of `S3://...`) in lower case; `file` for a text that is no URL.
[[nodiscard]] inline std::string scheme_of(std::string_view url) {
  const std::size_t length = scheme_length(url);
  return length == 0 ? "file" : with_lower_scheme(url).substr(0, length);
}

/// The scheme that all of them have. Throws errc::argument if they differ, or if there are none.
[[nodiscard]] inline std::string common_scheme(std::span<const std::string> urls) {
  if (urls.empty()) throw error(errc::argument, "any_of chooses a storage by its URLs, and got none");
  const std::string first = scheme_of(urls[0]);
  for (std::size_t i = 1; i < urls.size(); ++i) {
    const std::string other = scheme_of(urls[i]);
    if (other != first)
      throw error(errc::argument, {"any_of chooses one storage for all URLs of a list, and number 0 is for ",
                                   first, " while number ", i, " is for ", other,
                                   "; make a source of each list and join them with concat or mix"});
  }
  return first;
}

/// What a storage of local files is given: the path of `file:///path`; other texts unchanged. Throws
/// errc::argument for a file on another machine.
[[nodiscard]] inline std::string path_of(std::string_view url) {
  const std::size_t length = scheme_length(url);
  if (length == 0) return std::string(url);
  std::string_view rest = url.substr(length + 3);
  if (rest.starts_with("localhost/")) rest.remove_prefix(std::string_view("localhost").size());
  if (!rest.starts_with('/'))
    throw error(errc::argument,
                "a file:// URL with a host names a file on another machine; write file:///path with three "
                "slashes for one on this machine, or the path alone");
  return std::string(rest);
}

[[noreturn, gnu::cold]] inline void refuse_scheme(std::string_view scheme,
                                                  const std::vector<std::string_view>& known) {
  std::string list;
  for (const std::string_view one : known) append(list, {list.empty() ? "" : ", ", one});
  const std::string what = scheme == "file" ? "local files" : text({scheme, "://"});
  std::string_view remedy = "add a storage whose schemes have it to its list";
  if (scheme == "file") remedy = "include <penstock/storage/file.hpp> and add file to its list";
  if (scheme == "http" || scheme == "https")
    remedy = "include <penstock/storage/http.hpp>, link penstock::http and add http to its list";
  if (scheme == "s3") remedy = "include <penstock/storage/s3.hpp>, link penstock::s3 and add s3 to its list";
  for (const std::string_view one : {"gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"})
    if (scheme == one)  // a storage of them needs more than a URL
      remedy =
          "include <penstock/storage/arrow_files.hpp>, link penstock::arrow and read with arrow_files, from "
          "the "
          "file system that arrow::fs::FileSystemFromUri gives for the URL, instead of any_of";
  throw error(errc::argument, {"this any_of has no storage for ", what, ", only for ", list, "; ", remedy});
}

}  // namespace penstock::inline v0_1::detail
