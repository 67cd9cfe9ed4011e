// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The files below a folder, sorted by their paths, in one piece of memory.
struct folder_files {
  std::string root;
  std::string paths;                   // of all files, relative to the root, one after another
  std::vector<std::uint64_t> ends{0};  // where they end
  std::vector<std::uint64_t> sizes;    // of the files
  std::vector<std::int32_t> labels;    // -1 where there are no classes
  std::vector<std::string> classes;    // sorted
  std::uint64_t bytes = 0;
  std::uint64_t fingerprint = 0;

  [[nodiscard]] std::uint64_t size() const noexcept { return sizes.size(); }
  [[nodiscard]] std::string_view path(std::size_t i) const noexcept {
    return std::string_view(paths).substr(static_cast<std::size_t>(ends[i]),
                                          static_cast<std::size_t>(ends[i + 1] - ends[i]));
  }
};

/// Walks a folder and those below it, through links too.
template <class = void>
class basic_folder_walk {
 public:
  basic_folder_walk(std::string root, std::vector<std::string> extensions)
      : root_(std::move(root)), extensions_(std::move(extensions)) {
    while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
    for (std::string& extension : extensions_) {
      if (extension.starts_with('.')) extension.erase(0, 1);
      for (char& c : extension) c = lower(c);
    }
  }

  [[nodiscard]] folder_files run() {
    struct stat status {};
    if (::stat(root_.c_str(), &status) != 0) throw failed("be opened", root_);
    if (!S_ISDIR(status.st_mode)) throw error(errc::io, "this is not a folder").in_file(root_);
    visit("", identity{status.st_dev, status.st_ino});
    if (found_.empty()) throw error(errc::missing, nothing()).in_file(root_);
    return packed();
  }

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

  /// A few links that lead to each other twice double the files with each of them.
  static constexpr std::uint32_t most_ways = 1000;

  static bool is_link(const std::string& path) noexcept {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  }
  static char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
  static error failed(const char* what, const std::string& path) {
    const int code = errno;
    return error(errc::io, {"the folder or file cannot ", what, ": ", std::generic_category().message(code),
                            code == ENOENT ? "; check the path" : ""})
        .in_file(path);
  }

  [[nodiscard]] bool wanted(std::string_view name) const {
    if (extensions_.empty()) return true;
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return false;
    const std::string_view last = name.substr(dot + 1);
    for (const std::string& extension : extensions_) {
      std::size_t same = 0;
      while (same < extension.size() && same < last.size() && lower(last[same]) == extension[same]) ++same;
      if (same == extension.size() && same == last.size()) return true;
    }
    return false;
  }
  [[nodiscard]] std::string nothing() const {
    std::string text = "there is no file below this folder";
    for (std::size_t i = 0; i < extensions_.size(); ++i)
      text += (i == 0 ? " that ends in ." : " or .") + extensions_[i];
    return text + "; hidden ones are not looked at";
  }

  /// `relative` is empty or ends in a slash.
  void visit(const std::string& relative, identity self) {
    const std::string folder = root_ + "/" + relative;
    const std::unique_ptr<DIR, closer> opened(::opendir(folder.c_str()));
    if (!opened) throw failed("be opened", folder);
    above_.push_back(self);
    for (;;) {
      errno = 0;
      const dirent* const item = ::readdir(opened.get());
      if (item == nullptr) {
        if (errno != 0) throw failed("be read", folder);
        break;
      }
      const std::string_view name = static_cast<const char*>(item->d_name);
      if (!name.starts_with('.')) look(relative + std::string(name), name);
    }
    above_.pop_back();
  }

  void look(const std::string& path, std::string_view name) {
    const std::string whole = root_ + "/" + path;
    struct stat status {};
    if (::stat(whole.c_str(), &status) != 0) {
      if (!wanted(name)) return;  // a link to nowhere that nobody asked for
      throw failed("be looked at", whole);
    }
    if (S_ISDIR(status.st_mode)) {
      const identity there{status.st_dev, status.st_ino};
      // a link that leads back up
      if (std::find(above_.begin(), above_.end(), there) != above_.end()) return;
      if (above_.size() == 1) classes_.push_back(path);
      const bool linked = linked_;
      linked_ = linked || is_link(whole);
      if (linked_ && ++ways_[{there.device, there.number}] > most_ways)
        throw error(errc::limit, {"links lead to this folder in more than ", most_ways,
                                  " ways; remove those that multiply each other"})
            .in_file(whole);
      visit(path + "/", there);
      linked_ = linked;
    } else if (S_ISREG(status.st_mode) && wanted(name)) {
      found_.push_back({path, static_cast<std::uint64_t>(status.st_size)});
    }
  }

  [[nodiscard]] folder_files packed() {
    std::sort(found_.begin(), found_.end(),
              [](const entry& left, const entry& right) { return left.path < right.path; });
    std::sort(classes_.begin(), classes_.end());
    folder_files files;
    files.sizes.reserve(found_.size());
    files.labels.reserve(found_.size());
    files.ends.reserve(found_.size() + 1);
    penstock::fingerprint mark;
    mark.add("directory", found_.size(), classes_.size());
    for (const std::string& name : classes_) mark.add(name);
    for (entry& one : found_) {
      files.labels.push_back(label_of(one.path));
      files.sizes.push_back(one.size);
      files.bytes += one.size;
      files.paths += one.path;
      files.ends.push_back(files.paths.size());
      mark.add(one.path, one.size);
      one.path = std::string();
    }
    files.paths.shrink_to_fit();
    files.fingerprint = mark.value();
    files.root = std::move(root_);
    files.classes = std::move(classes_);
    return files;
  }
  [[nodiscard]] std::int32_t label_of(const std::string& path) const {
    if (classes_.empty()) return -1;
    const std::size_t slash = path.find('/');
    if (slash == std::string::npos)
      throw error(errc::format,
                  "this file lies beside the folders of classes and has no class: move it away, or choose "
                  "extensions that it does not have")
          .in_file(root_ + "/" + path);
    const auto found =
        std::lower_bound(classes_.begin(), classes_.end(), std::string_view(path).substr(0, slash));
    return static_cast<std::int32_t>(found - classes_.begin());
  }

  struct closer {
    void operator()(DIR* opened) const noexcept { ::closedir(opened); }
  };

  std::string root_;
  std::vector<std::string> extensions_;
  std::vector<entry> found_;
  std::vector<std::string> classes_;
  std::vector<identity> above_;  // the folders from the root to the one that is visited
  // to folders behind links: how often they were visited
  std::map<std::pair<dev_t, ino_t>, std::uint32_t> ways_;
  bool linked_ = false;  // whether the visited one lies behind a link
};
using folder_walk = basic_folder_walk<>;

}  // namespace detail
}  // namespace penstock::inline v0_1
