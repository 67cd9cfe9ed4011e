// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/directory.hpp>

#include <penstock/core/fingerprint.hpp>
#include <penstock/source/files/split_files.hpp>
#include <penstock/source/files/whole_file.hpp>
#include <penstock/source/records/member_name.hpp>
#include <penstock/storage/file_names.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

/// Walks a folder and its subfolders, following links.
class folder_walk {
 public:
  folder_walk(std::string root, std::vector<std::string> extensions)
      : root_(std::move(root)), extensions_(std::move(extensions)) {
    while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
    for (std::string& extension : extensions_) {
      if (extension.starts_with('.')) extension.erase(0, 1);
      extension = lower_case(extension);
    }
  }

  [[nodiscard]] folder_files run(const named_split* wanted) {
    struct stat status {};
    if (::stat(root_.c_str(), &status) != 0) throw failed("be opened", root_);
    if (!S_ISDIR(status.st_mode)) throw error(errc::io, "this is not a folder").in_file(root_);
    visit("", identity{status.st_dev, status.st_ino});
    if (found_.empty()) throw error(errc::missing, nothing()).in_file(root_);
    std::sort(found_.begin(), found_.end(),
              [](const entry& left, const entry& right) { return left.path < right.path; });
    if (wanted == nullptr) {
      refuse_splits();
    } else if (const std::string folder = choose(*wanted); !folder.empty()) {
      return folder_walk(root_ + "/" + folder, std::move(extensions_)).run_all();
    }
    return packed();
  }
  [[nodiscard]] folder_files run_all() {
    const named_split all = split("all");
    return run(&all);
  }

 private:
  struct entry {
    std::string path;
    std::uint64_t size;
  };
  using identity = std::pair<dev_t, ino_t>;

  /// Folders that link to each other can multiply the number of files with every link.
  static constexpr std::uint32_t max_ways = 1000;

  static bool is_link(const std::string& path) noexcept {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  }
  static error failed(const char* what, const std::string& path) {
    const int code = errno;
    return error(errc::io, {"the folder or file cannot ", what, ": ", std::generic_category().message(code),
                            code == ENOENT ? "; check the path" : ""})
        .in_file(path);
  }

  [[nodiscard]] bool wanted(std::string_view name) const {
    if (extensions_.empty()) return true;
    const std::size_t dot = name.rfind('.');
    return dot != name.npos &&
           std::ranges::find(extensions_, lower_case(name.substr(dot + 1))) != extensions_.end();
  }
  [[nodiscard]] std::string nothing() const {
    std::string text = "there is no file below this folder";
    for (std::size_t i = 0; i < extensions_.size(); ++i)
      text += (i == 0 ? " that ends in ." : " or .") + extensions_[i];
    return text + "; hidden files are ignored";
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
      if (!wanted(name)) return;  // a dangling link with an extension that was not asked for
      throw failed("be looked at", whole);
    }
    if (S_ISDIR(status.st_mode)) {
      const identity there{status.st_dev, status.st_ino};
      // a link back to a folder above
      if (std::find(above_.begin(), above_.end(), there) != above_.end()) return;
      if (above_.size() == 1) classes_.push_back(path);
      const bool linked = linked_;
      linked_ = linked || is_link(whole);
      if (linked_ && ++ways_[there] > max_ways)
        throw error(errc::limit, {"links lead to this folder in more than ", max_ways,
                                  " ways; remove links that lead to each other"})
            .in_file(whole);
      visit(path + "/", there);
      linked_ = linked;
    } else if (S_ISREG(status.st_mode) && wanted(name)) {
      found_.push_back({path, static_cast<std::uint64_t>(status.st_size)});
    }
  }

  /// The folder of the split, if it is one; otherwise takes the other files away.
  [[nodiscard]] std::string choose(const named_split& wanted) {
    const std::vector<std::string> all = paths();
    std::vector<entry> kept;
    std::vector<std::string> chosen;
    for (const std::size_t i : files_of(all, wanted, {"directory", root_})) {
      kept.push_back(found_[i]);
      chosen.push_back(all[i]);
    }
    found_ = std::move(kept);
    if (wanted.name == "all") return {};
    // The last folder that all of them are in, and no others, if it is called after the split.
    for (std::string folder = chosen.front().substr(0, common_folder(chosen)); !folder.empty();
         folder.resize(folder.size() < 2 ? 0 : folder.rfind('/', folder.size() - 2) + 1)) {
      const std::string_view path = std::string_view(folder).substr(0, folder.size() - 1);
      if (is_called_after(path.substr(path.rfind('/') + 1), wanted.name)) return std::string(path);
    }
    return {};
  }
  void refuse_splits() const {
    const auto all_say = [&](split_place where) {
      return std::ranges::all_of(found_, [&](const entry& one) { return says_split(one.path, where); });
    };
    // Classes may be called "test tube", but not all of them are called after splits, or two exactly so.
    const auto is_class = [&](std::string_view name) {
      return std::ranges::find(classes_, name) != classes_.end();
    };
    if ((is_class("train") && (is_class("test") || is_class("val") || is_class("validation"))) ||
        all_say(split_place::folder) || all_say(split_place::file))
      refuse_several_splits(paths(), {"directory", root_});
  }
  [[nodiscard]] std::vector<std::string> paths() const {
    std::vector<std::string> made;
    for (const entry& one : found_) made.push_back(one.path);
    return made;
  }

  [[nodiscard]] folder_files packed() {
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
                  "this file lies beside the class folders and has no class: move it away, or choose "
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
  std::vector<identity> above_;  // the folders from the root to the current one
  // how often each folder was visited through a link
  std::map<identity, std::uint32_t> ways_;
  bool linked_ = false;  // whether the current folder was reached through a link
};

