// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/parquet.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/format_peers.hpp"
#include "support/temp_dir.hpp"

#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/codec/npz.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/core/random.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/parquet_writer.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ps = penstock;

namespace parquet_agreement_test {

constexpr int seeds = 24;

/// A value of a column, read with the codec for it.
const auto value_text = [](std::string_view kind, const auto& value) -> std::string {
  using namespace penstock_test;
  const auto array = [](const auto& one) { return array_text(one); };
  const auto number = [](const auto& one) { return number_text(one); };
  if (kind == "t")
    return decoded_text(ps::arrow_value<std::string>{}, value,
                        [](const std::string& one) { return quoted_hex(ps::bytes_of(one)); });
  if (kind == "bool")
    return decoded_text(ps::arrow_value<bool>{}, value, [](bool one) { return one ? "true" : "false"; });
  if (kind == "im") return decoded_text(ps::png{}, value, array);
  if (kind == "gray") return decoded_text(ps::png_as<ps::gray8>{}, value, array);
  if (kind.front() == 'z')
    return with_dtype(kind.substr(1), [&]<class T>() { return decoded_text(ps::npz<T>{}, value, array); });
  if (kind.front() == 'n')
    return with_dtype(kind.substr(1), [&]<class T>() { return decoded_text(ps::npy<T>{}, value, array); });
  return with_dtype(kind, [&]<class T>() {
    if constexpr (std::is_same_v<T, ps::half>)
      return std::string("none");  // Petastorm has no codec for it
    else
      return decoded_text(ps::arrow_value<T>{}, value, number);
  });
};

/// A value for a column of this type, which owns what the writer is shown, and its printed form.
struct random_value {
  std::string bytes;
  std::vector<std::int32_t> whole;
  std::vector<float> real;
  ps::parquet_value value;
  std::string text = "null";

