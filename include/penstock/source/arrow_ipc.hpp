// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/named_split.hpp>
#include <penstock/source/files/data_folder.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/records/shard_stream.hpp>
#include <penstock/source/tables/ipc_batches.hpp>
#include <penstock/storage/mapped_file.hpp>

namespace penstock::inline v0_1 {

/// Options of `arrow_ipc`.
struct arrow_ipc_options {
  /// The bytes of batches that a run keeps in memory, of those that are not shown in place: compressed, in a
  /// storage that is not mapped, or of the other byte order. The one in use counts, and is always kept.
  std::uint64_t keep = 1_GiB;
  /// The maximum bytes of one such batch.
  std::uint64_t limit = 4_GiB;
};

namespace detail {

template <unpacker... Unpack>
std::optional<std::size_t> unpack_arrow_buffer(bytes_view packed, mutable_bytes into,
                                               std::string_view format) {
  unpackers<Unpack...> unpack;
  const unpacker_calls calls = unpack.calls();
  const std::size_t which = calls.begin(calls.streams, format);
  if (which == unpacker_calls::none) return std::nullopt;
  std::size_t made = 0;
  while (made != into.size()) {
    const unpack_step step = calls.step(calls.streams, which, packed, into.subspan(made), true);
    packed = packed.subspan(step.taken);
    made += step.made;
    if (step.taken == 0 && step.made == 0) break;
  }
  return made;
}

}  // namespace detail

/// The source that `arrow_ipc` makes of Arrow files.
template <storage Storage>
class arrow_ipc_source : public detail::table_source<arrow_ipc_source<Storage>, Storage, detail::ipc_files,
                                                     detail::ipc_batches> {
 public:
  using typename arrow_ipc_source::table_source::reader;
  static constexpr std::string_view source_name = "arrow_ipc";

  arrow_ipc_source(Storage where, arrow_ipc_options options, detail::ipc_batches::unpack_call unpack)
      : arrow_ipc_source::table_source(std::move(where)), options_(options), unpack_(unpack) {}

  [[nodiscard]] reader connect(const projection& used = {}) const {
    return reader(this->table(), used, detail::batch_limits{options_.keep, options_.limit}, unpack_);
  }

 private:
  arrow_ipc_options options_;
  detail::ipc_batches::unpack_call unpack_;
};

/// Arrow files: Feather (version 2), Arrow IPC files and streams, chunks of LitData that end as one, and the
/// folders that Hugging Face's `datasets` writes with `save_to_disk` and keeps in its cache.
///
///     auto rows = arrow_ipc("imagenet/train") | shuffle |
///                 decode<field<"image.bytes", jpeg>, field<"label", arrow_value<std::int64_t>>>;
///     auto packed = arrow_ipc<unpack_zstd, unpack_lz4>("part-{00..15}.feather");
///
/// In: a pattern of paths (with `::` between patterns), which is `mapped_file`; a folder, whose files called
/// `*.arrow` are taken in the order of their names, which may differ in digits alone: they are those of one
/// split, and of what `save_to_disk` wrote those that `state.json` lists; or any storage, whose objects are
/// the files. Of several splits `arrow_ipc(folder, split("train"))` reads one; see `split`. The columns of
/// files are joined as `parquet` does. As template arguments the unpackers for compressed batches.
/// Out: an open sample with a member for each column; the fields of a struct are members of their own, with a
/// point between the names ("image.bytes"). `arrow_value<T>` reads numbers, texts, lists and nulls,
/// `arrow_array<T>` lists that are arrays; any other codec reads binary values and texts: `jpeg`, `identity`,
/// `json`. Dictionary values are followed. Unions and runs are passed over, and an error when they are asked
/// for.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. `starts` are those of the record
/// batches, so that `shuffle` with a window reads each one once. Making the plan reads the metadata of all
/// batches, some 500 bytes each.
/// Cost per sample: in a mapped file that is not compressed nothing is read or copied but what is asked for.
/// A batch that is compressed, in another storage, of the other byte order or with numbers that widen is read
/// once, its named columns alone, and shared by all workers; such batches are kept up to
/// `arrow_ipc_options::keep` bytes. No allocation in the steady state for batches in place.
/// Errors: errc::format, with file and offset, for what is no Arrow IPC, a file that is cut off, buffers that
/// are too short; with both files and types, when a run opens, for a column that is used and whose types have
/// no common one; with the row, for offsets that lead out of a buffer; errc::limit for a batch that is not in
/// place and exceeds `arrow_ipc_options::limit`; errc::argument for a compression without an unpacker, and
/// for a folder or storage of several splits or of a table, with what to write; errc::missing for a folder
/// without files, without the split, or without a file that names or `state.json` count; errc::io.
/// Threads: any number may evaluate, each with its own worker.
/// Source: Arrow, "Arrow columnar format", and format/{Message,Schema,File}.fbs.
template <unpacker... Unpack, storage Storage>
[[nodiscard]] arrow_ipc_source<Storage> arrow_ipc(Storage where, arrow_ipc_options options = {}) {
  return {detail::one_split(std::move(where), "arrow_ipc"), options, &detail::unpack_arrow_buffer<Unpack...>};
}
template <unpacker... Unpack, storage Storage>
[[nodiscard]] arrow_ipc_source<Storage> arrow_ipc(Storage where, const named_split& which,
                                                  arrow_ipc_options options = {}) {
  return {detail::one_split(std::move(where), which, "arrow_ipc"), options,
          &detail::unpack_arrow_buffer<Unpack...>};
}
template <unpacker... Unpack, detail::pattern_text Text>
[[nodiscard]] arrow_ipc_source<mapped_file> arrow_ipc(const Text& pattern, arrow_ipc_options options = {}) {
  return {mapped_file(detail::data_paths(detail::data_kind::arrow, pattern)), options,
          &detail::unpack_arrow_buffer<Unpack...>};
}
template <unpacker... Unpack, detail::pattern_text Text>
[[nodiscard]] arrow_ipc_source<mapped_file> arrow_ipc(const Text& pattern, const named_split& which,
                                                      arrow_ipc_options options = {}) {
  return {mapped_file(detail::data_paths(detail::data_kind::arrow, pattern, &which)), options,
          &detail::unpack_arrow_buffer<Unpack...>};
}
/// From a list of paths, in which braces are not expanded.
template <unpacker... Unpack>
[[nodiscard]] arrow_ipc_source<mapped_file> arrow_ipc(std::vector<std::string> paths,
                                                      arrow_ipc_options options = {}) {
  return {mapped_file(std::move(paths)), options, &detail::unpack_arrow_buffer<Unpack...>};
}

}  // namespace penstock::inline v0_1
