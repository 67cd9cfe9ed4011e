// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/named_split.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/concepts.hpp>

namespace penstock::inline v0_1 {

/// Options of `directory`.
struct directory_options {
  /// The extensions of the files to take, such as "jpg": case does not matter, nor does a leading dot. Empty:
  /// all files.
  std::vector<std::string> extensions;
};

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

/// Walks a folder and its subfolders, following links. Of several splits, which are folders unless all names
/// of files say them, one must be named.
[[nodiscard]] folder_files files_below(std::string root, std::vector<std::string> extensions,
                                       const named_split* wanted = nullptr);

/// The state of one worker of `directory`.
struct folder_worker {
  std::string path;
  buffer scratch;
  bool loaded = false;  // whether `scratch` holds the file of the current sample
};

/// A file below a folder, not read yet. Valid during the call that delivers its sample.
class folder_blob {
 public:
  using unfinished = void;

  folder_blob(folder_worker& worker, std::uint64_t size) noexcept : worker_(&worker), size_(size) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Opens the file, reads it into its destination and closes it.
  void read_into(mutable_bytes into) const;
  /// A view of the bytes in the worker's scratch, until the next sample.
  [[nodiscard]] bytes_view finish() const;

 private:
  folder_worker* worker_;
  std::uint64_t size_;
};

}  // namespace detail

/// The files below a folder, whose subfolders are the classes: `train/cat/1.jpg` is of class "cat".
///
///     auto images = directory("train", {.extensions = {"jpg", "jpeg"}});
///     auto names = images.classes();                               // {"cat", "dog"}: labels 0 and 1
///     auto batches = images | decode<field<"bytes", identity>> | shuffle | batch(64);
///
/// In: a path. Out: records of "bytes", a blob that is read when a stage asks for it, straight into its
/// destination, and "label", the rank of the file's top-level folder among all of them, sorted by the bytes
/// of their names; -1 if the folder holds only files. The key is the path below the folder.
/// Files are taken at any depth and sorted by the bytes of their paths. Names that begin with a dot are
/// skipped; links are followed, except to a folder that contains them. Of a folder of splits
/// `directory(path, split("train"))` reads one; see `split`: if it is a folder, classes and keys are those
/// below it.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan lists the folders
/// and looks at each file once; a plan holds the path, size and label of each file, and its copies share
/// them.
/// Cost per sample: opening, reading and closing one file; no allocation in the steady state. Millions of
/// small files are read faster from shards (see `webdataset`).
/// Threads: any number at once.
/// Throws `errc::io` for a folder that does not exist or cannot be read, and for a file whose size changed
/// after the plan was made; `errc::missing` if no file is found, or none of the split; `errc::argument` for
/// folders called "train" and "test", or others if all are called after splits, with what to write, and for
/// files whose names all say a split; `errc::format` for files that lie beside
/// class folders; `errc::limit` if links lead to one folder in more than 1,000 ways. Errors of later stages
/// carry the file and the key.
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
      const auto i = detail::to_size(checked(p.index));
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
    /// The path of a sample's file.
    [[nodiscard]] std::string url(std::uint64_t index) const {
      std::string path;
      name(detail::to_size(checked(index)), path);
      return path;
    }
    /// Asks the system to read the file ahead.
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
  /// The files of a split, such as those below "train"; see `split`.
  directory(std::string path, const named_split& which, directory_options options = {});

  [[nodiscard]] std::uint64_t size() const noexcept { return files_->size(); }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return nullptr; }
  /// The names of the classes: label `i` is `classes()[i]`. Every top-level folder is a class, even if no
  /// file was found in it.
  [[nodiscard]] std::span<const std::string> classes() const noexcept { return files_->classes; }
  /// The path of a sample, relative to the folder.
  [[nodiscard]] std::string_view path(std::uint64_t index) const noexcept {
    return files_->path(detail::to_size(index));
  }
  /// Covers all paths and sizes and the names of the classes, but not the location of the folder.
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
