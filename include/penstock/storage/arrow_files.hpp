// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<arrow/filesystem/filesystem.h>)
#error "penstock/storage/arrow_files.hpp needs Arrow C++: link penstock::arrow"
#endif

#include <penstock/base/fixed_array.hpp>
#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/braces.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/threaded_session.hpp>
#include <penstock/storage/reads/arrow_errors.hpp>
#include <penstock/storage/reads/request_recorder.hpp>
#include <penstock/storage/reads/single_flight.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/sidecar.hpp>

// The headers of Arrow warn where ours do not.
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#include <arrow/filesystem/filesystem.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// Reads files of a file system of Arrow, in the calling thread. Keeps some of them open.
class arrow_session {
  using opened = std::shared_ptr<arrow::io::RandomAccessFile>;
  using recorder = request_recorder;
  /// The version and the open file of an object, which the session keeps once it has asked for them.
  struct facts {
    std::optional<object_version> version;
    opened file;
    std::list<object_id>::iterator place;  // if there is a file
  };

 public:
  static constexpr session_traits traits = {.latency = true};

  arrow_session(std::shared_ptr<arrow::fs::FileSystem> where, shared<const std::vector<std::string>> names,
                std::size_t max_open)
      : file_system_(std::move(where)),
        names_(std::move(names)),
        max_open_(max_open),
        facts_(names_->size()) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return *names_; }
  [[nodiscard]] std::uint64_t size(object_id id) const { return version(id).size; }
  /// Size, and time of change in nanoseconds, 0 where the file system knows none.
  [[nodiscard]] object_version version(object_id id) const {
    check(id);
    {
      const std::scoped_lock held(lock_);
      if (facts_[id].version) return *facts_[id].version;
    }
    (void)open(id);
    const std::scoped_lock held(lock_);
    return *facts_[id].version;
  }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
    check(id);
    const opened file = open(id);
    const std::uint64_t all = size(id);
    if (offset > all || into.size() > all - offset)
      throw error(errc::format,
                  {"the range of ", into.size(), " bytes goes beyond the end of the object, which has ", all})
          .in_file((*names_)[id])
          .at_offset(offset);
    if (into.empty()) return;
    requests_.fetch_add(1, std::memory_order_relaxed);
    const auto sent = recorder::clock::now();
    const auto got =
        file->ReadAt(static_cast<std::int64_t>(offset), static_cast<std::int64_t>(into.size()), into.data());
    recorded_.ended(sent, recorder::clock::now(), got.ok() ? &recorder::answered : &recorder::failed);
    if (!got.ok()) throw_arrow(got.status(), (*names_)[id], offset);
    if (*got != static_cast<std::int64_t>(into.size()))
      throw error(errc::io, {"the file ended after ", *got, " of ", into.size(),
                             " bytes, although it had more when it was opened"})
          .recurring()
          .in_file((*names_)[id])
          .at_offset(offset);
    bytes_.fetch_add(into.size(), std::memory_order_relaxed);
  }
  [[nodiscard]] session_report report() const noexcept {
    return {.counters = {.requests = requests_.load(std::memory_order_relaxed),
                         .bytes = bytes_.load(std::memory_order_relaxed)},
            .requests = recorded_.read(),
            .counted = true};
  }

 private:
  void check(object_id id) const {
    if (id >= names_->size()) throw error(errc::argument, {"there is no object ", id});
  }
  [[nodiscard]] opened kept(object_id id) const {
    const std::scoped_lock held(lock_);
    facts& one = facts_[id];
    if (one.file) recent_.splice(recent_.begin(), recent_, one.place);
    return one.file;
  }
  /// The file; one thread opens it, if several want to.
  [[nodiscard]] opened open(object_id id) const {
    opened found = kept(id);
    while (!found) {
      flight_.ask(id, [&] {
        found = kept(id);
        if (!found) found = open_anew(id);
      });
      if (!found) found = kept(id);  // another thread has opened it
    }
    return found;
  }
  [[nodiscard]] opened open_anew(object_id id) const {
    const std::string& path = (*names_)[id];
    const auto info = file_system_->GetFileInfo(path);
    if (!info.ok()) throw_arrow(info.status(), path);
    if (info->type() != arrow::fs::FileType::File) {
      const bool missing = info->type() == arrow::fs::FileType::NotFound;
      throw error(errc::io, missing ? "there is no such file" : "it is a folder, not a file")
          .recurring()
          .in_file(path);
    }
    auto made = file_system_->OpenInputFile(*info);
    if (!made.ok()) throw_arrow(made.status(), path);
    const auto size = info->size() >= 0 ? arrow::Result<std::int64_t>(info->size()) : (*made)->GetSize();
    if (!size.ok()) throw_arrow(size.status(), path);
    const auto changed = info->mtime();
    const object_version now{
        static_cast<std::uint64_t>(*size),
        changed == arrow::fs::kNoTime ? 0 : static_cast<std::uint64_t>(changed.time_since_epoch().count())};
    opened oldest;  // is closed without the lock
    const std::scoped_lock held(lock_);
    facts& one = facts_[id];
    if (one.version && *one.version != now)
      throw error(errc::io, "the object was replaced while it was read; start again with the new one")
          .recurring()
          .in_file(path);
    recent_.push_front(id);
    one.version = now;
    one.file = *std::move(made);
    one.place = recent_.begin();
    if (recent_.size() > max_open_) {
      oldest = std::exchange(facts_[recent_.back()].file, nullptr);
      recent_.pop_back();
    }
    return one.file;
  }

  std::shared_ptr<arrow::fs::FileSystem> file_system_;
  shared<const std::vector<std::string>> names_;
  std::size_t max_open_;
  mutable single_flight flight_;
  mutable std::mutex lock_;
  mutable fixed_array<facts> facts_;
  mutable std::list<object_id> recent_;  // of the files that are open, the one used last first
  mutable std::atomic<std::uint64_t> requests_{0}, bytes_{0};
  mutable recorder recorded_;
};

}  // namespace detail

