// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/manifest.hpp>
#include <penstock/source/records/index_builder.hpp>
#include <penstock/source/records/index_file.hpp>
#include <penstock/source/records/member_name.hpp>
#include <penstock/source/tar/tar_format.hpp>
#include <penstock/storage/local/output_file.hpp>

namespace penstock::inline v0_1 {

/// Options of `tar_writer`. With the defaults, equal samples give equal bytes, whenever and by whomever they
/// are written.
struct tar_writer_options {
  std::uint64_t mtime = 0;  ///< seconds since 1970
  std::uint32_t mode = 0444;
  std::string owner = "bigdata";  ///< as WebDataset writes
  std::string group = "bigdata";
  /// Also writes the index beside the shard, into a file or a store, so that its first reader need not build
  /// it.
  bool index = false;
};

/// One member of a sample to write: a suffix and its bytes.
struct tar_member {
  std::string_view suffix;
  bytes_view bytes;

  tar_member(std::string_view name, bytes_view content) noexcept : suffix(name), bytes(content) {}
  tar_member(std::string_view name, std::string_view text) noexcept : suffix(name), bytes(bytes_of(text)) {}
};

namespace detail {

/// A type-erased callable that takes the bytes of an archive.
struct archive_sink {
  void* who;
  void (*put)(void* who, bytes_view bytes);
};

/// The part of `tar_writer` that does not depend on the sink.
class tar_archive {
 public:
  tar_archive(std::string name, tar_writer_options options)
      : name_(std::move(name)), options_(std::move(options)) {
    if (options_.index && name_.empty())
      throw error(errc::argument, "an index is written beside a file; give tar_writer a path");
  }

  void write(std::string_view key, std::span<const tar_member> members, const archive_sink& sink) {
    if (closed_ || failed_) throw error(errc::state, "this tar_writer is closed").in_file(name_).for_key(key);
    check(key, members);
    failed_ = true;  // until the sample is complete
    for (const tar_member& m : members) {
      path_.assign(key).append(".").append(m.suffix);
      header_.clear();
      append_tar_headers(header_, path_, m.bytes.size(),
                         {options_.mode, options_.mtime, options_.owner, options_.group});
      const std::uint64_t begin = written_;
      put(header_.view(), sink);
      index_.add({path_, begin, written_, m.bytes.size(), false});
      put(m.bytes, sink);
      put(tar_padding_after(m.bytes.size()), sink);
    }
    failed_ = false;
  }
  /// Writes the end of the archive.
  void end(const archive_sink& sink) {
    if (closed_ || failed_) throw error(errc::state, "this tar_writer is closed").in_file(name_);
    closed_ = true;
    for (const bytes_view part : end_of_tar(written_)) put(part, sink);
  }
  /// Makes the index of the archive, whose version is `written`. If the options ask for it, it is kept
  /// beside the file, or `keep` gets it with its name.
  template <class Keep>
  [[nodiscard]] manifest::shard finish(object_version written, Keep&& keep) {
    const buffer index = index_.finish(written);
    if (options_.index) keep(index_path(name_), index.view());
    return {name_, written_, index_.samples(), index_.payload(), index_header::load(index.view())->content};
  }
  [[nodiscard]] manifest::shard finish(object_version written) {
    return finish(written, [this](const std::string& path, bytes_view index) {
      if (!keep_index(path, index)) throw error(errc::io, {"cannot write the index ", path}).in_file(name_);
    });
  }

  [[nodiscard]] const index_builder& index() const noexcept { return index_; }
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }

