// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/mds.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/source/dataset_format.hpp>
#include <penstock/source/mds_index.hpp>
#include <penstock/source/record_files.hpp>
#include <penstock/source/unpacked.hpp>
#include <penstock/storage/file_names.hpp>

#include <unistd.h>

namespace penstock::inline v0_1 {

namespace detail {

/// MosaicML's shards.
struct mds_shards_kind {
  static constexpr mds_kind kind{"mds", &mds_json::agree, false, nullptr};
};

/// Shards of MDS's layout, for `record_files`.
template <class Kind>
struct mds_layout : mds_opening {
  static constexpr std::string_view source_name = Kind::kind.source_name;
  using files = mds_files;
  template <class Session>
  using opened = open_records<mds_files, Session>;

  explicit mds_layout(const mds_index& said) noexcept : mds_opening{said, Kind::kind} {}
};

}  // namespace detail

/// The source that `mds` makes of MosaicML's shards, and `litdata` of chunks, which are laid out alike.
template <storage Storage, class Kind = detail::mds_shards_kind>
using mds_source = record_files<detail::mds_layout<Kind>, Storage>;

namespace detail {

[[noreturn]] inline void no_mds_unpacker(const mds_shard& shard, const std::string& path) {
  throw error(errc::argument, {"the shard's compression is '", shard.compression,
                               "'; those of gzip, zstd, bzip2, brotli (br) and snappy are read: unpack the "
                               "dataset, or write it anew"})
      .in_file(path);
}

/// The compressions that leave no mark in a file, by their names in an index: "br", "br:11", "snappy".
enum class mds_packing { marked, brotli, snappy };
[[nodiscard]] inline mds_packing mds_packing_of(std::string_view compression) noexcept {
  compression = compression.substr(0, compression.find(':'));
  return compression == "br"       ? mds_packing::brotli
         : compression == "snappy" ? mds_packing::snappy
                                   : mds_packing::marked;
}

template <mds_packing Packing, unpacker... Unpack>
[[nodiscard]] std::string mds_copy(const std::string& packed, const unpacked_options& options) {
  static constexpr stream_kind unmarked{
      [](bytes_view) { return false; }, false,
      [](bytes_view) -> std::string_view { return Packing == mds_packing::brotli ? "brotli" : "snappy"; }};
  unpackers<Unpack...> unpack;
  return unpacked_path(packed, options, unpack.calls(), "mds",
                       Packing == mds_packing::marked ? tar_streams() : unmarked);
}
template <unpacker... Unpack>
[[nodiscard]] std::vector<std::string> mds_copies(const std::vector<std::string>& packed, mds_packing packing,
                                                  const unpacked_options& options) {
  return unpacked_paths(packed, options,
                        packing == mds_packing::brotli   ? &mds_copy<mds_packing::brotli, Unpack...>
                        : packing == mds_packing::snappy ? &mds_copy<mds_packing::snappy, Unpack...>
                                                         : &mds_copy<mds_packing::marked, Unpack...>);
}

/// The files of a dataset's shards: those that are not compressed where they are there, and of the others
/// what `copies_of(packed, packing)` returns for their paths: a copy, or the path itself of a file that is
/// not compressed.
template <class CopiesOf>
[[nodiscard]] std::vector<std::string> mds_paths(const std::string& path, const mds_index& index,
                                                 const CopiesOf& copies_of) {
  const std::string folder = files::local_path(path);
  std::vector<std::string> paths;
  struct packed_files {
    std::vector<std::string> paths;
    std::vector<std::size_t> places;
  };
  std::array<packed_files, 3> all;  // by packing
  for (std::size_t i = 0; i < index.shards.size(); ++i) {
    const mds_shard& one = index.shards[i];
    paths.push_back(folder + "/" + one.name);
    const bool other_file = one.packed_name != one.name;  // and not the same, compressed inside
    if (one.packed_name.empty() || (other_file && ::access(paths.back().c_str(), F_OK) == 0)) continue;
    packed_files& alike = all[static_cast<std::size_t>(mds_packing_of(one.compression))];
    alike.places.push_back(i);
    alike.paths.push_back(folder + "/" + one.packed_name);
  }
  for (std::size_t k = 0; k < all.size(); ++k) {
    const packed_files& alike = all[k];
    if (alike.paths.empty()) continue;
    const std::vector<std::string> copies = copies_of(alike.paths, static_cast<mds_packing>(k));
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const mds_shard& one = index.shards[alike.places[i]];
      if (copies[i] == alike.paths[i] && one.packed_name != one.name) no_mds_unpacker(one, alike.paths[i]);
      paths[alike.places[i]] = copies[i];
    }
  }
  return paths;
}

}  // namespace detail

