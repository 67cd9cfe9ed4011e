// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The log of a Delta Lake table: [what is read][bytes]
// 0: commits, one action a line, of which a byte 0 ends one; deletion vectors are in the log, or are the file
// of a second part. 1: a deletion vector. 2: one in Z85, and the name of a file of them. 3: values of
// partitions.

#include <penstock/source/tables/delta_table.hpp>

#include "support/fuzz.hpp"

#include <penstock/core/arrow_type.hpp>
#include <penstock/source/tables/deletion_vector.hpp>
#include <penstock/source/tables/table_facts.hpp>
#include <penstock/source/tables/table_objects.hpp>
#include <penstock/storage/memory_files.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

void check_rows(const std::vector<std::uint64_t>& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) must(rows[i - 1] < rows[i], "deleted rows ascend");
}

void check(const ps::detail::delta_state& state, const ps::detail::table_facts& facts,
           const std::vector<std::string>& paths) {
  const std::size_t columns = facts.schema.children.size(), parts = facts.part_types.size();
  must(paths.size() == state.files.size(), "each file has a path");
  must(facts.part_values.size() == paths.size(), "each file has values");
  for (const auto& values : facts.part_values) must(values.size() == parts, "each partition has a value");
  must(facts.deleted.size() == paths.size(), "each file may have rows that are deleted");
  for (const auto& rows : facts.deleted) check_rows(rows);
  must(facts.stored_as.size() == columns, "each column may have another name in files");
  must(facts.stored_types.empty() || facts.stored_types.size() == columns, "each column has a type in files");
  must(facts.field_ids.empty() || facts.field_ids.size() == columns, "each column has a number");
  for (const ps::arrow_type& part : facts.part_types) must(!part.name.empty(), "a partition has a name");
  touch(facts.says);
  touch(facts.schema.text());

  // A file that has all columns under its own names, then under the table's.
  ps::arrow_type file = facts.schema;
  for (std::size_t i = 0; i < facts.stored_types.size(); ++i) file.children[i] = facts.stored_types[i];
  for (std::size_t i = 0; i < columns; ++i) {
    const std::vector<std::string>& called = facts.stored_as[i];
    if (!called.empty()) file.children[i].name = called.front();
  }
  ps::detail::name_as_in_table(facts, file, {});
  must(file.children.size() == columns, "columns stay");
  for (std::size_t i = 0; i < columns; ++i)
    for (std::size_t k = 0; k < columns; ++k) {
      const auto one = ps::detail::fit_in_table(file.children[i], facts.schema.children[k]);
      const auto other = ps::detail::fit_in_table(facts.schema.children[k], file.children[i]);
      must(one != ps::detail::table_fit::converted || other != one, "what is widened is wider");
    }
  touch(file.text());
}

std::string read_log(std::string_view text, std::string_view beside) {
  std::string all;
  all += outcome([&] {
    ps::detail::delta_state state;
    for (std::size_t version = 0; !text.empty(); ++version) {
      const std::string_view commit = text.substr(0, text.find('\0'));
      text.remove_prefix(std::min(commit.size() + 1, text.size()));
      ps::detail::delta_lines("t/_delta_log/" + std::to_string(version), commit,
                              [&](const nlohmann::json& one) {
                                state.apply(one);
                                return true;
                              });
      state.version = version;
    }
    state.finish("t");
    const std::vector<std::string> paths = state.paths("t");
    const ps::detail::table_objects objects(ps::memory_files().add("t/v", beside).add("v", beside));
    const ps::detail::table_facts facts = state.facts("t", objects);
    check(state, facts, paths);
    for (const std::string& path : paths) all += path;
    all += std::to_string(facts.mark) + facts.schema.text();
  });
  return all;
}

void read_vector(ps::bytes_view bytes) {
  constexpr std::uint64_t maximum = 1 << 16;
  outcome([&] {
    const std::vector<std::uint64_t> rows = ps::detail::read_deletion_vector(bytes, maximum);
    must(rows.size() <= maximum, "rows stay within their limit");
    check_rows(rows);
  });
}

void read_z85(std::string_view text) {
  outcome([&] {
    const std::vector<std::byte> bytes = ps::detail::from_z85(text);
    must(bytes.size() * 5 == text.size() * 4, "five characters are four bytes");
    std::string again;
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
      std::uint32_t value = 0;
      for (std::size_t k = 0; k < 4; ++k) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i + k]);
      std::string five;
      for (int k = 0; k < 5; ++k, value /= 85)
        five +=
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"[value %
                                                                                                    85];
      again.append(five.rbegin(), five.rend());
    }
    must(again == text, "a text in Z85 is that of its bytes");
    read_vector({bytes.data(), bytes.size()});
  });
  outcome([&] {
    const std::string name = ps::detail::deletion_vector_name(text);
    must(name.ends_with(".bin"), "a file of deletion vectors has its ending");
    must(name.size() == text.size() - 20 + std::string_view("/deletion_vector_.bin").size() + 36 -
                            (text.size() == 20 ? 1 : 0),
         "a name is a prefix and a UUID");
  });
}

void read_value(std::string_view text) {
  constexpr std::int64_t day = 86'400'000'000;
  const auto date = ps::detail::days_of_date(text);
  if (date) must(*date > -40'000'000 && *date < 40'000'000, "a day is one of a calendar");
  const auto time = ps::detail::delta_time(text);
  if (time && text.size() >= 10) {
    const auto its = ps::detail::days_of_date(text.substr(0, 10));
    must(its && *time >= *its * day && *time < (*its + 1) * day, "a time is one of its day");
  }
  outcome([&] { touch(ps::detail::delta_path("t", text)); });
  outcome([&] { touch(ps::detail::delta_type(std::string(text), "x", false).text()); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned what = in.number() % 4;
  if (what == 0) {
    const std::string_view beside = ps::text_of(in.take(in.number()));
    const std::string_view text = ps::text_of(in.rest());
    const std::string first = read_log(text, beside);
    must(read_log(text, beside) == first, "what is read again is the same");
  } else {
    const ps::bytes_view bytes = in.rest();
    if (what == 1) read_vector(bytes);
    if (what == 2) read_z85(ps::text_of(bytes));
    if (what == 3) read_value(ps::text_of(bytes));
  }
  return 0;
}
