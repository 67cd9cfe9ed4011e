// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/storage/concepts.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// Writes shards as files.
class shard_files {
 public:
  void open(std::string_view name) { file_.emplace(std::string(name)); }
  void write(bytes_view bytes) { file_->write(bytes); }
  object_version finish() {
    const object_version written = file_->commit();
    abort();
    return written;
  }
  void abort() noexcept { file_.reset(); }

 private:
  std::optional<output_file> file_;
};

/// Any `object_writer`.
class shard_store {
 public:
  template <class Writer>
    requires(!std::same_as<Writer, shard_store>) && object_writer<Writer>
  explicit shard_store(Writer writer)
      : writer_(std::make_shared<Writer>(std::move(writer))),
        open_([](void* self, std::string_view name) { static_cast<Writer*>(self)->open(name); }),
        write_([](void* self, bytes_view bytes) { static_cast<Writer*>(self)->write(bytes); }),
        finish_([](void* self) { return static_cast<Writer*>(self)->finish(); }) {}

  void open(std::string_view name) const { open_(writer_.get(), name); }
  void write(bytes_view bytes) const { write_(writer_.get(), bytes); }
  [[nodiscard]] object_version finish() const { return finish_(writer_.get()); }
  [[nodiscard]] archive_sink sink() const noexcept { return {writer_.get(), write_}; }

 private:
  std::shared_ptr<void> writer_;
  void (*open_)(void* self, std::string_view name);
  void (*write_)(void* self, bytes_view bytes);
  object_version (*finish_)(void* self);
};

}  // namespace detail

/// Options of `shard_writer`; the default limits are those of WebDataset's ShardWriter.
struct shard_writer_options {
  std::uint64_t maxcount = 100'000;  ///< maximum number of samples in a shard
  /// maximum bytes of members in a shard; the sample that reaches it is the last of the shard
  std::uint64_t maxsize = 3'000'000'000u;
  std::uint64_t start_shard = 0;  ///< the number of the first shard
  tar_writer_options tar = {};
};

/// Writes samples into numbered shards, and starts a new shard when the current one is full.
///
///     shard_writer out("train-%06d.tar", {.maxcount = 10'000});
///     out.write(key, {{"jpg", jpeg_bytes}, {"cls", "7"}});
///     manifest all = out.close();
///
/// Into a store instead of files, with anything that is an `object_writer`:
/// `shard_writer out("bucket/train-%06d.tar", s3_writer());`. With `tar.index` each shard is followed by its
/// index, an object of its own.
/// In: as for `tar_writer`, and a pattern with one `%d` (`%06d`, `%%` for a percent sign), or a path without
/// `%`, to which `-%06d.tar` is added. Out: the shards, each of which appears when it is complete, and a
/// manifest. A writer destroyed without `close` removes the unfinished shard and leaves the earlier ones, in
/// a store too.
/// Errors and threads as for `tar_writer`. Source: webdataset, writer.py, ShardWriter.
class shard_writer {
 public:
  explicit shard_writer(std::string_view pattern, shard_writer_options options = {})
      : shard_writer(pattern, detail::shard_files{}, std::move(options)) {}
  /// The names of the pattern are those that the writer takes.
  template <object_writer Writer>
  shard_writer(std::string_view pattern, Writer store, shard_writer_options options = {})
      : options_(std::move(options)), store_(std::move(store)) {
    parse(pattern);
    if (options_.maxcount == 0) throw error(errc::argument, "a shard needs room for at least one sample");
  }
  shard_writer(shard_writer&&) = default;
  shard_writer& operator=(shard_writer&&) = default;

  void write(std::string_view key, std::span<const tar_member> members);
  void write(std::string_view key, std::initializer_list<tar_member> members) {
    write(key, std::span<const tar_member>(members.begin(), members.size()));
  }

  /// Completes the last shard and returns the manifest of all shards written; without samples there are no
  /// shards.
  manifest close();

  /// The shards completed so far.
  [[nodiscard]] std::span<const manifest::shard> shards() const noexcept { return shards_; }
  /// The path of a shard by its number.
  [[nodiscard]] std::string name(std::uint64_t number) const {
    std::string digits = std::to_string(number);
    if (digits.size() < width_) digits.insert(0, width_ - digits.size(), fill_);
    return before_ + digits + after_;
  }

 private:
  void finish_shard();
  void parse(std::string_view pattern);

  shard_writer_options options_;
  std::string before_;
  std::string after_;
  std::size_t width_ = 0;
  char fill_ = ' ';
  detail::shard_store store_;
  std::optional<detail::tar_archive> current_;
  std::vector<manifest::shard> shards_;
  bool closed_ = false;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/shard_writer.ipp>
#endif
