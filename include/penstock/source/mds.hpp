// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/mds.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/base/shared.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/dataset_format.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/mds_index.hpp>
#include <penstock/source/records/mds_sample.hpp>
#include <penstock/source/records/mds_shards.hpp>
#include <penstock/source/unpacked.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/file_names.hpp>
#include <penstock/storage/session_report.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// MosaicML's shards.
struct mds_shards_kind {
  static constexpr mds_kind kind{"mds", &mds_json::agree, false, nullptr};
};

}  // namespace detail

/// The source that `mds` makes of MosaicML's shards, and `litdata` of chunks, which are laid out alike.
template <storage Storage, class Kind = detail::mds_shards_kind>
class mds_source : public opens_as_plan<mds_source<Storage, Kind>> {
  using session_type = typename Storage::session;
  using files = detail::stored_in<detail::mds_files, Storage>;

 public:
  using penstock_part = source_tag;
  static constexpr std::string_view source_name = Kind::kind.source_name;

  /// A run's reader: a session, and the tables of the shards used so far.
  class reader {
   public:
    struct worker : detail::mds_worker<session_type> {
      std::uint64_t shard_begin = 0, shard_end = 0;  // the samples of the current shard, in the dataset
      const detail::mds_table* table = nullptr;
      std::array<detail::mds_coming, 64> coming{};  // the samples that come next
    };
    static constexpr bool has_latency = latent_session<session_type>;

    reader(shared<const files> known, bool unread)
        : files_(std::move(known)), session_(files_->where.connect()), tables_(files_), unread_(unread) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      move_to(w, p.index);
      try {
        w.begin(session_, unread_);
        sink(detail::mds_sample<detail::mds_worker<session_type>>(w));
        if (w.needs_confirm()) confirm(session_, w.at.shard);
      } catch (error& e) {
        if (w.needs_confirm()) confirm(session_, w.at.shard);
        w.at.add_context(e);
        throw;
      }
    }

    /// Finds the samples that come next, up to 64, and prefetches their table entries.
    void look_ahead(std::span<const position> next, worker& w) const noexcept
      requires prefetching_session<session_type>
    {
      for (std::size_t i = 0; i < std::min(next.size(), w.coming.size()); ++i) {
        const manifest::place place = files_->shards.locate(next[i].index);
        const detail::mds_table* const table = tables_.find(place.shard);
        const std::uint32_t* const entry = table == nullptr ? nullptr : table->begins.data() + place.sample;
        w.coming[i] = {entry, static_cast<object_id>(place.shard)};
        __builtin_prefetch(entry);
      }
    }
    /// Prefetches the first `maximum` bytes of one of these samples, if its shard is mapped.
    [[gnu::always_inline]] void prefetch_ahead(std::size_t i, const worker& w,
                                               std::uint64_t maximum) const noexcept
      requires prefetching_session<session_type>
    {
      if (i >= w.coming.size() || w.coming[i].entry == nullptr) return;
      const std::uint32_t* const entry = w.coming[i].entry;
      session_.prefetch(w.coming[i].shard, entry[0], std::min<std::uint64_t>(maximum, entry[1] - entry[0]));
    }

    /// The shard's name in the index and the sample's number in it: "shard.00000.mds:17".
    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = files_->locate(index);
      return detail::text({files_->names[place.shard], ":", place.sample});
    }
    void get_ready(std::span<const position> samples) const { tables_.get_ready(session_, samples); }
    [[nodiscard]] bool is_ready() const noexcept { return tables_.are_ready(); }
    /// The bytes of the sample; none if no column is used.
    template <class Sink>
    void ranges(std::uint64_t index, Sink&& sink) const {
      if (unread_) return;
      const manifest::place place = files_->locate(index);
      if constexpr (unknown_range_sink<Sink>)
        if (tables_.find(place.shard) == nullptr) return sink.unknown();
      const detail::mds_table& table = tables_.get(session_, place.shard);
      const std::uint64_t begin = table.begins[detail::to_size(place.sample)];
      sink(session_, static_cast<object_id>(place.shard), begin,
           table.begins[detail::to_size(place.sample + 1)] - begin);
    }
    /// That of the session.
    [[nodiscard]] session_report report() const { return report_of(session_); }
    void cancel_reads() const noexcept { end_reads(session_); }
    /// The mean size of a sample.
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
      return unread_ || files_->shards.samples() == 0 ? 0 : files_->shards.bytes() / files_->shards.samples();
    }

   private:
    void move_to(worker& w, std::uint64_t index) const {
      if (w.table == nullptr || index < w.shard_begin || index >= w.shard_end) {
        const manifest::place place = files_->locate(index);
        w.table = &tables_.get(session_, place.shard);
        w.shard_begin = place.first;
        w.shard_end = place.first + w.table->begins.size() - 1;
        w.at.enter(files_->columns[files_->columns_of[place.shard]], files_->path(place.shard),
                   files_->names[place.shard], static_cast<object_id>(place.shard));
      }
      w.at.sample = index - w.shard_begin;
      const std::uint32_t* const entry = w.table->begins.data() + w.at.sample;
      w.at.begin = entry[0];
      w.at.size = entry[1] - entry[0];
    }

    shared<const files> files_;
    mutable session_type session_;  // a session may be used by many threads
    detail::mds_tables tables_;
    bool unread_;
  };

  using element = detail::mds_sample<detail::mds_worker<session_type>>;

  mds_source(Storage where, const mds_index& index)
      : files_(new const files(where, index, where.names(), Kind::kind)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return files_->shards.samples(); }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return files_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return files_->shards; }
  /// Covers what the index says: each shard's name, size and samples, the columns, and checksums if there are
  /// some. Whether shards are compressed, and where they lie, makes no difference.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return files_->mark; }
  [[nodiscard]] std::string describe() const {
    std::string line = detail::text({source_name, "(", files_->shards.shards().size(), " shards, ",
                                     files_->shards.bytes(), " bytes): ", size(), " samples of "});
    const std::vector<mds_column>& first = files_->columns.front().all;
    for (std::size_t i = 0; i < first.size(); ++i)
      detail::append(line, {i == 0 ? "" : ", ", first[i].name, " (", first[i].encoding, ")"});
    return line;
  }
  [[nodiscard]] std::vector<source_field> fields() const {
    std::vector<source_field> made;
    for (const mds_column& one : files_->columns.front().all) made.push_back({one.name, one.encoding});
    return made;
  }
  /// Returns the reader. If no column is used, it reads the shards' tables alone.
  [[nodiscard]] reader connect(const projection& used = {}) const { return reader(files_, used.nothing()); }

 private:
  shared<const files> files_;
};

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
  return {file(detail::mds_paths(folder, index,
                                 [&](const std::vector<std::string>& packed, detail::mds_packing packing) {
                                   return detail::mds_copies<Unpack...>(packed, packing, options);
                                 })),
          index};
}
template <storage Storage>
[[nodiscard]] mds_source<Storage> mds(Storage where, const mds_index& index) {
  return {std::move(where), index};
}

/// Datasets of MosaicML Streaming for `dataset`, recognised by their `index.json`; with the unpackers that
/// compressed shards need.
template <unpacker... Unpack>
struct mds_format {
  static constexpr std::string_view name = "mds";
  using sources = std::variant<mds_source<file>>;

  unpacked_options copies = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return detail::index_has(there, "shards") ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] sources open(const dataset_listing& there) const {
    return mds<Unpack...>(there.path(), copies);
  }
};

}  // namespace penstock::inline v0_1
