// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/detail/member_name.hpp>
#include <penstock/source/detail/output_file.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/tar/index_builder.hpp>
#include <penstock/source/tar/index_file.hpp>
#include <penstock/source/tar/tar_format.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

/// Choices of `tar_writer`. With the defaults the same samples give the same bytes, whenever and by whom they
/// are written.
struct tar_writer_options {
  std::uint64_t mtime = 0;  ///< seconds since 1970
  std::uint32_t mode = 0444;
  std::string owner = "bigdata";  ///< what WebDataset writes
  std::string group = "bigdata";
  /// Also writes the index of the shard beside it, so that its first reader need not build it.
  bool index = false;
};

/// One member of a sample that is to be written: a suffix and its bytes.
struct tar_member {
  std::string_view suffix;
  bytes_view bytes;

  tar_member(std::string_view name, bytes_view content) noexcept : suffix(name), bytes(content) {}
  tar_member(std::string_view name, std::string_view text) noexcept : suffix(name), bytes(bytes_of(text)) {}
};

/// Writes one shard in the WebDataset format: a tar archive with the members of a sample next to each other.
///
///     tar_writer out("train-000000.tar");
///     out.write("0001", {{"jpg", jpeg_bytes}, {"cls", "7"}});
///     out.close();
///
/// In: keys and members; out: a ustar archive, with pax headers only where a name or size needs them, read by
/// GNU tar, Python's tarfile and WebDataset. The file appears under its name at `close`, complete and flushed
/// to the disk; a writer that is destroyed before leaves nothing. Instead of a path it takes any callable
/// that accepts a `bytes_view`.
/// Errors: errc::argument for a name that would not be read back as it was given (a dot or an upper-case
/// letter at the wrong place, a suffix twice, the key of the sample before), errc::io with the path when the
/// file cannot be written. After an error of the second kind nothing more may be written.
/// Threads: one at a time. Source of the format: POSIX.1-2017, pax; the GNU tar manual.
template <class Sink = detail::tar::output_file>
class tar_writer {
  static constexpr bool to_file = std::same_as<Sink, detail::tar::output_file>;

 public:
  explicit tar_writer(std::string_view path, tar_writer_options options = {})
    requires to_file
      : sink_(std::in_place, std::string(path)), options_(std::move(options)), name_(path) {}
  explicit tar_writer(Sink sink, tar_writer_options options = {})
    requires std::invocable<Sink&, bytes_view>
      : sink_(std::move(sink)), options_(std::move(options)) {
    if (options_.index)
      throw error(errc::argument, "an index is written beside a file; give tar_writer a path");
  }

  /// Appends a sample. The members stand in the archive in the order given.
  void write(std::string_view key, std::span<const tar_member> members) {
    if (closed_ || failed_) throw error(errc::state, "this tar_writer is closed").in_file(name_).for_key(key);
    check(key, members);
    failed_ = true;  // until the sample is complete
    for (const tar_member& m : members) {
      path_.assign(key).append(".").append(m.suffix);
      header_.clear();
      detail::tar::append_headers(header_, path_, m.bytes.size(), options_);
      const std::uint64_t begin = written_;
      put(header_.view());
      index_.add({path_, begin, written_, m.bytes.size(), false});
      put(m.bytes);
      put(detail::tar::padding_after(m.bytes.size()));
    }
    failed_ = false;
  }
  void write(std::string_view key, std::initializer_list<tar_member> members) {
    write(key, std::span<const tar_member>(members.begin(), members.size()));
  }

  /// Ends the archive and makes the file visible. What the shard then is, as a manifest has it.
  manifest::shard close() {
    if (closed_ || failed_) throw error(errc::state, "this tar_writer is closed").in_file(name_);
    closed_ = true;
    for (const bytes_view part : detail::tar::end_of_archive(written_)) put(part);
    object_signature written{written_, 0};
    if constexpr (to_file) written = sink_->commit();
    const buffer index = index_.finish(written);
    if (options_.index && !detail::tar::keep_index(name_, index.view())) {
      throw error(errc::io, {"cannot write the index ", detail::tar::index_path(name_)}).in_file(name_);
    }
    sink_.reset();
    return {name_, written_, index_.samples(), index_.payload(),
            detail::tar::index_header::load(index.view())->content};
  }

  [[nodiscard]] std::uint64_t samples() const noexcept { return index_.samples(); }
  /// Bytes of members written so far, without headers and padding.
  [[nodiscard]] std::uint64_t payload() const noexcept { return index_.payload(); }
  /// Bytes of the archive written so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return written_; }

 private:
  void put(bytes_view bytes) {
    if constexpr (to_file) {
      sink_->write(bytes);
    } else {
      (*sink_)(bytes);
    }
    written_ += bytes.size();
  }

  // What is written must be read back as the same samples.
  void check(std::string_view key, std::span<const tar_member> members) {
    const auto refuse = [&](const std::string& why) {
      throw error(errc::argument, why).in_file(name_).for_key(key);
    };
    if (members.empty()) refuse("a sample needs at least one member");
    if (samples() != 0 && index_.last_key() == key)
      refuse("the sample before has the same key: the two would be read as one");
    for (std::size_t i = 0; i < members.size(); ++i) {
      path_.assign(key).append(".").append(members[i].suffix);
      if (path_.find('\0') != std::string::npos) refuse("a key or suffix may not hold a NUL");
      const auto parts = detail::tar::split_member(path_);
      if (!parts || parts->key != key || path_.starts_with('/')) {
        refuse("'" + path_ +
               "' would not be read back as this key and suffix: the last part of a key may have no dot, " +
               "and a key may be neither empty nor absolute");
      }
      if (detail::tar::skipped_member(path_)) refuse("'" + path_ + "' would be passed over by readers");
      if (detail::tar::lower_case(members[i].suffix) != members[i].suffix) {
        refuse("the suffix '" + std::string(members[i].suffix) +
               "' has upper-case letters, which readers lower");
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (members[j].suffix == members[i].suffix)
          refuse("the suffix '" + std::string(members[i].suffix) + "' stands twice");
      }
    }
  }

  std::optional<Sink> sink_;
  tar_writer_options options_;
  std::string name_;
  detail::tar::index_builder index_;
  std::string path_;
  buffer header_;
  std::uint64_t written_ = 0;
  bool closed_ = false;
  bool failed_ = false;
};

template <class Path>
  requires std::is_convertible_v<const Path&, std::string_view>
tar_writer(const Path&) -> tar_writer<detail::tar::output_file>;
template <class Path>
  requires std::is_convertible_v<const Path&, std::string_view>
tar_writer(const Path&, tar_writer_options) -> tar_writer<detail::tar::output_file>;
template <std::invocable<bytes_view> Sink>
tar_writer(Sink) -> tar_writer<Sink>;
template <std::invocable<bytes_view> Sink>
tar_writer(Sink, tar_writer_options) -> tar_writer<Sink>;

}  // namespace penstock::inline v0_1
