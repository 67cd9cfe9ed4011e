// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/detail/file_pattern.hpp>
#include <penstock/source/tar/shard_stream.hpp>
#include <penstock/source/tar/stream_reader.hpp>
#include <penstock/source/tar/stream_sample.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Choices of `webdataset_stream`.
struct webdataset_stream_options {
  /// The most bytes that one sample may hold, names included: what a hostile shard can cost.
  std::uint64_t limit = 1_GiB;
  /// The largest extension header that is read: of long names, and what other programs keep of a file. It is
  /// held in memory whole.
  std::uint64_t extension_limit = 1_MiB;
};

/// The source that `webdataset_stream` (of files: it can go to a place) and `webdataset_pipe` make.
template <bool Files, unpacker... Unpack>
class basic_webdataset_stream : public opens_as_plan<basic_webdataset_stream<Files, Unpack...>> {
 public:
  using penstock_part = source_tag;
  using element = detail::tar::stream_sample;
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
    /// Opens the shard, and reads those of its samples that were given; shards before it are not touched.
    void seek(std::uint64_t, source_mark place)
      requires Files
    {
      state_->samples.seek(place);
    }

   private:
    friend class basic_webdataset_stream;

    // Stays where it is when the reader is moved.
    struct state {
      explicit state(shared<detail::tar::stream_shards> set) : samples(std::move(set), unpack.calls()) {}
      detail::tar::unpackers<Unpack...> unpack;
      detail::tar::stream_reader samples;
    };

    explicit reader(shared<detail::tar::stream_shards> set)
        : state_(std::make_unique<state>(std::move(set))) {}

    std::unique_ptr<state> state_;
  };

  basic_webdataset_stream(std::vector<std::string> names, webdataset_stream_options options)
      : set_(std::make_shared<detail::tar::stream_shards>(std::move(names), options.limit,
                                                          options.extension_limit, Files, source_name)) {}

  [[nodiscard]] std::string describe() const { return set_->describe(); }
  /// Of the shards' names without their folders: what they hold is not known before it is read.
  [[nodiscard]] std::uint64_t fingerprint() const { return set_->fingerprint(); }
  [[nodiscard]] reader connect() const { return reader(set_); }

 private:
  shared<detail::tar::stream_shards> set_;
};

/// What `webdataset_stream` makes.
template <unpacker... Unpack>
using webdataset_stream_source = basic_webdataset_stream<true, Unpack...>;
/// What `webdataset_pipe` makes.
template <unpacker... Unpack>
using webdataset_pipe_source = basic_webdataset_stream<false, Unpack...>;

/// Shards in the WebDataset format, read from the beginning to the end: for archives that are compressed
/// as a whole; `webdataset_pipe` is the same for pipes. Where shards are plain files, `webdataset` can do
/// more: shuffle, go on with other ranks, read in parallel.
///
///     auto plain = webdataset_stream("train-{0000..0127}.tar");
///     auto packed = webdataset_stream<unpack_gzip, unpack_zstd>("train-{0000..0127}.tar.{gz,zst}");
///     auto piped = webdataset_pipe("-");                            // what another program writes
///
/// In: a pattern (with `::` between patterns) or a list of paths of local files, for
/// `webdataset_pipe` also FIFOs and "-" for the standard input; the unpackers that may be needed, as template
/// arguments. How a shard is packed is seen from its first bytes; its name says nothing. Out: open samples
/// that own their bytes: the same keys, members, bytes and order as those of `webdataset`.
/// Kind: a forward source: deterministic, and of files resumable: a run that goes on opens the shard where it
/// stood and reads the samples of it that were delivered once more; shards before it are not touched. One
/// shard is open at a time. A pipe can be read once.
/// Cost per sample: its bytes are copied out of a window once, and unpacked; members of 256 KiB and more of
/// plain files are read in place. No allocation in the steady state: samples keep their memory. Memory: a
/// window of 1 MiB and what the unpackers need, besides the samples, each of at most `limit`.
/// Threads: one reads at a time, all evaluate. Who reads a pipe waits for its writer, also when the run is
/// given up.
/// Errors: as `webdataset`, when the place is reached; offsets are those in the unpacked archive.
/// errc::argument for a shard that is packed in a way of which there is no unpacker, and for a pipe given to
/// `webdataset_stream`, with what to write;
/// errc::limit for a sample beyond `limit`, before its bytes are read, and for an extension header above
/// `extension_limit`; errc::checksum; errc::state for a pipe
/// that was read before.
/// Source: webdataset, tariterators.py.
template <unpacker... Unpack, detail::tar::pattern_text Text>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(const Text& pattern,
                                                                    webdataset_stream_options options = {}) {
  return {detail::tar::paths_of(detail::tar::to_pattern(pattern)), options};
}

/// The same for a list of paths, which are taken as they are.
template <unpacker... Unpack>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(std::vector<std::string> paths,
                                                                    webdataset_stream_options options = {}) {
  return {std::move(paths), options};
}
template <unpacker... Unpack>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(std::initializer_list<const char*> paths,
                                                                    webdataset_stream_options options = {}) {
  return {std::vector<std::string>(paths.begin(), paths.end()), options};
}

/// Shards from pipes: see `webdataset_stream`. Not resumable: nobody can go back in a pipe.
template <unpacker... Unpack, detail::tar::pattern_text Text>
[[nodiscard]] webdataset_pipe_source<Unpack...> webdataset_pipe(const Text& pattern,
                                                                webdataset_stream_options options = {}) {
  return {detail::tar::paths_of(detail::tar::to_pattern(pattern)), options};
}

/// The same for a list of paths, which are taken as they are.
template <unpacker... Unpack>
[[nodiscard]] webdataset_pipe_source<Unpack...> webdataset_pipe(std::vector<std::string> paths,
                                                                webdataset_stream_options options = {}) {
  return {std::move(paths), options};
}

}  // namespace penstock::inline v0_1
