// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/litdata.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/codec/layouts/litdata_leaf.hpp>
#include <penstock/codec/layouts/mds_encoding.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/litdata_index.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/records/litdata_chunks.hpp>
#include <penstock/source/tokens.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// LitData's chunks: MDS's layout without a description.
struct litdata_kind {
  static constexpr mds_kind kind{"litdata", &litdata_json::agree, true, [](bytes_view end) {
                                   return is_end_of_litdata_rows(end) ? litdata_of_rows : std::string_view();
                                 }};
};

/// Throws unless chunks have samples for `litdata`.
inline void check_litdata_samples(const litdata_index& index) {
  if (index.tokens)
    throw error(errc::argument, "these chunks are tokens: read them with litdata_tokens<T>(folder, window)");
  if (index.rows) throw error(errc::argument, std::string(litdata_of_rows));
}

/// A chunk, or a copy of it without compression. `Forms` unpack it.
template <const stream_kind& (*Kind)() noexcept, unpacker... Forms>
[[nodiscard]] std::string litdata_copy(const std::string& path, const unpacked_options& options) {
  unpackers<Forms...> unpack;
  return unpacked_path(path, options, unpack.calls(), "litdata", Kind());
}
/// The files of the chunks, or copies of them without compression.
template <unpacker... Unpack>
[[nodiscard]] std::vector<std::string> litdata_paths(const std::string& folder, const litdata_index& index,
                                                     const unpacked_options& options) {
  return mds_paths(folder, index.chunks, [&](const std::vector<std::string>& packed, mds_packing) {
    return unpacked_paths(packed, options,
                          index.packed_samples
                              ? &litdata_copy<litdata_sample_streams, litdata_samples<Unpack>...>
                              : &litdata_copy<litdata_streams, litdata_frames<Unpack>...>);
  });
}

[[nodiscard]] inline std::uint64_t size_of_file(const std::string& path) {
  return file(std::vector{path}).connect().size(0);
}

/// Whether a chunk ends with rows of Arrow.
[[nodiscard]] inline bool has_litdata_rows(const std::string& path) {
  constexpr std::uint64_t mark = 8;
  const auto session = file(std::vector{path}).connect();
  const std::uint64_t size = session.size(0);
  if (size < mark) return false;
  const object_bytes end = session_view(session).range(0, size - mark, mark);
  return is_end_of_litdata_rows(end);
}

/// Whether `litdata_rows` reads a dataset: by what the index says, and the first chunk.
[[nodiscard]] inline bool has_litdata_rows(const std::string& folder, const litdata_index& index) {
  if (index.rows || index.tokens || index.chunks.shards.empty()) return index.rows;
  try {
    return has_litdata_rows(folder + "/" + index.chunks.shards.front().name);
  } catch (const error&) {  // one that is not there, or has another name because it is compressed
    return false;
  }
}

/// Throws errc::format unless files have as many rows as the index says of each.
inline void check_litdata_rows(const manifest& batches, const litdata_index& index,
                               const std::vector<std::string>& paths) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::uint64_t rows = 0;
    for (; at < batches.shards().size() && batches.shards()[at].name == paths[i]; ++at)
      rows += batches.shards()[at].samples;
    if (const std::uint64_t said = index.chunks.shards[i].samples; rows != said)
      throw error(errc::format, {"the chunk has ", rows, " rows, and the index says ", said})
          .in_file(paths[i]);
  }
}

/// Throws `errc::format` unless the tokens are of `T`, or of the other integer type of its size.
template <token_value T>
void check_litdata_tokens(const litdata_index& index) {
  const std::string_view format = index.chunks.columns[0][0].encoding;
  if (!index.tokens)
    throw error(errc::argument, "these chunks are samples, and not tokens: read them with litdata(folder)");
  const std::string_view stored = litdata_dtype(format);
  for (const std::string_view one :
       {mds_dtype<T>, mds_dtype<std::make_unsigned_t<T>>, mds_dtype<std::make_signed_t<T>>})
    if (stored == one) return;
  throw error(errc::format, {"the tokens are of ", stored.empty() ? format : stored, ", and ", mds_dtype<T>,
                             " was asked for: write litdata_tokens for their type"});
}

}  // namespace detail