/// Datasets of MosaicML Streaming: a folder with an `index.json` and MDS shards.
///
///     auto samples = mds("imagenet") | shuffle |
///                    decode<field<"image", identity>, field<"label", raw_number<std::int64_t>>>;
///     auto copies = mds<unpack_zstd>("compressed", {.folder = "cache"});  // or unpack_gzip, unpack_bzip2,
///                                                                          // unpack_brotli, unpack_snappy
///     auto others = mds(mapped_file("shard.{00000..00001}.mds"), read_mds_index("index.json"));
///
/// In: the folder's path; as template arguments the unpackers that may be needed, with the options of
/// `unpacked`; or any storage, whose objects are the shards that are not compressed, in the order of an
/// `mds_index`. A compressed shard is unpacked once, while the plan is made, to a copy; a shard that also is
/// there uncompressed is taken as it is.
/// Out: an open sample with a member for each column. `raw_number<T>` reads MosaicML's `int`, `uint8`,
/// `float32` and so on; `mds_array<T>` its arrays, `text` its `str`, `integer` and `floating` its `str_int`
/// and `str_float`, `jpeg` and `png` its images, `pil_pixels` its uncompressed ones, `mds_list` lists of
/// images, `json` and `json_field` its `json`. In `decode` a codec of this library that cannot read a
/// column's encoding is an error; codecs are told apart by their `codec_name`. Pickles are never executed,
/// and no codec gets them.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. `mosaic` gives its samples in
/// Streaming's order. Of shards that are not compressed, making the plan reads the index alone; a run reads a
/// shard's table of 4 bytes a sample when the shard is first used.
/// Cost per sample: in a mapped file (see `file`) nothing is copied; elsewhere a sample below 32 KiB is read
/// as a whole, and of a larger one the values that are asked for, straight into the batch. What is fetched
/// ahead is whole samples, since only a sample says where its values are. No allocation in the steady state.
/// Errors: errc::format, with shard and offset, for a shard that is not what its index says in size, samples
/// and columns; with the key too, for a sample whose columns do not fill it exactly; errc::limit for a
/// description of columns above 1 MiB; errc::argument for a storage whose objects are not called as the
/// index's shards are; errc::io. Of the checksums in the index only the fingerprint makes use: bytes are not
/// hashed.
/// Threads: any number may evaluate, each with its own worker.
/// Source: mosaicml-streaming, streaming/base/format/mds/{reader,writer,encodings}.py.
template <unpacker... Unpack>
[[nodiscard]] mds_source<file> mds(const std::string& folder, const unpacked_options& options = {}) {
  const mds_index index = read_mds_index(folder + "/index.json");
  const auto copies = [&](const std::vector<std::string>& packed, detail::mds_packing packing) {
    return detail::mds_copies<Unpack...>(packed, packing, options);
  };
  return {detail::mds_layout<detail::mds_shards_kind>(index), file(detail::mds_paths(folder, index, copies))};
}
template <storage Storage>
[[nodiscard]] mds_source<Storage> mds(Storage where, const mds_index& index) {
  return {detail::mds_layout<detail::mds_shards_kind>(index), std::move(where)};
}

/// Datasets of MosaicML Streaming for `dataset`, recognised by their `index.json`; with the unpackers that
/// compressed shards need.
template <unpacker... Unpack>
struct mds_format {
  static constexpr std::string_view name = "mds";

  unpacked_options copies = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return detail::index_has(there, "shards") ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] std::variant<mds_source<file>> open(const dataset_listing& there) const {
    return mds<Unpack...>(there.path(), copies);
  }
};

}  // namespace penstock::inline v0_1
