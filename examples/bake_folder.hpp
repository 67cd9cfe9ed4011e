// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The folder that `bake` writes to: `<name>-000000.tar` and so on with their indexes, and `<name>.state`,
// from which a killed run resumes. While a process bakes there is also `<name>.lock`. Files of other names
// are never touched.

#include <penstock/run/state.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Where `bake` writes, and how much to a shard.
struct bake_options {
  std::filesystem::path folder;
  std::string name = "baked";  ///< the shards are `<name>-000000.tar` and so on
  std::uint64_t samples_per_shard = 1000;
  /// What the plan's functions do, in words: a folder that was begun with other words is refused.
  std::string settings;
  unsigned workers = 1;

  void check() const {
    if (samples_per_shard == 0) throw std::runtime_error("a shard needs room for at least one sample");
    if (name.empty() || name.find('/') != std::string::npos)
      throw std::runtime_error("the name of the shards is '" + name +
                               "'; give one that is not empty and has no '/'");
  }
};

/// What is in the folder; all numbers are of all runs together.
struct bake_totals {
  std::uint64_t samples = 0, raw = 0, bytes = 0, skipped = 0;
  std::vector<std::uint64_t> sizes;  ///< of the finished shards' files

  [[nodiscard]] std::uint64_t shards() const { return sizes.size(); }
};

[[nodiscard]] inline std::string shard_path(const bake_options& options, std::uint64_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, digits.size() < 6 ? 6 - digits.size() : 0, '0');
  return (options.folder / (options.name + "-" + digits + ".tar")).string();
}

/// The file beside the shards that says what they are and where to resume: a line of settings, a line of
/// totals, a line with the shards' sizes, and the state of the run.
class bake_progress {
 public:
  bake_totals totals;
  std::optional<penstock::state> where;

  explicit bake_progress(const bake_options& options)
      : path_(options.folder / (options.name + ".state")),
        settings_(options.settings + "; " + std::to_string(options.samples_per_shard) +
                  " samples per shard") {
    if (!std::filesystem::exists(path_)) return;
    std::ifstream in(path_, std::ios::binary);
    std::string settings, numbers, sizes, line;
    if (!std::getline(in, settings) || !std::getline(in, numbers) || !std::getline(in, sizes) ||
        !std::getline(in, line))
      throw std::runtime_error("cannot read " + path_.string() + "; remove its folder to bake anew");
    if (settings != settings_)
      throw std::runtime_error("the shards in " + options.folder.string() + " were begun with '" + settings +
                               "', and this is '" + settings_ + "'; choose another folder");
    std::uint64_t shards = 0, size = 0;
    std::istringstream(numbers) >> shards >> totals.samples >> totals.raw >> totals.bytes >> totals.skipped;
    for (std::istringstream each(sizes); each >> size;) totals.sizes.push_back(size);
    if (totals.shards() != shards)
      throw std::runtime_error("cannot read " + path_.string() + "; remove its folder to bake anew");
    where = penstock::state_from_string(line);
  }

  [[nodiscard]] bool done() const { return where && where->epoch > 0; }

  void save(const penstock::state& now) {
    const std::filesystem::path beside = path_.string() + ".partial";
    {
      std::ofstream out(beside, std::ios::binary);
      out << settings_ << '\n'
          << totals.shards() << ' ' << totals.samples << ' ' << totals.raw << ' ' << totals.bytes << ' '
          << totals.skipped << '\n';
      for (const std::uint64_t size : totals.sizes) out << size << ' ';
      out << '\n' << to_string(now) << '\n';
      if (!out.flush()) throw std::runtime_error("cannot write " + beside.string());
    }
    std::filesystem::rename(beside, path_);
  }

 private:
  std::filesystem::path path_;
  std::string settings_;
};

