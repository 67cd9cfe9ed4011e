// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/records/shard_stream.hpp>
#include <penstock/source/tar/tar_shards.hpp>
#include <penstock/storage/local/output_file.hpp>

namespace penstock::inline v0_1 {

/// Options of `unpacked`.
struct unpacked_options {
  /// The folder for the copies; empty: beside each packed file. It is created if missing.
  std::string folder = {};
  /// The maximum unpacked size of one file in bytes, which bounds how much disk a hostile file can use.
  std::uint64_t limit = 16_GiB;
  /// The number of threads that unpack, one file each; 0: one per processor.
  std::size_t threads = 0;
};

namespace detail {

/// How a copy is made: by a class of the caller's, behind function pointers.
struct copy_work {
  void* of;
  bool (*is_packed)(void* of);
  void (*write)(void* of, output_file& output);
};

/// The path of an up-to-date copy of `packed`, which `work` makes if there is none; `packed` itself if it is
/// not packed.
[[nodiscard]] std::string copied_path(const std::string& packed, const unpacked_options& options,
                                      copy_work work);

/// The path of an up-to-date copy of `packed`, which is unpacked if there is none; `packed` itself if it is
/// not packed.
/// `reader`: which function takes unpackers, for advice.
[[nodiscard]] std::string unpacked_path(const std::string& packed, const unpacked_options& options,
                                        unpacker_calls unpack, std::string_view reader = "unpacked",
                                        const stream_kind& kind = tar_streams());

/// The paths of all copies, made several at a time; `one` calls `unpacked_path` with unpackers of its own.
using unpack_one = std::string (*)(const std::string& packed, const unpacked_options& options);
[[nodiscard]] std::vector<std::string> unpacked_paths(const std::vector<std::string>& packed,
                                                      const unpacked_options& options, unpack_one one);

}  // namespace detail

/// Makes unpacked copies of packed files, for sources that read samples in any order, and returns their
/// paths.
///
///     auto samples = webdataset(unpacked<unpack_gzip>("train-{0000..0127}.tar.gz"));
///     auto mapped = webdataset(mapped_file(unpacked<unpack_zstd>("train-{0000..0127}.tar.zst",
///                                                                {.folder = "cache"})));
///
/// In: a pattern (with `::` between patterns) or a list of paths of regular files; the unpackers that may be
/// needed, as template arguments. The compression is recognised from a file's first bytes; its name is
/// ignored. Out: for each file its copy, `<file>.penstock-unpacked`, or the file itself if it is not packed.
/// Any source of local files takes the list; the indexes of `webdataset` are kept as for any shards (see
/// `index_policy`).
/// A copy is made once, during this call. It is reused as long as the size and modification time of the
/// packed file and of the copy match its record, `<copy>.record`; otherwise it is made anew. It is renamed
/// into place when it is complete, flushed and checked against the packed file's checksums: a process that is
/// killed leaves a temporary file, which the next process removes. If several processes or threads want one
/// copy, the first makes it and the others wait. Nothing removes copies and records; delete them when you no
/// longer need them.
/// Cost: disk space for everything unpacked; once, the time to read, unpack and write it, one file per
/// thread; after that two stat calls and a read of 64 bytes per file. Memory: 2.5 MiB per thread, and what
/// the unpackers need. docs/shard_indexes.md has measurements.
/// Throws, with the packed file, errc::io if a file cannot be read or written; errc::argument for a
/// compression without an unpacker, with what to write; errc::limit for a file that unpacks to more than
/// `limit`; errc::format and errc::checksum for damage, with the offset in the unpacked bytes.
/// Threads: any number may call it.
template <unpacker... Unpack>
[[nodiscard]] std::vector<std::string> unpacked(detail::given_paths paths,
                                                const unpacked_options& options = {}) {
  return detail::unpacked_paths(paths.names, options,
                                [](const std::string& packed, const unpacked_options& chosen) {
                                  detail::unpackers<Unpack...> unpack;
                                  return detail::unpacked_path(packed, chosen, unpack.calls());
                                });
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/unpacked.ipp>
#endif
