// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/files/parallel.hpp>
#include <penstock/source/tables/parquet_files.hpp>
#include <penstock/source/tables/parquet_prune.hpp>
#include <penstock/source/where.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

inline void parquet_files::keep(const column_filter& filter, session_view session,
                                const parquet_limits& limits) {
  const std::size_t leaf = find_leaf(filter.column);
  if (leaf == all_leaves->size()) {
    std::string there;
    for (const std::string& one : *all_leaves) append(there, {there.empty() ? "" : ", ", one});
    throw error(errc::argument, {"there is no column '", filter.column, "' to choose rows by, only ", there});
  }
  check_conflicts(*conflicts, filter.column);
  const bound_filter bound(filter, type_of(leaf));
  const bool in_folders = leaf >= stored_leaves();
  const std::size_t count = group.size();
  struct outcome {
    bool all = false;
    std::vector<std::uint32_t> rows;
  };
  std::vector<outcome> found(count);
  const std::byte zero{};
  const arrow_type nothing = arrow_type::of_format("n");
  arrow_column absent;
  absent.type = &nothing;
  constexpr std::size_t max_in_flight = 8;
  for_each_in_parallel(count, std::min(count, max_in_flight), [&](std::size_t shard) {
    const std::uint64_t samples = shards.shards()[shard].samples;
    outcome& mine = found[shard];
    if (samples == 0) return;
    if (in_folders) {
      // What is in the file, too, must agree.
      const std::vector<std::vector<int>>& stored = *(*files)[object(shard)].columns;
      if (leaf < stored.size() && !stored[leaf].empty())
        (void)load(session, shard, {&leaf, 1}, {&leaf, 1}, limits);
      const arrow_column column = hive->column(object(shard), leaf - stored_leaves(), 1, &zero);
      mine.all = bound.holds(arrow_cell(column, 0));
      return;
    }
    const parquet_file& file = (*files)[object(shard)];
    const std::vector<int>& columns = (*file.columns)[leaf];
    if (columns.empty()) {  // the file does not have the column, which is null there
      mine.all = bound.holds(arrow_cell::null_of(absent));
      return;
    }
    parquet_reach within;
    try {
      within = ask_parquet([&] {
        // Of a value that several columns store, none of them says enough.
        if (columns.size() != 1)
          return parquet_reach::any(
              static_cast<std::uint64_t>(file.metadata->RowGroup(group[shard])->num_rows()));
        return parquet_reach::of(file.metadata, group[shard], columns.front(), type_of(leaf), bound, session,
                                 object(shard));
      });
      mine.all = within.all;
      if (within.all || within.none()) return;
    } catch (error& e) {
      session.confirm(object(shard));
      e.in_file(path(shard));
      throw;
    }
    const auto batch = load(session, shard, {&leaf, 1}, {&leaf, 1}, limits);
    for (std::uint64_t i = 0; i < samples; ++i) {
      const std::uint64_t row = row_of(shard, i);
      if (within.may(row) && bound.holds(batch->leaves.front().at(row)))
        mine.rows.push_back(static_cast<std::uint32_t>(row));
    }
    if (mine.rows.size() == samples) {
      mine.all = true;
      mine.rows = {};
    }
  });
  made_of made;
  for (std::size_t shard = 0; shard < count; ++shard) {
    if (!found[shard].all && found[shard].rows.empty()) continue;
    manifest::shard one = shards.shards()[shard];
    if (!found[shard].all) {
      const std::uint64_t before = one.samples;
      one.samples = found[shard].rows.size();
      one.payload = static_cast<std::uint64_t>(
          static_cast<double>(one.payload) * static_cast<double>(one.samples) / static_cast<double>(before));
      std::uint64_t which = one.content;
      for (const std::uint32_t row : found[shard].rows) which = mix64(which ^ row);
      one.content = which;
    }
    made.shards.push_back(std::move(one));
    made.versions.push_back(versions[shard]);
    made.objects.push_back(object(shard));
    made.group.push_back(group[shard]);
    made.rows_before.push_back(rows_before[shard]);
    made.rows.push_back(found[shard].all ? rows[shard] : std::move(found[shard].rows));
  }
  append(filters, {" | ", filter.spelled()});
  take(std::move(made));
}

}  // namespace penstock::inline v0_1::detail