PENSTOCK_INLINE folder_files files_below(std::string root, std::vector<std::string> extensions,
                                         const named_split* wanted) {
  return folder_walk(std::move(root), std::move(extensions)).run(wanted);
}

PENSTOCK_INLINE void folder_blob::read_into(mutable_bytes into) const {
  if (into.size() != size_)
    throw error(errc::argument,
                {"a file of ", size_, " bytes cannot be read into a buffer of size ", into.size()});
  const regular_file opened(worker_->path);
  if (opened.size() != size_)
    throw error(errc::io, {"the file had ", size_, " bytes when the dataset was opened and has ",
                           opened.size(), " now; open the dataset again"})
        .in_file(worker_->path);
  opened.read(into);
}

PENSTOCK_INLINE bytes_view folder_blob::finish() const {
  if (!worker_->loaded) {
    worker_->scratch.resize_for_overwrite(static_cast<std::size_t>(size_));
    read_into(worker_->scratch.span());
    worker_->loaded = true;
  }
  return worker_->scratch.view();
}

}  // namespace detail

PENSTOCK_INLINE std::string directory::reader::key(std::uint64_t index) const {
  return std::string(files_->path(detail::to_size(checked(index))));
}

PENSTOCK_INLINE void directory::reader::will_need(std::uint64_t index) const noexcept {
  try {
    std::string path;
    name(detail::to_size(checked(index)), path);
    const detail::regular_file opened(path);
    ::posix_fadvise(opened.number(), 0, 0, POSIX_FADV_WILLNEED);
  } catch (...) {  // the read itself will report the error
  }
}

PENSTOCK_INLINE std::uint64_t directory::reader::checked(std::uint64_t index) const {
  if (index >= files_->size())
    throw error(errc::argument, {"there is no sample ", index, ": the dataset has ", files_->size()});
  return index;
}

PENSTOCK_INLINE directory::directory(std::string path, directory_options options)
    : files_(new const detail::folder_files(
          detail::files_below(detail::files::local_path(path), std::move(options.extensions)))) {}

PENSTOCK_INLINE directory::directory(std::string path, const named_split& which, directory_options options)
    : files_(new const detail::folder_files(
          detail::files_below(std::move(path), std::move(options.extensions), &which))) {}

PENSTOCK_INLINE std::string directory::describe() const {
  return detail::text({"directory(", files_->root, "): ", size(), " files, ", files_->classes.size(),
                       " classes, ", files_->bytes, " bytes"});
}

}  // namespace penstock::inline v0_1