 private:
  /// Throws unless readers would read back exactly this sample.
  void check(std::string_view key, std::span<const tar_member> members) {
    const auto refuse = [&](const std::string& why) {
      throw error(errc::argument, why).in_file(name_).for_key(key);
    };
    if (members.empty()) refuse("a sample needs at least one member");
    if (index_.samples() != 0 && index_.last_key() == key)
      refuse("the previous sample has the same key: the two would be read as one");
    for (std::size_t i = 0; i < members.size(); ++i) {
      path_.assign(key).append(".").append(members[i].suffix);
      if (path_.find('\0') != std::string::npos) refuse("a key or suffix may not hold a NUL");
      const auto parts = split_member(path_);
      if (!parts || parts->key != key || path_.starts_with('/')) {
        refuse("'" + path_ +
               "' would not be read back as this key and suffix: the last part of a key may have no dot, " +
               "and a key may be neither empty nor absolute");
      }
      if (skipped_member(path_)) refuse("'" + path_ + "' would be skipped by readers");
      if (lower_case(members[i].suffix) != members[i].suffix) {
        refuse("the suffix '" + std::string(members[i].suffix) +
               "' has upper-case letters, which readers change to lower case");
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (members[j].suffix == members[i].suffix)
          refuse("the suffix '" + std::string(members[i].suffix) + "' is given twice");
      }
    }
  }
  void put(bytes_view bytes, const archive_sink& sink) {
    sink.put(sink.who, bytes);
    written_ += bytes.size();
  }

  std::string name_;
  tar_writer_options options_;
  index_builder index_;
  std::string path_;
  buffer header_;
  std::uint64_t written_ = 0;
  bool closed_ = false;
  bool failed_ = false;
};

}  // namespace detail

/// Writes one shard in the WebDataset format: a tar archive with the members of a sample next to each other.
///
///     tar_writer out("train-000000.tar");
///     out.write("0001", {{"jpg", jpeg_bytes}, {"cls", "7"}});
///     out.close();
///
/// In: keys and members; out: a ustar archive, with pax headers only where a name or size needs them, which
/// GNU tar, Python's tarfile and WebDataset can read. The file appears under its name at `close`, complete
/// and flushed to disk; a writer destroyed earlier leaves nothing. Instead of a path you can pass any
/// callable that accepts a `bytes_view`.
/// Errors: errc::argument for a name that would not be read back as it was given (a misplaced dot or
/// upper-case letter, a duplicate suffix, the key of the previous sample), errc::io with the path if the
/// file cannot be written. After errc::io nothing more may be written.
/// Threads: one at a time. Source of the format: POSIX.1-2017, pax; the GNU tar manual.
template <class Sink = detail::output_file>
class tar_writer {
  static constexpr bool to_file = std::same_as<Sink, detail::output_file>;

 public:
  explicit tar_writer(std::string_view path, tar_writer_options options = {})
    requires to_file
      : sink_(std::in_place, std::string(path)), work_(std::string(path), std::move(options)) {}
  explicit tar_writer(Sink sink, tar_writer_options options = {})
    requires std::invocable<Sink&, bytes_view>
      : sink_(std::move(sink)), work_({}, std::move(options)) {}

  /// Appends a sample. The members are stored in the order given.
  void write(std::string_view key, std::span<const tar_member> members) {
    work_.write(key, members, erased());
  }
  void write(std::string_view key, std::initializer_list<tar_member> members) {
    write(key, std::span<const tar_member>(members.begin(), members.size()));
  }

  /// Ends the archive and makes the file visible. Returns the shard's entry for a manifest.
  manifest::shard close() {
    work_.end(erased());
    object_version written{work_.written(), 0};
    if constexpr (to_file) written = sink_->commit();
    manifest::shard made = work_.finish(written);
    sink_.reset();
    return made;
  }

  [[nodiscard]] std::uint64_t samples() const noexcept { return work_.index().samples(); }
  /// Bytes of members written so far, without headers and padding.
  [[nodiscard]] std::uint64_t payload() const noexcept { return work_.index().payload(); }
  /// Bytes of the archive written so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return work_.written(); }

 private:
  [[nodiscard]] detail::archive_sink erased() noexcept {
    return {sink_ ? &*sink_ : nullptr, [](void* sink, bytes_view bytes) {
              if constexpr (to_file)
                static_cast<Sink*>(sink)->write(bytes);
              else
                (*static_cast<Sink*>(sink))(bytes);
            }};
  }

  std::optional<Sink> sink_;
  detail::tar_archive work_;
};

template <class Path>
  requires std::is_convertible_v<const Path&, std::string_view>
tar_writer(const Path&, tar_writer_options = {}) -> tar_writer<detail::output_file>;
template <std::invocable<bytes_view> Sink>
tar_writer(Sink, tar_writer_options = {}) -> tar_writer<Sink>;

}  // namespace penstock::inline v0_1