/// Keeps other processes from baking to the same folder and name, as long as it lives. Where the file system
/// has no locks it does nothing.
class bake_lock {
 public:
  explicit bake_lock(const bake_options& options)
      : path_((options.folder / (options.name + ".lock")).string()) {
    for (;;) {
      file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
      if (file_ < 0) throw std::runtime_error("cannot write " + path_ + ": " + std::strerror(errno));
      if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return;
        ::close(file_);
        throw std::runtime_error("another process is baking to " + options.folder.string() +
                                 " under this name; wait for it, or choose another folder or --name");
      }
      // The process that had the lock may have removed the file since it was opened here.
      struct stat mine {
      }, named{};
      if (::fstat(file_, &mine) == 0 && ::stat(path_.c_str(), &named) == 0 && mine.st_ino == named.st_ino)
        return;
      ::close(file_);
    }
  }
  /// Removes, if it can, the file of a process that was killed when all was done.
  static void remove_left_over(const bake_options& options) {
    ::unlink((options.folder / (options.name + ".lock")).c_str());
  }
  bake_lock(const bake_lock&) = delete;
  bake_lock& operator=(const bake_lock&) = delete;
  ~bake_lock() {
    ::unlink(path_.c_str());
    ::close(file_);
  }

 private:
  std::string path_;
  int file_ = -1;
};

/// The number of a shard from its file's name, if that is `<name>-NNNNNN.tar`.
[[nodiscard]] inline std::optional<std::uint64_t> shard_number(const bake_options& options,
                                                               std::string_view file) {
  if (!file.starts_with(options.name + "-")) return std::nullopt;
  file.remove_prefix(options.name.size() + 1);
  if (!file.ends_with(".tar")) return std::nullopt;
  file.remove_suffix(4);
  if (file.size() < 6 || file.size() > 18 || (file.size() > 6 && file[0] == '0') ||
      file.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return std::stoull(std::string(file));
}

/// Checks that the finished shards are there as they were written, and no others. Changes nothing.
inline void check_folder(const bake_options& options, const bake_progress& progress) {
  namespace fs = std::filesystem;
  const std::uint64_t finished = progress.totals.shards();
  for (std::uint64_t i = 0; i < finished; ++i) {
    const std::string shard = shard_path(options, i);
    if (!fs::exists(shard))
      throw std::runtime_error("the shard " + shard +
                               " was finished and is gone; remove its folder to bake anew");
    if (fs::file_size(shard) != progress.totals.sizes[i])
      throw std::runtime_error("the shard " + shard + " has " + std::to_string(fs::file_size(shard)) +
                               " bytes, and had " + std::to_string(progress.totals.sizes[i]) +
                               " when it was finished; remove its folder to bake anew");
  }
  // One may have been finished just before the run was killed.
  const std::uint64_t maximum = finished + (progress.where && !progress.done() ? 1 : 0);
  for (const auto& entry : fs::directory_iterator(options.folder)) {
    const auto number = shard_number(options, entry.path().filename().string());
    if (number && *number >= maximum)
      throw std::runtime_error("the folder " + options.folder.string() + " has a shard " +
                               entry.path().filename().string() +
                               " that is not of this run; choose another folder, or another --name");
  }
}

/// Removes what a killed run was writing.
inline void remove_unfinished(const bake_options& options) {
  std::vector<std::filesystem::path> unfinished;
  for (const auto& entry : std::filesystem::directory_iterator(options.folder)) {
    const std::string file = entry.path().filename().string();
    const std::size_t end = file.rfind(".tmp-");
    if (end == std::string::npos || file.find_first_not_of("0123456789-", end + 5) != std::string::npos)
      continue;
    std::string_view written = std::string_view(file).substr(0, end);
    if (constexpr std::string_view index = ".penstock-index"; written.ends_with(index))
      written.remove_suffix(index.size());
    if (shard_number(options, written)) unfinished.push_back(entry.path());
  }
  for (const auto& path : unfinished) std::filesystem::remove(path);
}