/// Options of `arrow_files`.
struct arrow_files_options {
  std::size_t threads = 16;     ///< and so reads in the background that are in progress
  std::size_t open_files = 64;  ///< kept open by a session
};

/// Storage of files in any file system of Arrow: GCS, Azure, HDFS, its own S3, and what programs derive from
/// `arrow::fs::FileSystem`.
///
///     const auto disk = std::make_shared<arrow::fs::LocalFileSystem>();
///     const arrow_files shards(disk, "/data/train-{0000..0127}.tar");
///     const auto retried = retrying(throttled(shards));
///
/// In: a file system, and paths in it, without a scheme: a pattern whose braces are expanded (see
/// `expand_braces`), a list of paths that are taken as they are, or an `arrow::fs::FileSelector`, whose files
/// are listed when the storage is made and sorted by the bytes of their paths.
/// A session asks for a file's size and time of change once, and opens it at its first use; it keeps
/// `open_files` of them open. A file that was opened again and has changed is an error, never a mixture.
/// `read_many` reads with `threads` threads of the session, straight to where the bytes belong; Arrow's own
/// asynchronous reads would make a copy. Arrow cannot end a read: after `cancel`, and when the session is
/// destroyed, those in progress run to their ends.
/// Errors: errc::io with the path and what Arrow says, for what fails; missing files, folders, and what Arrow
/// reports as anything but an input-output error recur (see `error::recurs`). errc::format for a range beyond
/// the end, errc::argument for no file system and options that make no sense, errc::missing for a selector
/// that finds no file. What follows a `?` in a URL that Arrow shows is hidden.
/// Arrow itself tries some failures again; go around with `retrying` for those that it reports.
/// Threads: any number may use a session, if the file system's files allow reads by any number, as Arrow's
/// do.
/// Cost: one virtual call per read; no copy.
class arrow_files {
 public:
  /// What a run reads through; see `background_session`.
  using session = detail::threaded_session<detail::arrow_session>;

  arrow_files(std::shared_ptr<arrow::fs::FileSystem> where, std::string_view pattern,
              arrow_files_options options = {})
      : arrow_files(std::move(where), expanded(pattern), options, std::string(pattern)) {}
  arrow_files(std::shared_ptr<arrow::fs::FileSystem> where, std::vector<std::string> paths,
              arrow_files_options options = {})
      : arrow_files(std::move(where), std::move(paths), options, {}) {}
  arrow_files(const std::shared_ptr<arrow::fs::FileSystem>& where, const arrow::fs::FileSelector& which,
              arrow_files_options options = {})
      : arrow_files(where, listed(where, which), options, which.base_dir) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return *names_; }
  [[nodiscard]] session connect() const {
    return session(options_.threads, file_system_, names_, options_.open_files);
  }
  /// See `has_sidecars`.
  [[nodiscard]] arrow_files sidecars(sidecar which) const { return with_names(which.of_each(*names_)); }
  /// See `renaming_storage`.
  [[nodiscard]] arrow_files with_names(std::vector<std::string> names) const {
    return arrow_files(file_system_, std::move(names), options_);
  }
  [[nodiscard]] std::string describe() const {
    const std::string what = pattern_.empty() ? detail::text({names_->size(), " files"}) : pattern_;
    return detail::text({"arrow_files(", file_system_->type_name(), ", ", what, ")"});
  }

 private:
  arrow_files(std::shared_ptr<arrow::fs::FileSystem> where, std::vector<std::string> paths,
              const arrow_files_options& options, std::string pattern)
      : file_system_(std::move(where)), pattern_(std::move(pattern)), options_(options) {
    if (!file_system_) throw error(errc::argument, "arrow_files got no file system, but a null pointer");
    if (options_.threads == 0 || options_.threads > 1024 || options_.open_files == 0)
      throw error(errc::argument,
                  {"arrow_files reads with 1 to 1024 threads and keeps at least one file open, not ",
                   options_.threads, " and ", options_.open_files});
    names_.reset(new std::vector<std::string>(std::move(paths)));
  }
  [[nodiscard]] static std::vector<std::string> expanded(std::string_view pattern) {
    if (pattern.find('*') != std::string_view::npos)
      throw error(errc::argument, {"'", pattern,
                                   "' has a *, which arrow_files does not expand: list a folder with an "
                                   "arrow::fs::FileSelector, or write braces, as in train-{0000..0127}.tar"});
    return expand_braces(pattern);
  }
  [[nodiscard]] static std::vector<std::string> listed(const std::shared_ptr<arrow::fs::FileSystem>& where,
                                                       const arrow::fs::FileSelector& which) {
    if (!where) throw error(errc::argument, "arrow_files got no file system, but a null pointer");
    auto found = where->GetFileInfo(which);
    if (!found.ok()) detail::throw_arrow(found.status(), which.base_dir);
    std::vector<std::string> paths;
    for (const arrow::fs::FileInfo& one : *found)
      if (one.IsFile()) paths.push_back(one.path());
    std::sort(paths.begin(), paths.end());
    if (paths.empty())
      throw error(errc::missing, "the selector finds no file; say recursive = true if they are further down")
          .in_file(which.base_dir);
    return paths;
  }

  std::shared_ptr<arrow::fs::FileSystem> file_system_;
  shared<const std::vector<std::string>> names_;
  std::string pattern_;
  arrow_files_options options_;
};

static_assert(has_sidecars<arrow_files>() && background_session<arrow_files::session>,
              "arrow_files is a storage that reads in the background");

}  // namespace penstock::inline v0_1
