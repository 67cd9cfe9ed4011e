// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/position.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/files/loaded_once.hpp>
#include <penstock/source/records/mds_sample.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

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

/// Where the samples of a shard begin in its file, and the last one's end.
struct mds_table {
  std::vector<std::uint32_t> begins;
};

/// Where a sample begins and ends that will be evaluated soon; null if its table is not loaded.
struct mds_coming {
  const std::uint32_t* entry = nullptr;
  object_id shard = 0;
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

/// The shards of an MDS dataset, as part of a plan.
struct mds_files : known_files {
  std::vector<mds_columns> columns;
  std::vector<std::size_t> columns_of;  // by shard
  std::vector<std::string> names;       // by shard: its name in the index
  std::uint64_t mark = 0;               // a hash of what the index says
  const mds_kind* kind;

  /// `stored`: the names of the storage, by shard. Throws `errc::argument` if they are not those of the
  /// index's shards, or the index is not one that could have been read.
  mds_files(const mds_index& index, std::span<const std::string> stored, const mds_kind& which);
  /// Reads the beginning of a shard. Throws `errc::format` unless it is what the index says.
  [[nodiscard]] const mds_table* read_table(session_view session, std::size_t shard) const;
};

/// The tables of a run, each of which is read when its shard is first used.
class mds_tables {
 public:
  explicit mds_tables(shared<const mds_files> files);
  mds_tables(mds_tables&&) noexcept;
  ~mds_tables();

  [[nodiscard]] const mds_table& get(session_view session, std::size_t shard) const {
    const mds_table* known = loaded_->find(shard);
    return known != nullptr ? *known : load(session, shard);
  }
  /// Null if it is not loaded.
  [[nodiscard]] const mds_table* find(std::size_t shard) const noexcept { return loaded_->find(shard); }
  void get_ready(session_view session, std::span<const position> samples) const;
  [[nodiscard]] bool are_ready() const noexcept { return loaded_->complete(); }

 private:
  [[nodiscard]] const mds_table& load(session_view session, std::size_t shard) const;

  shared<const mds_files> files_;
  owned<loaded_once<mds_table>> loaded_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/mds_shards.ipp>
#endif
