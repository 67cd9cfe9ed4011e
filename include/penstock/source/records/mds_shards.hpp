// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/record_format.hpp>
#include <penstock/storage/session_view.hpp>

namespace penstock::inline v0_1 {

// Source: mosaicml-streaming, streaming/base/format/mds/{reader,writer}.py.

/// A column of an MDS dataset: its name, its encoding as MosaicML writes it ("int", "ndarray:uint8:2,3"), and
/// the bytes of each of its values; 0 if they differ.
struct mds_column {
  std::string name;
  std::string encoding;
  std::uint32_t size = 0;
  friend bool operator==(const mds_column&, const mds_column&) = default;
};

/// A shard of an MDS dataset, as its index describes it. Names are relative to the index's folder.
struct mds_shard {
  std::string name;  ///< of the shard when it is not compressed
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;
  std::string compression;  ///< as in the index ("zstd:7"); empty: none
  std::string packed_name;  ///< of the compressed shard; empty if there is none
  std::uint64_t packed_bytes = 0;
  std::size_t columns = 0;    ///< which of the index's lists of columns
  std::uint64_t content = 0;  ///< a hash of columns, and of the checksums that the index has
};

/// What the `index.json` of an MDS dataset says.
struct mds_index {
  std::vector<mds_shard> shards;
  std::vector<std::vector<mds_column>> columns;  ///< the lists of columns that shards have; mostly one
};

namespace detail {

/// The columns of a shard, and how its samples begin.
struct mds_columns {
  std::vector<mds_column> all;
  std::uint32_t head = 0;  ///< bytes before the first value: the sizes of those that differ

  explicit mds_columns(std::vector<mds_column> columns) : all(std::move(columns)) {
    for (const mds_column& one : all)
      if (one.size == 0) head += 4;
  }
};

/// Throws `errc::format` if a codec of this name cannot read a column of this encoding.
void check_mds_codec(const mds_column& column, std::string_view codec);

/// The table of a shard, which says where its samples begin in its file, and where the last one ends. A
/// sample says itself where its values are.
class mds_table {
 public:
  mds_table(std::vector<std::uint32_t> begins, const mds_columns& columns) noexcept
      : begins_(std::move(begins)), columns_(&columns) {}

  [[nodiscard]] value_place record(std::uint64_t sample) const noexcept {
    const std::uint32_t* const at = begins_.data() + sample;
    return {at[0], at[1] - at[0]};
  }
  [[nodiscard]] std::uint64_t head() const noexcept { return columns_->head; }
  /// Finds where the values of a sample are, by at least its first `head()` bytes, or all there are.
  void divide(std::uint64_t sample, bytes_view bytes, std::span<value_place> places) const {
    const value_place all = record(sample);
    const auto refuse = [&](std::uint64_t what) {
      throw error(errc::format, {"the sample has ", all.size, " bytes, and its columns have ", what,
                                 ": the shard is damaged, or is not the one that its index describes"});
    };
    if (all.size < columns_->head) refuse(columns_->head);
    std::uint64_t at = columns_->head;
    const std::byte* sizes = bytes.data();
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::uint64_t size = columns_->all[i].size;
      if (size == 0) {
        size = load_little<std::uint32_t>(sizes);
        sizes += 4;
      }
      places[i] = {all.begin + at, size};
      at += size;
    }
    if (at != all.size) refuse(at);
  }
  void prefetch(std::uint64_t sample) const noexcept { __builtin_prefetch(begins_.data() + sample); }

 private:
  std::vector<std::uint32_t> begins_;
  const mds_columns* columns_;
};

/// A kind of shards that have MDS's layout.
struct mds_kind {
  std::string_view source_name;
  /// Whether the description in a shard has these columns.
  bool (*agrees)(std::string_view config, const std::vector<mds_column>& columns);
  /// Whether the size of a shard in the index may leave out the table in front of its samples.
  bool may_omit_table;
  /// Explains a shard that does not end where its last sample does, by its last bytes; nothing if it cannot.
  std::string_view (*explain)(bytes_view end);
};

/// What shards of MDS's layout are opened by.
struct mds_opening {
  const mds_index& index;
  const mds_kind& kind;
};

// The part of a name behind its folders, without a URL's query: folders of files may have a question mark.
std::string_view last_part(std::string_view name) noexcept;

/// The shards of an MDS dataset, as part of a plan. A run reads the table of each when it is first used.
class mds_files : public known_files {
 public:
  using index_type = mds_table;

  /// Throws `errc::argument` if the names of the storage are not those of the index's shards, or the index is
  /// not one that could have been read.
  mds_files(const mds_opening& opening, storage_facts where);
  /// Reads the beginning of a shard. Throws `errc::format` unless it is what the index says.
  [[nodiscard]] const mds_table* load(session_view session, std::size_t shard) const;

  [[nodiscard]] const std::vector<mds_column>& fields() const noexcept { return columns_.front().all; }
  [[nodiscard]] const std::vector<mds_column>& fields_of(std::size_t shard) const noexcept {
    return columns_[columns_of_[shard]].all;
  }
  /// The shard's name in the index and the sample's number in it: "shard.00000.mds:17".
  void append_key(std::string& to, std::size_t shard, std::uint64_t sample) const {
    append(to, {names_[shard], ":", sample});
  }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return mark_; }
  [[nodiscard]] std::string describe() const;
  static void check_codec(const mds_column& column, std::string_view codec) {
    check_mds_codec(column, codec);
  }

 private:
  std::vector<mds_columns> columns_;
  std::vector<std::size_t> columns_of_;  // by shard
  std::vector<std::string> names_;       // by shard: its name in the index
  std::uint64_t mark_ = 0;               // a hash of what the index says
  const mds_kind* kind_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/mds_shards.ipp>
#endif
