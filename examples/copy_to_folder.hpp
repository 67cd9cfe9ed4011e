// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// `copy` to a folder. Each part is hashed as it is written, and the file is read back before it gets its
// name.

#include "copy_parts.hpp"
#include "copy_sink.hpp"

#include <penstock/core/bytes.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/storage/concepts.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

/// A file descriptor.
class open_file {
 public:
  open_file() = default;
  open_file(const std::filesystem::path& path, int how) : path_(path) {
    do file_ = ::open(path.c_str(), how | O_CLOEXEC, 0666);
    while (file_ < 0 && errno == EINTR);
    if (file_ < 0) fail("open");
  }
  open_file(open_file&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}
  open_file& operator=(open_file&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(file_, other.file_);
    return *this;
  }
  ~open_file() {
    if (file_ >= 0) ::close(file_);
  }
  [[nodiscard]] int number() const { return file_; }
  [[nodiscard]] std::uint64_t size() const {
    struct stat facts {};
    if (::fstat(file_, &facts) != 0) fail("look at");
    return static_cast<std::uint64_t>(facts.st_size);
  }
  void cut(std::uint64_t size) const {
    if (::ftruncate(file_, static_cast<off_t>(size)) != 0) fail("cut");
  }
  void write(penstock::bytes_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t done = ::write(file_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) fail("write");
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
  }
  /// The bytes from `offset` on, as many as there are.
  [[nodiscard]] std::size_t read(penstock::mutable_bytes into, std::uint64_t offset) const {
    std::size_t got = 0;
    while (got < into.size()) {
      const ssize_t more =
          ::pread(file_, into.data() + got, into.size() - got, static_cast<off_t>(offset + got));
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) fail("read");
      if (more == 0) break;
      got += static_cast<std::size_t>(more);
    }
    return got;
  }
  void keep() const {
    if (::fsync(file_) != 0) fail("write");
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw std::runtime_error(std::string("cannot ") + what + " " + path_.string() + ": " +
                             std::strerror(errno));
  }

  std::filesystem::path path_;
  int file_ = -1;
};

