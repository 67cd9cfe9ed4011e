// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/detail/url_scheme.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <cstddef>

namespace penstock::inline v0_1 {
namespace detail {

// The length of a URL's scheme; 0 for a text that is no URL. Source: RFC 3986, 3.1.
PENSTOCK_INLINE std::size_t scheme_length(std::string_view url) noexcept {
  const std::size_t end = url.find("://");
  if (end == std::string_view::npos) return 0;
  for (std::size_t i = 0; i < end; ++i) {
    const char c = url[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
    if (!letter && (i == 0 || !other)) return 0;
  }
  return end;
}

PENSTOCK_INLINE std::string scheme_of(std::string_view url) {
  const std::size_t length = scheme_length(url);
  return length == 0 ? "file" : with_lower_scheme(url).substr(0, length);
}

PENSTOCK_INLINE std::string with_lower_scheme(std::string_view url) {
  std::string text(url);
  for (std::size_t i = 0; i < scheme_length(url); ++i)
    if (text[i] >= 'A' && text[i] <= 'Z') text[i] = static_cast<char>(text[i] - 'A' + 'a');
  return text;
}

PENSTOCK_INLINE std::string common_scheme(std::span<const std::string> urls) {
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

PENSTOCK_INLINE std::string path_of(std::string_view url) {
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

PENSTOCK_INLINE void refuse_scheme(std::string_view scheme, const std::vector<std::string_view>& known) {
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

PENSTOCK_INLINE void refuse_list(std::string_view scheme) {
  throw error(errc::argument,
              {"the storage for ", scheme, " takes one URL, not a list; write one with braces"});
}

}  // namespace detail
}  // namespace penstock::inline v0_1