/// The source that `litdata` makes of LitData's chunks.
template <storage Storage>
using litdata_source = mds_source<Storage, detail::litdata_kind>;

/// Datasets of LitData: a folder with an `index.json` and the chunks that `optimize` wrote.
///
///     auto samples = litdata("optimized") | shuffle |
///                    decode<field<"image", jpeg>, field<"label", raw_number<std::int64_t>>>;
///     auto copies = litdata<unpack_zstd>("compressed_chunks", {.folder = "cache"});
///
/// In: the folder's path, with the unpackers that may be needed as template arguments; or any storage, whose
/// objects are the chunks, not compressed, in the order of an index. A chunk that is compressed, as a whole
/// or inside, in batches or sample by sample, is unpacked once, while the plan is made, to a copy.
/// Out: an open sample with a member for each leaf, called by the keys and numbers on the way to it: "image",
/// "boxes.0". `raw_number<std::int64_t>` reads an `int`, `raw_number<double>` a `float`,
/// `raw_number<std::uint8_t>` a `bool`, `text` a `str`, `litdata_array<T>` arrays and tensors, `jpeg` and
/// `png` images, `pil_pixels` those of PIL, `mds_list` lists of JPEGs; files of other kinds, and lists and
/// dicts that LitData packs into one leaf (`json`), are their bytes. In `decode` a codec of this library that
/// cannot read a leaf's format is an error. Pickles are never executed, and no codec gets them.
/// Everything else is as for `mds`.
/// Errors: as for `mds`; those of `read_litdata_index`; errc::argument for chunks of tokens, see
/// `litdata_tokens`, and errc::argument or errc::format for rows of Arrow, see `litdata_rows`.
/// Source: litdata, streaming/{writer,item_loader,serializers}.py.
template <unpacker... Unpack>
[[nodiscard]] litdata_source<file> litdata(const std::string& folder, const unpacked_options& options = {}) {
  litdata_index index = read_litdata_index(folder + "/index.json");
  detail::check_litdata_samples(index);
  for (const mds_shard& one : index.chunks.shards) {
    if (one.packed_name != one.name) continue;  // it is not compressed inside
    const std::string path = folder + "/" + one.name;
    if (const std::uint64_t size = detail::size_of_file(path); size != one.bytes)
      throw error(errc::format, {"the chunk has ", size, " bytes, and its index says ", one.bytes})
          .in_file(path);
  }
  std::vector<std::string> paths = detail::litdata_paths<Unpack...>(folder, index, options);
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (mds_shard& one = index.chunks.shards[i]; one.packed_name == one.name)
      one.bytes = detail::size_of_file(paths[i]);
  return {detail::mds_layout<detail::litdata_kind>(index.chunks), file(std::move(paths))};
}
template <storage Storage>
[[nodiscard]] litdata_source<Storage> litdata(Storage where, const litdata_index& index) {
  detail::check_litdata_samples(index);
  for (const mds_shard& one : index.chunks.shards)
    if (one.packed_name == one.name)
      throw error(
          errc::argument,
          {"the chunk '", one.name,
           "' may be compressed inside, and only litdata(folder) makes copies that are not; if it is not, "
           "clear its packed_name"});
  return {detail::mds_layout<detail::litdata_kind>(index.chunks), std::move(where)};
}