  random_value(ps::rng& random, std::string_view type) {
    using namespace penstock_test;
    if (random.below(8) == 0) return;  // null
    constexpr std::uint64_t sizes[] = {0, 1, 2, 9, 300};
    const std::uint64_t size = type.ends_with("[3]") ? 3 : sizes[random.below(std::size(sizes))];
    if (type == "bool") {
      value = random.below(2) == 0;
      text = std::get<bool>(value.get()) ? "true" : "false";
    } else if (type == "string" || type == "binary" || type == "large_binary") {
      for (std::uint64_t i = 0; i < size; ++i)
        bytes += type == "string" ? "\u00e9" : std::string(1, static_cast<char>(random.below(256)));
      value = bytes;
      text = quoted_hex(ps::bytes_of(bytes));
    } else if (type.find("int32>") != type.npos) {
      for (std::uint64_t i = 0; i < size; ++i) whole.push_back(static_cast<std::int32_t>(random()));
      value = whole;
      text = list_of(whole);
    } else if (type.find("float>") != type.npos) {
      for (std::uint64_t i = 0; i < size; ++i)
        real.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
      value = real;
      text = list_of(real);
    } else if (type == "float") {
      number(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    } else if (type == "double") {
      number(std::bit_cast<double>(random()));
    } else if (type == "int8") {
      number(static_cast<std::int8_t>(random()));
    } else if (type == "uint16") {
      number(static_cast<std::uint16_t>(random()));
    } else if (type == "uint64") {
      number(random());
    } else if (type == "int64") {
      number(static_cast<std::int64_t>(random()));
    } else {  // a day or a time, within Python's years
      number(static_cast<std::int64_t>(random.below(1000000)));
    }
  }

 private:
  template <class T>
  void number(T one) {
    value = one;
    text = penstock_test::number_text(one);
  }
  template <class T>
  static std::string list_of(const std::vector<T>& values) {
    std::string all = "[";
    for (const T one : values) all += (all.size() == 1 ? "" : ",") + penstock_test::number_text(one);
    return all + "]";
  }
};

/// Writes a file of random columns and values; returns what is in it, as tools/arrow_oracles.py prints it.
std::string write_file(const std::string& path, std::uint64_t seed) {
  constexpr const char* types[] = {"bool",
                                   "int8",
                                   "uint16",
                                   "int64",
                                   "uint64",
                                   "float",
                                   "double",
                                   "string",
                                   "binary",
                                   "large_binary",
                                   "date32[day]",
                                   "timestamp[ms]",
                                   "timestamp[us]",
                                   "timestamp[ns]",
                                   "list<int32>",
                                   "list<float>",
                                   "fixed_size_list<float>[3]"};
  constexpr const char* compressions[] = {"none", "snappy", "gzip", "zstd"};
  constexpr std::uint64_t groups[] = {1, 7, 1000}, counts[] = {1, 20, 300};
  ps::rng random(seed, 3, 4);
  std::vector<std::pair<std::string, std::string>> columns;
  std::string all;
  for (std::uint64_t i = 0, count = 1 + random.below(7); i < count; ++i) {
    columns.emplace_back("c" + std::to_string(i), types[random.below(std::size(types))]);
    all += (i == 0 ? "" : "\t") + columns.back().first;
  }
  all += "\n";
  ps::parquet_writer out(
      path, columns, {.group_rows = groups[random.below(3)], .compression = compressions[random.below(4)]});
  for (std::uint64_t row = 0, rows = counts[random.below(3)]; row < rows; ++row) {
    std::vector<random_value> values;
    values.reserve(columns.size());
    std::vector<ps::parquet_writer::field> fields;
    for (const auto& [name, type] : columns) {
      values.emplace_back(random, type);
      fields.emplace_back(name, values.back().value);
      all += (values.size() == 1 ? "" : "\t") + values.back().text;
    }
    out.write(fields);
    all += "\n";
  }
  out.close();
  return all;
}

}  // namespace parquet_agreement_test

TEST_CASE("source/parquet: what Petastorm's codecs make, value for value") {
  const auto peer = penstock_test::format_peer::find("petastorm");
  if (!peer) return;
  const penstock_test::temp_dir dir;
  peer->run("write petastorm", dir.path(), 0, parquet_agreement_test::seeds);
  for (int seed = 0; seed < parquet_agreement_test::seeds; ++seed) {
    INFO("seed " << seed);
    penstock_test::check_peer_values(ps::parquet((dir / std::to_string(seed)).string()), dir.path(), seed,
                                     parquet_agreement_test::value_text);
  }
}

TEST_CASE("source/parquet: what Hugging Face's datasets write to Parquet, value for value") {
  const auto peer = penstock_test::format_peer::find("datasets");
  if (!peer) return;
  const penstock_test::temp_dir dir;
  peer->run("write parquet_datasets", dir.path(), 0, parquet_agreement_test::seeds);
  for (int seed = 0; seed < parquet_agreement_test::seeds; ++seed) {
    INFO("seed " << seed);
    const std::string expected = penstock_test::peer_values(dir.path(), seed, ".expected");
    REQUIRE_FALSE(expected.empty());
    const auto rows = ps::parquet((dir / std::to_string(seed)).string());
    for (const std::size_t workers : {0u, 2u})
      CHECK(penstock_test::first_difference(penstock_test::arrow_rows_text(rows, workers), expected) == "");
  }
}

TEST_CASE(
    "source/parquet_writer: what is written, pyarrow and Hugging Face's datasets read, value for value") {
  const penstock_test::temp_dir dir;
  std::vector<std::string> written;
  for (int seed = 0; seed < parquet_agreement_test::seeds; ++seed)
    written.push_back(parquet_agreement_test::write_file((dir / std::to_string(seed)).string(),
                                                         static_cast<std::uint64_t>(seed)));
  for (const std::string name : {"petastorm", "datasets"}) {
    const auto peer = penstock_test::format_peer::find(name);
    if (!peer) continue;
    peer->run("read " + name, dir.path(), 0, parquet_agreement_test::seeds);
    for (int seed = 0; seed < parquet_agreement_test::seeds; ++seed) {
      INFO(name << ", seed " << seed);
      CHECK(penstock_test::first_difference(penstock_test::peer_values(dir.path(), seed, ".read"),
                                            written[static_cast<std::size_t>(seed)]) == "");
    }
  }
}