/// A folder that is copied to, and what was finished in it: a line of `.penstock-copy` for each object. While
/// an object is written it is `.NAME.HASH.partial`, and `.NAME.HASH.parts` has the hash of each of its parts.
class copy_folder {
 public:
  explicit copy_folder(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code failed;
    std::filesystem::create_directories(path_, failed);
    if (failed)
      throw std::runtime_error("cannot make the folder " + path_.string() + ": " + failed.message());
    notes_ = open_file(path_ / ".penstock-copy", O_RDWR | O_CREAT | O_APPEND);
    if (::flock(notes_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw std::runtime_error("another process is copying to " + path_.string() +
                               "; wait for it, or choose another folder");
    std::ifstream lines(path_ / ".penstock-copy", std::ios::binary);
    std::uint64_t complete = 0;
    for (std::string line; std::getline(lines, line) && !lines.eof(); complete += line.size() + 1) {
      std::istringstream words(line);
      penstock::object_version version;
      std::string name;
      if (words >> version.size >> version.stamp && words.get() == ' ' && std::getline(words, name))
        finished_[name] = version;
    }
    notes_.cut(complete);  // a line that was being written
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Whether the object was finished before; 1: as it is now, -1: as it was.
  [[nodiscard]] int was_finished(const copied_object& what) const {
    const std::scoped_lock held(lock_);
    const auto found = finished_.find(what.name);
    return found == finished_.end() ? 0 : found->second == what.version ? 1 : -1;
  }
  void note(const copied_object& what) {
    const std::scoped_lock held(lock_);
    finished_[what.name] = what.version;
    const std::string line =
        std::to_string(what.version.size) + " " + std::to_string(what.version.stamp) + " " + what.name + "\n";
    notes_.write(penstock::bytes_of(line));
  }

 private:
  std::filesystem::path path_;
  open_file notes_;
  mutable std::mutex lock_;
  std::map<std::string, penstock::object_version> finished_;
};

/// Writes files. A name is that of a whole file, or of none: what is being written has another one.
class folder_sink : public sink {
 public:
  explicit folder_sink(copy_folder& folder) : folder_(folder) {}

  std::optional<std::uint64_t> open(const copied_object& what) override {
    what_ = what;
    hashes_.clear();
    target_ = folder_.path() / what.name;
    const std::string hidden =
        "." + what.name + "." +
        hex(penstock::fingerprint().add(what.version.size, what.version.stamp, what.part_size).value());
    partial_ = folder_.path() / (hidden + ".partial");
    list_ = folder_.path() / (hidden + ".parts");
    const int before = folder_.was_finished(what);
    const bool there = std::filesystem::exists(target_), begun = std::filesystem::exists(list_);
    if (there && before == 1 && std::filesystem::file_size(target_) == what.version.size) {
      std::filesystem::remove(list_);
      return std::nullopt;
    }
    if (there && begun && !std::filesystem::exists(partial_)) {
      // Killed between the new name and the note of it.
      parts_ = open_file(list_, O_RDWR);
      file_ = open_file(target_, O_RDONLY);
      if (right_parts() == what.parts() && file_.size() == what.version.size) {
        done();
        return std::nullopt;
      }
    }
    if (there && before == 0)
      throw std::runtime_error(
          target_.string() +
          " is there and was not copied by this program; move it away, or choose another --to");
    remove_others();
    file_ = open_file(partial_, O_RDWR | O_CREAT);
    parts_ = open_file(list_, O_RDWR | O_CREAT);
    const std::uint64_t right = right_parts();
    file_.cut(std::min(right * what.part_size, what.version.size));
    parts_.cut(right * sizeof(std::uint64_t));
    ::lseek(file_.number(), 0, SEEK_END);
    ::lseek(parts_.number(), 0, SEEK_END);
    return right;
  }
  void write(penstock::bytes_view part) override {
    file_.write(part);
    const std::uint64_t hash = hash_of(part);
    parts_.write(std::as_bytes(std::span(&hash, 1)));
    hashes_.push_back(hash);
  }
  void finish() override {
    file_.keep();
    const std::vector<std::uint64_t> written = hashes_;
    if (file_.size() != what_.version.size || right_parts() != what_.parts() || hashes_ != written)
      throw std::runtime_error(partial_.string() +
                               " has other bytes than were written; the disk may be damaged");
    std::filesystem::rename(partial_, target_);
    open_file(folder_.path(), O_RDONLY | O_DIRECTORY).keep();
    done();
  }
  void abort() noexcept override {
    file_ = {};
    parts_ = {};
  }

 private:
  [[nodiscard]] static std::string hex(std::uint64_t value) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
    return text;
  }
  /// How many parts of the file are whole and have the hashes that were noted; `hashes_` has them.
  [[nodiscard]] std::uint64_t right_parts() {
    std::vector<std::uint64_t> noted(parts_.size() / sizeof(std::uint64_t));
    noted.resize(parts_.read(std::as_writable_bytes(std::span(noted)), 0) / sizeof(std::uint64_t));
    room_.resize_for_overwrite(what_.part_size);
    hashes_.clear();
    for (std::uint64_t part = 0; part < std::min<std::uint64_t>(noted.size(), what_.parts()); ++part) {
      const auto into = room_.span().first(what_.size_of(part));
      if (file_.read(into, part * what_.part_size) != into.size() || hash_of(into) != noted[part]) break;
      hashes_.push_back(noted[part]);
    }
    return hashes_.size();
  }
  /// Removes what was begun for an object of this name that was another one.
  void remove_others() const {
    const std::string mine = "." + what_.name + ".";
    std::vector<std::filesystem::path> old;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      const bool ours = name.ends_with(".partial") || name.ends_with(".parts");
      if (ours && name.starts_with(mine) && name.rfind('.') == mine.size() + 16 && entry.path() != partial_ &&
          entry.path() != list_)
        old.push_back(entry.path());
    }
    for (const auto& path : old) std::filesystem::remove(path);
  }
  void done() {
    folder_.note(what_);
    std::filesystem::remove(list_);
    abort();
  }

  copy_folder& folder_;
  copied_object what_;
  std::filesystem::path target_, partial_, list_;
  open_file file_, parts_;
  std::vector<std::uint64_t> hashes_;
  penstock::buffer room_;
};