/// Datasets of LitData whose chunks are rows of Arrow: what `optimize` makes of dicts of numbers, texts,
/// bytes, lists and dicts where pyarrow is installed.
///
///     auto rows = litdata_rows("dicts") | shuffle |
///                 decode<field<"text", text>, field<"id", arrow_value<std::int64_t>>>;
///     auto packed = litdata_rows<unpack_zstd>("compressed_dicts");
///
/// In: the folder's path, with the unpackers that batches may need as template arguments. `arrow_ipc` reads
/// such chunks in any storage. Out, kind, cost and threads: as for `arrow_ipc`. LitData takes the types of
/// each chunk from its values: a column that is null in all rows of a chunk, or missing, is null there, and
/// columns may stand in another order.
/// Errors: as for `arrow_ipc`; also errc::format for a chunk that holds samples and no rows, for one that
/// does not have as many rows as the index says, and, if it is used, for a column that has whole numbers in
/// one chunk and others in the next, as a list of 1 and one of 0.5; errc::argument for chunks of tokens.
/// Source: litdata, streaming/{writer,item_loader}.py.
template <unpacker... Unpack>
[[nodiscard]] arrow_ipc_source<mapped_file> litdata_rows(const std::string& path,
                                                         const arrow_ipc_options& options = {}) {
  const std::string folder = detail::files::local_path(path);
  const litdata_index index = read_litdata_index(folder + "/index.json");
  if (index.tokens) detail::check_litdata_samples(index);
  std::vector<std::string> paths;
  for (const mds_shard& one : index.chunks.shards) {
    const bool whole = !one.packed_name.empty() && one.packed_name != one.name;  // LitData packs no rows so
    paths.push_back(folder + "/" + (whole ? one.packed_name : one.name));
    if (whole || !detail::has_litdata_rows(paths.back()))
      throw error(
          errc::format,
          "the chunk holds samples, and no rows of Arrow: read the dataset with litdata(folder); if other "
          "chunks of it hold rows, write it anew with one type in each column")
          .in_file(paths.back());
  }
  arrow_ipc_source<mapped_file> made(mapped_file(paths), options, &detail::unpack_arrow_buffer<Unpack...>);
  detail::check_litdata_rows(made.manifest(), index, paths);
  return made;
}

/// Windows of the tokens that LitData wrote for its `TokensLoader`.
///
///     auto text = litdata_tokens<std::int32_t>("tokens", token_windows{.length = 2049, .targets = 0}) | batch(32);
///
/// In: the folder's path; chunks that are compressed as a whole need their unpacker, as in
/// `litdata_tokens<T, unpack_zstd>`, and are unpacked once. Out: what `raw_tokens` gives. With
/// `.length = block_size` and `.targets = 0` the windows are LitData's blocks: they ignore where items end,
/// and what is left at the end of a chunk is in none. Kind, cost and threads are those of `raw_tokens`.
/// Throws `errc::format` for tokens of another type than `T`, or the other integer type of its size, and,
/// with file and offset, for a chunk whose table does not match its size; `errc::argument` for chunks of
/// samples, or if no chunk is as long as a window; `errc::io`.
/// Source: litdata, streaming/item_loader.py (TokensLoader).
template <token_value T, unpacker... Unpack, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> litdata_tokens(const std::string& folder, Window window,
                                                                  const unpacked_options& options = {}) {
  const std::string path = folder + "/index.json";
  const litdata_index index = read_litdata_index(path);
  detail::in_file(path, [&] { detail::check_litdata_tokens<T>(index); });
  return {mapped_file(detail::litdata_paths<Unpack...>(folder, index, options)), window,
          detail::token_format::litdata};
}

/// Datasets of LitData for `dataset`, recognised by their `index.json`; with the unpackers that compressed
/// chunks need.
template <unpacker... Unpack>
struct litdata_format {
  static constexpr std::string_view name = "litdata";

  unpacked_options copies = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return detail::index_has(there, "chunks") ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] std::variant<litdata_source<file>, arrow_ipc_source<mapped_file>> open(
      const dataset_listing& there) const {
    if (detail::has_litdata_rows(there.path(), read_litdata_index(there.path() + "/index.json")))
      return litdata_rows<Unpack...>(there.path());
    return litdata<Unpack...>(there.path(), copies);
  }
};

}  // namespace penstock::inline v0_1
