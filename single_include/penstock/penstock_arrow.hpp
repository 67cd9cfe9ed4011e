// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component arrow. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<arrow/filesystem/filesystem.h>)
#error "penstock_arrow.hpp needs Arrow C++: link penstock::arrow"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <arrow/filesystem/filesystem.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// ---- penstock/storage/detail/arrow_session.hpp

// The headers of Arrow warn where ours do not.
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {
namespace detail {

/// What Arrow says, as one line, without the queries of URLs, which may be signatures.
[[nodiscard]] inline std::string arrow_message(std::string_view message) {
  constexpr std::size_t longest = 300;
  std::string line;
  for (std::size_t at = 0; at < message.size() && line.size() < longest;) {
    const std::size_t end = std::min(message.find_first_of(" \t\r\n", at), message.size());
    const std::string_view word = message.substr(at, end - at);
    const std::size_t scheme = word.find("://");
    const std::size_t question = scheme == std::string_view::npos ? scheme : word.find('?', scheme);
    line += word.substr(0, question);
    if (question != std::string_view::npos) line += "?...";
    if (end < message.size()) line += ' ';
    at = end + 1;
  }
  while (line.ends_with(' ')) line.pop_back();
  if (line.size() > longest) line.resize(longest);
  return line;
}

/// The error of a status that is not OK.
[[noreturn, gnu::cold]] inline void throw_arrow(const arrow::Status& status, std::string_view path,
                                                std::optional<std::uint64_t> offset = {}) {
  if (status.IsOutOfMemory()) throw std::bad_alloc();
  const errc code = status.IsCancelled() ? errc::stopped : errc::io;
  error made = error(code, {"Arrow's file system says: ", arrow_message(status.message())})
                   .recurring(code != errc::io || !status.IsIOError());
  made.in_file(path);
  if (offset) made.at_offset(*offset);
  throw made;
}

/// Reads files of a file system of Arrow, in the calling thread. Keeps some of them open.
class arrow_session {
  using opened = std::shared_ptr<arrow::io::RandomAccessFile>;
  /// What is known of a file; once it is, it holds for the session.
  struct facts {
    std::optional<object_signature> signature;
    opened file;
    std::list<object_id>::iterator place;  // if there is a file
  };

 public:
  static constexpr bool views = false;

  arrow_session(std::shared_ptr<arrow::fs::FileSystem> where, std::span<const std::string> names,
                std::size_t most_open)
      : where_(std::move(where)), names_(names), most_open_(most_open), facts_(names.size()) {}
  arrow_session(const arrow_session&) = delete;
  arrow_session& operator=(const arrow_session&) = delete;

  [[nodiscard]] std::uint64_t size(object_id id) const { return signature(id).size; }
  [[nodiscard]] object_signature signature(object_id id) const {
    check(id);
    {
      const std::scoped_lock held(lock_);
      if (facts_[id].signature) return *facts_[id].signature;
    }
    (void)open(id);
    const std::scoped_lock held(lock_);
    return *facts_[id].signature;
  }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
    check(id);
    const opened file = open(id);
    const std::uint64_t all = size(id);
    if (offset > all || into.size() > all - offset)
      throw error(errc::format,
                  {"the range of ", into.size(), " bytes goes beyond the end of the object, which has ", all})
          .in_file(names_[id])
          .at_offset(offset);
    if (into.empty()) return;
    requests_.fetch_add(1, std::memory_order_relaxed);
    const auto got =
        file->ReadAt(static_cast<std::int64_t>(offset), static_cast<std::int64_t>(into.size()), into.data());
    if (!got.ok()) throw_arrow(got.status(), names_[id], offset);
    if (*got != static_cast<std::int64_t>(into.size()))
      throw error(errc::io, {"the file ended after ", *got, " of ", into.size(),
                             " bytes, although it had more when it was opened"})
          .recurring()
          .in_file(names_[id])
          .at_offset(offset);
    bytes_.fetch_add(into.size(), std::memory_order_relaxed);
  }
  void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}
  [[nodiscard]] storage_counters counters() const noexcept {
    return {.requests = requests_.load(std::memory_order_relaxed),
            .bytes = bytes_.load(std::memory_order_relaxed)};
  }

 private:
  void check(object_id id) const {
    if (id >= names_.size()) throw error(errc::argument, {"there is no object ", id});
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
      questions_.ask(id, [&] {
        found = kept(id);
        if (!found) found = open_anew(id);
      });
      if (!found) found = kept(id);  // another thread has opened it
    }
    return found;
  }
  [[nodiscard]] opened open_anew(object_id id) const {
    const std::string& path = names_[id];
    const auto info = where_->GetFileInfo(path);
    if (!info.ok()) throw_arrow(info.status(), path);
    if (info->type() != arrow::fs::FileType::File) {
      const bool missing = info->type() == arrow::fs::FileType::NotFound;
      throw error(errc::io, missing ? "there is no such file" : "it is a folder, not a file")
          .recurring()
          .in_file(path);
    }
    auto made = where_->OpenInputFile(*info);
    if (!made.ok()) throw_arrow(made.status(), path);
    const auto size = info->size() >= 0 ? arrow::Result<std::int64_t>(info->size()) : (*made)->GetSize();
    if (!size.ok()) throw_arrow(size.status(), path);
    const auto changed = info->mtime();
    const object_signature now{
        static_cast<std::uint64_t>(*size),
        changed == arrow::fs::kNoTime ? 0 : static_cast<std::uint64_t>(changed.time_since_epoch().count())};
    opened oldest;  // is closed without the lock
    const std::scoped_lock held(lock_);
    facts& one = facts_[id];
    if (one.signature && *one.signature != now)
      throw error(errc::io, "the object was replaced while it was read; start again with the new one")
          .recurring()
          .in_file(path);
    recent_.push_front(id);
    one.signature = now;
    one.file = *std::move(made);
    one.place = recent_.begin();
    if (recent_.size() > most_open_) {
      oldest = std::exchange(facts_[recent_.back()].file, nullptr);
      recent_.pop_back();
    }
    return one.file;
  }

  std::shared_ptr<arrow::fs::FileSystem> where_;
  std::span<const std::string> names_;
  std::size_t most_open_;
  mutable shared_questions questions_;
  mutable std::mutex lock_;
  mutable fixed_array<facts> facts_;
  mutable std::list<object_id> recent_;  // of the files that are open, the one used last first
  mutable std::atomic<std::uint64_t> requests_{0}, bytes_{0};
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/arrow_files.hpp

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
///     const auto patient = retrying(throttled(shards));
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
  /// What a run reads through; see `background_session` and `latent_session`.
  class session {
   public:
    static constexpr bool views = false;
    static constexpr bool has_latency = true;

    [[nodiscard]] std::uint64_t size(object_id id) const { return signature(id).size; }
    /// Size, and time of change in nanoseconds, 0 where the file system knows none.
    [[nodiscard]] object_signature signature(object_id id) const { return state_->files.signature(id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      state_->files.read(id, offset, into);
    }
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      state_->threads.read_many(requests, listener);
    }
    /// Reads in progress run to their ends.
    void cancel() const noexcept { state_->threads.cancel(); }
    void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}
    /// Reads, and their bytes.
    [[nodiscard]] storage_counters counters() const noexcept { return state_->files.counters(); }

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
      : arrow_files(std::move(where), expand_braces(pattern), options, std::string(pattern)) {}
  arrow_files(std::shared_ptr<arrow::fs::FileSystem> where, std::vector<std::string> paths,
              arrow_files_options options = {})
      : arrow_files(std::move(where), std::move(paths), options, {}) {}
  arrow_files(const std::shared_ptr<arrow::fs::FileSystem>& where, const arrow::fs::FileSelector& which,
              arrow_files_options options = {})
      : arrow_files(where, listed(where, which), options, which.base_dir) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return *names_; }
  [[nodiscard]] session connect() const { return {names_, where_, options_}; }
  /// See `sibling_storage`.
  [[nodiscard]] arrow_files beside(sibling which) const {
    std::vector<std::string> beside_them;
    for (const std::string& one : *names_) beside_them.push_back(which.of(one));
    return arrow_files(where_, std::move(beside_them), options_);
  }
  [[nodiscard]] std::string describe() const {
    const std::string what = pattern_.empty() ? detail::text({names_->size(), " files"}) : pattern_;
    return detail::text({"arrow_files(", where_->type_name(), ", ", what, ")"});
  }

 private:
  arrow_files(std::shared_ptr<arrow::fs::FileSystem> where, std::vector<std::string> paths,
              const arrow_files_options& options, std::string pattern)
      : where_(std::move(where)), pattern_(std::move(pattern)), options_(options) {
    if (!where_) throw error(errc::argument, "arrow_files got no file system, but a null pointer");
    if (options_.threads == 0 || options_.threads > 1024 || options_.open_files == 0)
      throw error(errc::argument,
                  {"arrow_files reads with 1 to 1024 threads and keeps at least one file open, not ",
                   options_.threads, " and ", options_.open_files});
    names_.reset(new std::vector<std::string>(std::move(paths)));
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

  std::shared_ptr<arrow::fs::FileSystem> where_;
  shared<const std::vector<std::string>> names_;
  std::string pattern_;
  arrow_files_options options_;
};

static_assert(sibling_storage<arrow_files> && background_session<arrow_files::session> &&
                  latent_session<arrow_files::session> && counting_session<arrow_files::session>,
              "arrow_files is a storage that reads in the background");

}  // namespace penstock::inline v0_1
