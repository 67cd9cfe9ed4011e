// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/files/forward_pieces.hpp>
#include <penstock/source/records/shard_stream.hpp>
#include <penstock/source/tar/stream_reader.hpp>
#include <penstock/source/tar/stream_sample.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file_names.hpp>
#include <penstock/storage/session_report.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Options of `webdataset_stream`.
struct webdataset_stream_options {
  /// The maximum bytes in one sample, names included, which bounds how much memory a hostile shard can use.
  std::uint64_t limit = 1_GiB;
  /// The maximum size of an extension header (for long names and other programs' metadata). A header is held
  /// in memory whole.
  std::uint64_t extension_limit = 1_MiB;
  /// From a storage that reads in the background: the bytes that are requested ahead of the reader, in pieces
  /// of 1 MiB, at least two.
  std::uint64_t read_ahead = 8_MiB;
  /// As in `webdataset_options`.
  bool skip_apple_double = true;
};

/// The source that `webdataset_stream` (of files, which can seek) and `webdataset_pipe` make.
template <bool Files, unpacker... Unpack>
class basic_webdataset_stream : public opens_as_plan<basic_webdataset_stream<Files, Unpack...>> {
 public:
  using penstock_part = source_tag;
  using element = detail::tar_stream_sample;
  static constexpr std::string_view source_name = Files ? "webdataset_stream" : "webdataset_pipe";
  static constexpr bool seekable = Files;

  class reader {
   public:
    [[nodiscard]] bool next(element& e) { return state_->samples.next(e); }
    void rewind(std::uint64_t) noexcept { state_->samples.rewind(); }
    [[nodiscard]] source_mark mark() const noexcept
      requires Files
    {
      return state_->samples.mark();
    }
    /// Opens the marked shard and reads past the samples already delivered; earlier shards are not touched.
    void seek(std::uint64_t, source_mark place)
      requires Files
    {
      state_->samples.seek(place);
    }

   private:
    friend class basic_webdataset_stream;

    // Keeps its address when the reader is moved.
    struct state {
      explicit state(shared<detail::stream_shards> set) : samples(std::move(set), unpack.calls()) {}
      detail::unpackers<Unpack...> unpack;
      detail::tar_stream_reader samples;
    };

    explicit reader(shared<detail::stream_shards> set) : state_(std::make_unique<state>(std::move(set))) {}

    std::unique_ptr<state> state_;
  };

  basic_webdataset_stream(std::vector<std::string> names, webdataset_stream_options options)
      : set_(std::make_shared<detail::stream_shards>(std::move(names), options.limit, options.extension_limit,
                                                     Files, source_name, options.skip_apple_double)) {}

  [[nodiscard]] std::string describe() const { return set_->describe(); }
  /// Covers the shards' names without their folders: their contents are not known until they are read.
  [[nodiscard]] std::uint64_t fingerprint() const { return set_->fingerprint(); }
  [[nodiscard]] reader connect() const { return reader(set_); }

 private:
  shared<detail::stream_shards> set_;
};

/// The source that `webdataset_stream` makes.
template <unpacker... Unpack>
using webdataset_stream_source = basic_webdataset_stream<true, Unpack...>;
/// The source that `webdataset_pipe` makes.
template <unpacker... Unpack>
using webdataset_pipe_source = basic_webdataset_stream<false, Unpack...>;

/// The source that `webdataset_stream` makes of shards in a storage.
template <storage Storage, unpacker... Unpack>
class stored_webdataset_stream : public opens_as_plan<stored_webdataset_stream<Storage, Unpack...>> {
  using session_type = typename Storage::session;

 public:
  using penstock_part = source_tag;
  using element = detail::tar_stream_sample;
  static constexpr std::string_view source_name = "webdataset_stream";
  static constexpr bool seekable = true;

  class reader {
   public:
    [[nodiscard]] bool next(element& e) { return state_->samples.next(e); }
    void rewind(std::uint64_t) noexcept { state_->samples.rewind(); }
    [[nodiscard]] source_mark mark() const noexcept { return state_->samples.mark(); }
    /// Opens the marked shard and reads past the samples already delivered; earlier shards are not touched.
    void seek(std::uint64_t, source_mark place) { state_->samples.seek(place); }
    /// That of the session.
    [[nodiscard]] session_report report() const { return report_of(std::as_const(state_->session)); }
    /// Ends the session's reads. Any thread.
    void cancel_reads() const noexcept { state_->pieces.end(); }

   private:
    friend class stored_webdataset_stream;

    // Keeps its address when the reader is moved.
    struct state {
      state(const Storage& where, shared<detail::stream_shards> set, std::uint64_t ahead)
          : session(where.connect()),
            pieces(detail::forward_session(session), set->names.size(), ahead),
            samples(std::move(set), unpack.calls(), &pieces) {}
      session_type session;
      detail::forward_pieces pieces;
      detail::unpackers<Unpack...> unpack;
      detail::tar_stream_reader samples;
    };

