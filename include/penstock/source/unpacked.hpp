// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/detail/file_pattern.hpp>
#include <penstock/source/tar/shard_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Choices of `unpacked`.
struct unpacked_options {
  /// Where copies are kept; empty is beside each packed file. It is made where it is missing.
  std::string folder = {};
  /// The most bytes that one file may have unpacked: what a hostile one can cost of the disk.
  std::uint64_t limit = 16_GiB;
  /// Threads that unpack, each a file; 0 is one for each processor.
  std::size_t threads = 0;
};

namespace detail::tar {

/// The path of a current copy of `packed`, made where there is none; `packed` itself where it is not packed.
[[nodiscard]] std::string unpacked_path(const std::string& packed, const unpacked_options& options,
                                        unpacker_calls unpack);

/// The paths of all, several at a time; `one` calls `unpacked_path` with unpackers of its own.
using unpack_one = std::string (*)(const std::string& packed, const unpacked_options& options);
[[nodiscard]] std::vector<std::string> unpacked_paths(const std::vector<std::string>& packed,
                                                      const unpacked_options& options, unpack_one one);

}  // namespace detail::tar

/// Unpacked copies of packed files, for sources that reach samples in any order: the paths to give them.
///
///     auto samples = webdataset(unpacked<unpack_gzip>("train-{0000..0127}.tar.gz"));
///     auto mapped = webdataset(mapped_file(unpacked<unpack_zstd>("train-{0000..0127}.tar.zst",
///                                                                {.folder = "cache"})));
///
/// In: a pattern (with `::` between patterns) or a list of paths of regular files; the unpackers that may be
/// needed, as template arguments. How a file is packed is seen from its first bytes; its name says nothing.
/// Out: for each its copy, `<file>.penstock-unpacked`, or the file itself where it is not packed. Any source
/// of local files takes the list; the indexes of `webdataset` stand beside the copies.
/// A copy is made once, when this is called. It is used again while size and time of change of the packed
/// file, and its own, are those of its record, `<copy>.record`; else it is made again. It appears by renaming
/// when it is whole, flushed and checked against the packed file's checksums: a process that is killed leaves
/// a temporary file, which the next one removes. Processes and threads that want the same copy wait for the
/// first of them. Copies are removed by whoever has no more use for them; the records, too.
/// Cost: the disk for all of it unpacked; once the time to read, unpack and write it, one file a thread; then
/// two looks at files and a read of 64 bytes for each. Memory: 2.5 MiB a thread, and what the unpackers need.
/// docs/shard_indexes.md has measured numbers.
/// Throws, with the packed file, errc::io for what cannot be read or written; errc::argument for a file that
/// is packed in a way of which there is no unpacker, with what to write; errc::limit for one that unpacks to
/// more than `limit`; errc::format and errc::checksum for damage, with the offset in the unpacked bytes.
/// Threads: any number may call it.
template <unpacker... Unpack>
[[nodiscard]] std::vector<std::string> unpacked(const std::vector<std::string>& paths,
                                                const unpacked_options& options = {}) {
  return detail::tar::unpacked_paths(paths, options,
                                     [](const std::string& packed, const unpacked_options& chosen) {
                                       detail::tar::unpackers<Unpack...> unpack;
                                       return detail::tar::unpacked_path(packed, chosen, unpack.calls());
                                     });
}
template <unpacker... Unpack>
[[nodiscard]] std::vector<std::string> unpacked(std::initializer_list<const char*> paths,
                                                const unpacked_options& options = {}) {
  return unpacked<Unpack...>(std::vector<std::string>(paths.begin(), paths.end()), options);
}
template <unpacker... Unpack, detail::tar::pattern_text Text>
[[nodiscard]] std::vector<std::string> unpacked(const Text& pattern, const unpacked_options& options = {}) {
  return unpacked<Unpack...>(detail::tar::paths_of(detail::tar::to_pattern(pattern)), options);
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/unpacked.ipp>
#endif
