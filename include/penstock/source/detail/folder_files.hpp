// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/to_size.hpp>

#include <dirent.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The files below a folder, sorted by path; all paths share one string.
struct folder_files {
  std::string root;
  std::string paths;                   // of all files, relative to the root, one after another
  std::vector<std::uint64_t> ends{0};  // the end of each path in `paths`
  std::vector<std::uint64_t> sizes;    // of the files
  std::vector<std::int32_t> labels;    // -1 if there are no classes
  std::vector<std::string> classes;    // sorted
  std::uint64_t bytes = 0;
  std::uint64_t fingerprint = 0;

  [[nodiscard]] std::uint64_t size() const noexcept { return sizes.size(); }
  [[nodiscard]] std::string_view path(std::size_t i) const noexcept {
    return std::string_view(paths).substr(static_cast<std::size_t>(ends[i]),
                                          detail::to_size(ends[i + 1] - ends[i]));
  }
};

/// Walks a folder and its subfolders, following links.
class folder_walk {
 public:
  folder_walk(std::string root, std::vector<std::string> extensions);

  [[nodiscard]] folder_files run();

 private:
  struct entry {
    std::string path;
    std::uint64_t size;
  };
  struct identity {
    dev_t device;
    ino_t number;
    friend bool operator==(const identity&, const identity&) = default;
  };

  /// Folders that link to each other can multiply the number of files with every link.
  static constexpr std::uint32_t most_ways = 1000;

  static bool is_link(const std::string& path) noexcept;
  static char lower(char c) noexcept;
  static error failed(const char* what, const std::string& path);

  [[nodiscard]] bool wanted(std::string_view name) const;
  [[nodiscard]] std::string nothing() const;

  /// `relative` is empty or ends in a slash.
  void visit(const std::string& relative, identity self);

  void look(const std::string& path, std::string_view name);

  [[nodiscard]] folder_files packed();
  [[nodiscard]] std::int32_t label_of(const std::string& path) const;

  struct closer {
    void operator()(DIR* opened) const noexcept { ::closedir(opened); }
  };

  std::string root_;
  std::vector<std::string> extensions_;
  std::vector<entry> found_;
  std::vector<std::string> classes_;
  std::vector<identity> above_;  // the folders from the root to the current one
  // how often each folder was visited through a link
  std::map<std::pair<dev_t, ino_t>, std::uint32_t> ways_;
  bool linked_ = false;  // whether the current folder was reached through a link
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/folder_files.ipp>
#endif
