// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/record.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/detail/folder_files.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Choices of `directory`.
struct directory_options {
  /// The endings of the files to take, such as "jpg": in any case, with or without the dot. None: all files.
  std::vector<std::string> extensions;
};

namespace detail {

/// What one worker keeps for `directory`.
struct folder_worker {
  std::string path;
  buffer scratch;
  bool loaded = false;  // whether the scratch holds the file of the sample at hand
};

/// The bytes of a file below a folder, not read yet. Lives during the call that hands its sample on.
class folder_blob {
 public:
  using unfinished = void;

  folder_blob(folder_worker& worker, std::uint64_t size) noexcept : worker_(&worker), size_(size) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Opens the file, reads it to its destination and closes it.
  void read_into(mutable_bytes into) const;
  /// A view of the bytes in the worker's scratch, until the next sample.
  [[nodiscard]] bytes_view finish() const;

 private:
  folder_worker* worker_;
  std::uint64_t size_;
};

}  // namespace detail

/// The files below a folder, with the folders in it as classes: `train/cat/1.jpg` is of the class "cat".
///
///     auto images = directory("train", {.extensions = {"jpg", "jpeg"}});
///     auto names = images.classes();                               // {"cat", "dog"}: labels 0 and 1
///     auto batches = images | decode<field<"bytes", identity>> | shuffle(seed) | batch(64);
///
/// In: a path. Out: records of "bytes", a blob that is read when a stage asks for it, straight to its
/// destination, and "label", the number of the first folder's name among all of them, sorted by their bytes;
/// -1 where the folder has files only. The key is the path below the folder.
/// Files are taken at any depth and sorted by the bytes of their paths. Names that begin with a dot are
/// passed over; links are followed, but not to a folder that they lie in.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan lists the folders
/// and looks at each file once; a plan holds path, size and label of each file, which its copies share.
/// Cost per sample: opening, reading and closing one file; no allocation in the steady state. Millions of
/// small files are read faster from shards (see `webdataset`).
/// Threads: any number at once.
/// Throws `errc::io` for a folder that is not there or cannot be read, and for a file that has another size
/// than when the plan was made; `errc::missing` where no file is found; `errc::format` for files that lie
/// beside folders of classes; `errc::limit` where links lead to one folder in more than 1,000 ways. Errors of
/// the stages behind get the file and the key.
class directory : public opens_as_plan<directory> {
 public:
  using penstock_part = source_tag;
  using element = record<field<"bytes", detail::folder_blob>, field<"label", std::int64_t>>;
  static constexpr std::string_view source_name = "directory";

  class reader {
   public:
    using worker = detail::folder_worker;

    explicit reader(shared<const detail::folder_files> files) noexcept : files_(std::move(files)) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const auto i = static_cast<std::size_t>(checked(p.index));
      name(i, w.path);
      w.loaded = false;
      try {
        sink(element(detail::folder_blob(w, files_->sizes[i]), std::int64_t{files_->labels[i]}));
      } catch (error& e) {
        e.in_file(w.path).for_key(files_->path(i));
        throw;
      }
    }
    [[nodiscard]] std::string key(std::uint64_t index) const;
    /// Asks the system to read the file.
    void will_need(std::uint64_t index) const noexcept;
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return files_->bytes / files_->size(); }

   private:
    [[nodiscard]] std::uint64_t checked(std::uint64_t index) const;
    void name(std::size_t i, std::string& into) const {
      into.assign(files_->root).append("/").append(files_->path(i));
    }

    shared<const detail::folder_files> files_;
  };

  explicit directory(std::string path, directory_options options = {});

  [[nodiscard]] std::uint64_t size() const noexcept { return files_->size(); }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return nullptr; }
  /// The names of the classes: that of label `i` is `classes()[i]`. All folders in the folder have one, even
  /// when no file was found in them.
  [[nodiscard]] std::span<const std::string> classes() const noexcept { return files_->classes; }
  /// The path of a sample, below the folder.
  [[nodiscard]] std::string_view path(std::uint64_t index) const noexcept {
    return files_->path(static_cast<std::size_t>(index));
  }
  /// Of all paths and sizes and the names of the classes, not of where the folder is.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return files_->fingerprint; }
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] reader connect() const noexcept { return reader(files_); }

 private:
  shared<const detail::folder_files> files_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/directory.ipp>
#endif
