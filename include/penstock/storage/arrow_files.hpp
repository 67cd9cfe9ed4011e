// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<arrow/filesystem/filesystem.h>)
#error "penstock/storage/arrow_files.hpp needs Arrow C++: link penstock::arrow"
#endif

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/braces.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/arrow_session.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sidecar.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

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
  class session {
   public:
    static constexpr session_traits traits = {.latency = true};

    [[nodiscard]] std::uint64_t size(object_id id) const { return version(id).size; }
    /// Size, and time of change in nanoseconds, 0 where the file system knows none.
    [[nodiscard]] object_version version(object_id id) const { return state_->files.version(id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      state_->files.read(id, offset, into);
    }
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      state_->threads.read_many(requests, listener);
    }
    /// Reads in progress run to their ends.
    void cancel() const noexcept { state_->threads.cancel(); }
    /// Reads, and their bytes.
    [[nodiscard]] session_report report() const noexcept {
      return {.counters = state_->files.counters(), .counted = true};
    }

   private:
    friend arrow_files;
    struct state {
      state(std::shared_ptr<arrow::fs::FileSystem> where, std::span<const std::string> names,
            const arrow_files_options& options)
          : files(std::move(where), names, options.open_files),
            threads(session_view(files), names, options.threads) {}
      detail::arrow_session files;
      threaded_reads threads;  // ends first
    };
    session(shared<const std::vector<std::string>> names, std::shared_ptr<arrow::fs::FileSystem> where,
            const arrow_files_options& options)
        : names_(std::move(names)), state_(std::make_unique<state>(std::move(where), *names_, options)) {}

    shared<const std::vector<std::string>> names_;
    std::unique_ptr<state> state_;
  };

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
  [[nodiscard]] session connect() const { return {names_, file_system_, options_}; }
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