    reader(const Storage& where, shared<detail::stream_shards> set, std::uint64_t ahead)
        : state_(std::make_unique<state>(where, std::move(set), ahead)) {}

    std::unique_ptr<state> state_;
  };

  stored_webdataset_stream(Storage where, webdataset_stream_options options)
      : storage_(std::move(where)),
        ahead_(options.read_ahead),
        set_(std::make_shared<detail::stream_shards>(
            std::vector<std::string>(storage_.names().begin(), storage_.names().end()), options.limit,
            options.extension_limit, true, source_name, options.skip_apple_double)) {}

  [[nodiscard]] std::string describe() const { return set_->describe(); }
  /// Covers the shards' names without their folders: their contents are not known until they are read.
  [[nodiscard]] std::uint64_t fingerprint() const { return set_->fingerprint(); }
  [[nodiscard]] reader connect() const { return reader(storage_, set_, ahead_); }

 private:
  Storage storage_;
  std::uint64_t ahead_;
  shared<detail::stream_shards> set_;
};

/// Shards in the WebDataset format, read from beginning to end: for archives that are compressed as a whole;
/// `webdataset_pipe` does this for pipes. If shards are plain files, `webdataset` can do more: shuffle,
/// resume on a different number of ranks, read in parallel.
///
///     auto plain = webdataset_stream("train-{0000..0127}.tar");
///     auto packed = webdataset_stream<unpack_gzip, unpack_zstd>("train-{0000..0127}.tar.{gz,zst}");
///     auto piped = webdataset_pipe("-");                            // the output of another program
///     auto stored = webdataset_stream<unpack_gzip>(file("train-{0000..0127}.tar.gz"));  // or http, or s3
///
/// In: a pattern (with `::` between patterns) or a list of paths of local files, or a storage; for
/// `webdataset_pipe` also FIFOs and "-" for standard input; the unpackers that may be needed, as template
/// arguments. The compression is recognised from a shard's first bytes; its name is ignored. Out: open
/// samples that own their bytes, with the keys, members, bytes and order that `webdataset` would deliver.
/// Kind: a forward source; deterministic, and for files resumable: a resumed run opens the shard where it
/// stopped and reads past the samples already delivered; earlier shards are not touched. One shard is open at
/// a time. A pipe can be read only once.
/// Cost per sample: its bytes are unpacked and copied once out of a window; members of 256 KiB or more in
/// plain files are read in place. No allocation in the steady state: samples keep their memory. Memory: a
/// window of 1 MiB, or `read_ahead` from a storage, and what the unpackers need, plus the samples, each of
/// at most `limit`.
/// Threads: one reads at a time, all evaluate. Reading a pipe blocks until its writer writes, even while the
/// run is being stopped.
/// Errors: as for `webdataset`, thrown when the run reaches the place; offsets are in the unpacked archive.
/// errc::argument for a compression without an unpacker, and for a pipe given to `webdataset_stream`, with
/// what to write; errc::limit for a sample beyond `limit`, before its bytes are read, and for an extension
/// header above `extension_limit`; errc::checksum; errc::state for a pipe that was read before.
/// Source: webdataset, tariterators.py.
template <unpacker... Unpack, detail::pattern_text Text>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(const Text& pattern,
                                                                    webdataset_stream_options options = {}) {
  return {detail::paths_of(detail::to_pattern(pattern)), options};
}

/// From a storage. If it reads in the background, as `http` does, `read_ahead` bytes are requested ahead of
/// the reader, in the order of use and across the end of a shard. A run that ends cancels them. A broken
/// connection costs a piece of 1 MiB if the storage tries again, as `http` does, and is an error otherwise.
template <unpacker... Unpack, storage Storage>
[[nodiscard]] stored_webdataset_stream<Storage, Unpack...> webdataset_stream(
    Storage where, webdataset_stream_options options = {}) {
  return {std::move(where), options};
}

/// From a list of paths, in which braces are not expanded.
template <unpacker... Unpack>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(std::vector<std::string> paths,
                                                                    webdataset_stream_options options = {}) {
  return {detail::files::listed_names(std::move(paths)), options};
}
template <unpacker... Unpack>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(std::initializer_list<const char*> paths,
                                                                    webdataset_stream_options options = {}) {
  return webdataset_stream<Unpack...>(std::vector<std::string>(paths.begin(), paths.end()), options);
}

/// Shards from pipes: see `webdataset_stream`. Not resumable, because a pipe cannot be read again.
template <unpacker... Unpack, detail::pattern_text Text>
[[nodiscard]] webdataset_pipe_source<Unpack...> webdataset_pipe(const Text& pattern,
                                                                webdataset_stream_options options = {}) {
  return {detail::paths_of(detail::to_pattern(pattern)), options};
}

/// From a list of paths, in which braces are not expanded.
template <unpacker... Unpack>
[[nodiscard]] webdataset_pipe_source<Unpack...> webdataset_pipe(std::vector<std::string> paths,
                                                                webdataset_stream_options options = {}) {
  return {detail::files::listed_names(std::move(paths)), options};
}

}  // namespace penstock::inline v0_1
