// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/records/stream_source.hpp>
#include <penstock/source/tar/stream_reader.hpp>
#include <penstock/storage/concepts.hpp>

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

/// The source that `webdataset_stream` and `webdataset_pipe` make of shards of a kind: detail::local_shards
/// or detail::stored_shards.
template <class Shards, unpacker... Unpack>
class basic_webdataset_stream
    : public detail::stream_source<basic_webdataset_stream<Shards, Unpack...>,
                                   detail::stream_reader<detail::tar_stream_reader, Shards, Unpack...>> {
 public:
  static constexpr std::string_view source_name = Shards::seekable ? "webdataset_stream" : "webdataset_pipe";

  basic_webdataset_stream(Shards shards, std::vector<std::string> names, webdataset_stream_options options)
      : basic_webdataset_stream::stream_source(std::move(shards), std::move(names), options.limit,
                                               options.extension_limit, options.skip_apple_double) {}
};

/// The source that `webdataset_stream` makes.
template <unpacker... Unpack>
using webdataset_stream_source = basic_webdataset_stream<detail::local_shards<true>, Unpack...>;
/// The source that `webdataset_pipe` makes.
template <unpacker... Unpack>
using webdataset_pipe_source = basic_webdataset_stream<detail::local_shards<false>, Unpack...>;
/// The source that `webdataset_stream` makes of shards in a storage.
template <storage Storage, unpacker... Unpack>
using stored_webdataset_stream = basic_webdataset_stream<detail::stored_shards<Storage>, Unpack...>;

/// Shards in the WebDataset format, read from beginning to end: for archives that are compressed as a whole;
/// `webdataset_pipe` does this for pipes. If shards are plain files, `webdataset` can do more: shuffle,
/// resume on a different number of ranks, read in parallel.
///
///     auto plain = webdataset_stream("train-{0000..0127}.tar");
///     auto packed = webdataset_stream<unpack_gzip, unpack_zstd>("train-{0000..0127}.tar.{gz,zst}");
///     auto piped = webdataset_pipe("-");                            // the output of another program
///     auto stored = webdataset_stream<unpack_gzip>(file("train-{0000..0127}.tar.gz"));  // or http, or s3
///
/// In: a pattern (with `::` between patterns) of local files, or a list in which braces are not expanded, or
/// a storage; for `webdataset_pipe` also FIFOs and "-" for standard input; the unpackers that may be needed,
/// as template arguments. The compression is recognised from a shard's first bytes; its name is ignored. Out:
/// open samples that own their bytes, with the keys, members, bytes and order that `webdataset` would
/// deliver.
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
template <unpacker... Unpack>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(detail::given_paths paths,
                                                                    webdataset_stream_options options = {}) {
  return {{}, std::move(paths.names), options};
}

/// From a storage. If it reads in the background, as `http` does, `read_ahead` bytes are requested ahead of
/// the reader, in the order of use and across the end of a shard. A run that ends cancels them. A broken
/// connection costs a piece of 1 MiB if the storage tries again, as `http` does, and is an error otherwise.
template <unpacker... Unpack, storage Storage>
[[nodiscard]] stored_webdataset_stream<Storage, Unpack...> webdataset_stream(
    Storage where, webdataset_stream_options options = {}) {
  std::vector<std::string> names = detail::shard_names(where);
  return {{std::move(where), options.read_ahead}, std::move(names), options};
}

/// Shards from pipes: see `webdataset_stream`. Not resumable, because a pipe cannot be read again.
template <unpacker... Unpack>
[[nodiscard]] webdataset_pipe_source<Unpack...> webdataset_pipe(detail::given_paths paths,
                                                                webdataset_stream_options options = {}) {
  return {{}, std::move(paths.names), options};
}

}  // namespace penstock::inline v0_1
