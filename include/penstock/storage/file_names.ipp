// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/file_names.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/braces.hpp>

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <set>
#include <system_error>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail::files {

// Throws for a URL or a command, which would otherwise be taken for the name of a local file.
PENSTOCK_INLINE void check_is_name(std::string_view name) {
  if (name.starts_with("pipe:")) {
    throw error(errc::argument,
                {"'", name,
                 "' is a command, and this reads files; write its output to a FIFO or to the standard "
                 "input, and read it with webdataset_pipe"});
  }
  const std::size_t end = name.find("://");
  if (end == std::string_view::npos || end == 0) return;
  const std::string_view scheme = name.substr(0, end);
  const bool is_scheme = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.';
  });
  if (!is_scheme) return;
  const std::string shown = without_secrets(name);
  if (scheme == "file")
    throw error(errc::argument, {"'", shown, "' is a URL; write the path without file://"});
  throw error(errc::argument,
              {"'", shown, "' is a URL, and this reads local files: ", advice_for_url(scheme, shown)});
}

PENSTOCK_INLINE std::string advice_for_url(std::string_view scheme, std::string_view url) {
  const auto is_one_of = [scheme](std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), scheme) != list.end();
  };
  constexpr std::string_view or_copy = ", or copy the objects to local files with stage_to";
  if (scheme == "s3")
    return text({"give the source s3(\"", url, "\"), a storage of <penstock/storage/s3.hpp> in penstock::s3",
                 or_copy});
  if (is_one_of({"http", "https"}))
    return text({"give the source http(\"", url,
                 "\"), a storage of <penstock/storage/http.hpp> in penstock::http", or_copy});
  if (is_one_of({"gs", "gcs", "az", "azure", "abfs", "abfss", "hdfs", "viewfs"}))
    return text(
        {"give the source arrow_files, a storage of <penstock/storage/arrow_files.hpp> in "
         "penstock::arrow, with Arrow's file system for ",
         scheme, ":// (arrow::fs::FileSystemFromUri)", or_copy});
  if (scheme == "hf")
    return "the files of Hugging Face's hub are at "
           "https://huggingface.co/datasets/OWNER/NAME/resolve/main/FILE: give the source http(...) of "
           "<penstock/storage/http.hpp> in penstock::http, or download them with `hf download`";
  return text({"there is no storage for ", scheme,
               ":// here: mount it, download it, or pipe it into webdataset_pipe"});
}

PENSTOCK_INLINE std::string local_path(std::string_view path) {
  check_is_name(path);
  if (path != "~" && !path.starts_with("~/")) return std::string(path);
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    throw error(errc::argument, {"'", path, "' begins with ~, and HOME is not set: write the whole path"});
  return text({home, path.substr(1)});
}

PENSTOCK_INLINE std::vector<std::string> listed_names(std::vector<std::string> names) {
  for (std::string& name : names) name = local_path(name);
  return names;
}

PENSTOCK_INLINE std::vector<std::string> names_of_patterns(std::string_view patterns) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= patterns.size();) {
    const std::size_t end = std::min(patterns.find("::", begin), patterns.size());
    for (std::string& name : file_names(patterns.substr(begin, end - begin)))
      names.push_back(std::move(name));
    begin = end + 2;
  }
  return names;
}

inline thread_local int glob_failure = 0;

// glob calls this for a folder that it cannot read. A folder that vanished, or is a file, has no match.
PENSTOCK_INLINE int glob_failed(const char* /*path*/, int why) {
  if (why == ENOENT || why == ENOTDIR) return 0;
  glob_failure = why;
  return 1;
}

PENSTOCK_INLINE std::vector<std::string> matches_of(const std::string& pattern) {
  struct matches {
    ::glob_t found{};
    ~matches() { ::globfree(&found); }
  } all;
  const int code = ::glob(pattern.c_str(), GLOB_NOSORT, glob_failed, &all.found);
  if (code == GLOB_NOSPACE) throw std::bad_alloc();
  if (code == GLOB_ABORTED) {
    throw error(errc::io, {"cannot list a folder of the pattern '", pattern,
                           "': ", std::generic_category().message(glob_failure)});
  }
  std::vector<std::string> names;
  if (code == 0) {
    // By bytes, not by the locale as glob itself would; std::sort would cost a program 2 KB of code.
    std::qsort(all.found.gl_pathv, all.found.gl_pathc, sizeof(char*), [](const void* a, const void* b) {
      return std::strcmp(*static_cast<const char* const*>(a), *static_cast<const char* const*>(b));
    });
    for (std::size_t i = 0; i < all.found.gl_pathc; ++i) {
      std::string name = all.found.gl_pathv[i];
      if (name.find(".penstock-", name.rfind('/') + 1) == std::string::npos) names.push_back(std::move(name));
    }
  }
  if (names.empty()) {
    throw error(errc::missing, {"no file matches '", pattern,
                                "'; *, ? and [...] match the names of files (write \\* for a literal *)"});
  }
  return names;
}

}  // namespace detail::files

PENSTOCK_INLINE std::string without_secrets(std::string_view text) {
  const std::size_t end = std::min(text.find_first_of("?#"), text.size());
  const std::string_view tail = end == text.size() ? "" : text[end] == '?' ? "?..." : "#...";
  std::string_view shown = text.substr(0, end);
  const std::size_t scheme = shown.find("://");
  const std::string_view head = scheme == std::string_view::npos ? "" : shown.substr(0, scheme + 3);
  shown.remove_prefix(head.size());
  // Of a text that is no URL, a password could be anywhere before the last '@'; it may hold slashes.
  const std::string_view authority = shown.substr(0, shown.find('/'));
  const std::string_view port = authority.substr(std::min(authority.rfind(':'), authority.size()));
  const bool is_host = !head.empty() && (port.empty() || authority.ends_with(']') ||
                                         port.find_first_not_of("0123456789", 1) == std::string_view::npos);
  const std::size_t at = (is_host ? authority : shown).rfind('@');
  if (at != std::string_view::npos) shown.remove_prefix(at + 1);
  return detail::text({head, shown, tail});
}

PENSTOCK_INLINE std::vector<std::string> file_names(std::string_view pattern) {
  detail::files::check_is_name(pattern);
  std::vector<std::string> expanded = detail::files::listed_names(expand_braces(pattern));
  const auto globs = [](const std::string& name) { return name.find_first_of("*?[") != std::string::npos; };
  if (std::none_of(expanded.begin(), expanded.end(), globs)) return expanded;
  std::vector<std::string> names;
  std::set<std::string> matched;  // so that globs that overlap do not repeat a file
  for (std::string& name : expanded) {
    if (globs(name) && ::access(name.c_str(), F_OK) != 0) {
      for (std::string& match : detail::files::matches_of(name))
        if (matched.insert(match).second) names.push_back(std::move(match));
    } else {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace penstock::inline v0_1
