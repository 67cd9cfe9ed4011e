// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/iceberg_files.hpp>

#include <nlohmann/json.hpp>

namespace penstock::inline v0_1::detail {

/// A snapshot of a table: its files, and what the table says of them.
struct iceberg_snapshot {
  std::vector<std::string> paths;
  table_facts table;
};

/// Makes the facts of a snapshot's files.
class iceberg_facts {
 public:
  iceberg_facts(const iceberg_metadata& table, iceberg_files& files, const iceberg_type& columns)
      : files_(files) {
    made.names = table.names_in_files();
    made.schema = arrow_type::of_format("+s");
    made.part_values.resize(files_.data.size());
    made.must_have.resize(files_.data.size());
    std::size_t at = 0;
    for (const arrow_type& column : columns.type.children) {
      const std::size_t count = numbers_of(column);
      add(column, std::span(columns.numbers).subspan(at, count));
      at += count;
    }
    made.deleted = std::move(iceberg_deleted(table, files_).made);
  }

  table_facts made;

 private:
  // Which value of a file's partition a column is; none if the partition does not have it as it is.
  [[nodiscard]] std::optional<std::size_t> place_in(const iceberg_file& file, int column) const {
    const std::vector<iceberg_part>& parts = files_.parts(file.spec);
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i].source == column && parts[i].transform == "identity") return i;
    return std::nullopt;
  }
  void add(const arrow_type& column, std::span<const int> numbers) {
    // Files may leave out what is the same in all of their rows; where all have a value for it, it is not
    // read from them.
    constexpr std::array<std::string_view, 7> kept{"b", "i", "l", "u", "tdD", "tsu:", "tsu:UTC"};
    const auto has = [&](const iceberg_file& file) { return place_in(file, numbers.front()).has_value(); };
    if (!files_.data.empty() && std::ranges::find(kept, column.format) != kept.end() &&
        std::ranges::all_of(files_.data, has)) {
      made.part_types.push_back(column);
      for (std::size_t i = 0; i < files_.data.size(); ++i)
        made.part_values[i].push_back(files_.data[i].values[*place_in(files_.data[i], numbers.front())]);
      return;
    }
    for (std::size_t i = 0; i < files_.data.size(); ++i) {
      const auto place = place_in(files_.data[i], numbers.front());
      if (place && files_.data[i].values[*place]) made.must_have[i].push_back(column.name);
    }
    made.schema.children.push_back(column);
    made.field_ids.insert(made.field_ids.end(), numbers.begin(), numbers.end());
  }

  iceberg_files& files_;
};

/// `called`: the table, in messages.
[[nodiscard]] inline iceberg_snapshot read_iceberg(std::string_view called, iceberg_place where,
                                                   const table_objects& objects,
                                                   const iceberg_metadata::wish& asked) {
  const iceberg_metadata table(std::move(where), objects);
  const nlohmann::json snapshot = table.snapshot(asked);
  const iceberg_type columns = table.schema(snapshot, asked);
  iceberg_files files(table, snapshot);
  iceberg_snapshot found;
  for (const iceberg_file& one : files.data) found.paths.push_back(table.find(one.written));
  found.table = std::move(iceberg_facts(table, files, columns).made);
  const std::int64_t number = snapshot.is_null() ? -1 : number_at<std::int64_t>(snapshot, "snapshot-id");
  found.table.says = snapshot.is_null() ? text({"iceberg('", called, "', no snapshot)"})
                                        : text({"iceberg('", called, "', snapshot ", number, ")"});
  const std::string uuid = table.guarded([&] { return table.uuid(); });
  found.table.mark = mix64(hash_bytes(static_cast<std::uint64_t>(number), bytes_of(uuid)));
  return found;
}

}  // namespace penstock::inline v0_1::detail
