// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/mds_writer.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/mds_files.hpp"

#include <penstock/codec/integer.hpp>
#include <penstock/codec/raw_number.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/core/name.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/stage/decode.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::mds_bytes;
using penstock_test::temp_dir;

namespace mds_writer_test {

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("source/mds_writer: writes the bytes that MosaicML's writer has written") {
  const penstock_test::mds_folder made;
  const auto data = ps::mds(made("images"));
  const auto reader = data.connect();
  typename decltype(data.connect())::worker w;
  ps::mds_writer out(made("again"), {{"pil", "pil"},
                                     {"png", "png"},
                                     {"jpg", "jpeg"},
                                     {"list", "list[png]"},
                                     {"more", "jpeg_array"},
                                     {"pils", "list[pil]"}});
  for (std::uint64_t i = 0; i < data.size(); ++i)
    reader.evaluate({0, i}, w, [&](const auto& sample) {
      std::vector<ps::mds_field> fields;
      for (std::size_t k = 0; k < sample.size(); ++k)
        fields.emplace_back(sample.name(k), sample.member(k).finish());
      out.write(fields);
    });
  CHECK_FALSE(std::filesystem::exists(made.dir / "again/index.json"));
  out.close();
  CHECK(content(made.dir / "again/index.json") == mds_bytes("images/index.json"));
  CHECK(content(made.dir / "again/shard.00000.mds") == mds_bytes("images/shard.00000.mds"));
}

TEST_CASE(
    "source/mds_writer: numbers and arrays are those of MosaicML's writer, and shards end where its do") {
  // The dataset `values` was written with hashes, which stand in its shards' descriptions: of these bytes a
  // shard's table and samples are compared.
  const penstock_test::mds_folder made;
  const ps::mds_index index = ps::read_mds_index(made("values") + "/index.json");
  std::vector<std::pair<std::string, std::string>> columns;
  for (const ps::mds_column& one : index.columns.at(0)) columns.emplace_back(one.name, one.encoding);
  // Without the names of its hashes a description has 15 bytes less.
  ps::mds_writer out(made("again"), columns, {.size_limit = 1500 - 15});
  for (std::uint64_t i = 0; i < 7; ++i) {
    const auto n = static_cast<std::int64_t>(i);
    const std::int64_t sign = i % 2 == 0 ? 1 : -1;
    std::vector<std::uint8_t> a(2 * i + 2);
    std::vector<std::int16_t> at(i + 1);
    std::vector<float> as(6);
    for (std::size_t k = 0; k < a.size(); ++k) a[k] = static_cast<std::uint8_t>(k);
    for (std::size_t k = 0; k < at.size(); ++k) at[k] = static_cast<std::int16_t>(static_cast<int>(k) - 2);
    for (std::size_t k = 0; k < 6; ++k) as[k] = static_cast<float>(k + i);
    std::string s, b;
    for (std::uint64_t k = 0; k < i; ++k) s += "\u00e9", b += static_cast<char>(k);
    const std::string si = std::to_string(sign * n), j = "{\"n\": " + std::to_string(i) + "}";
    const std::vector<std::string> sf{"0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"},
        sd{"0", "0.25", "0.5", "0.75", "1", "1.25", "1.5"};
    out.write({{"i", ps::mds_number(sign * n * 1'000'000'000'000)},
               {"u8", ps::mds_number(static_cast<std::uint8_t>(200 + i))},
               {"u16", ps::mds_number(static_cast<std::uint16_t>(60000 + i))},
               {"u32", ps::mds_number(static_cast<std::uint32_t>(4'000'000'000 + i))},
               {"u64", ps::mds_number(std::uint64_t{18'000'000'000'000'000'000u} + i)},
               {"i8", ps::mds_number(static_cast<std::int8_t>(n - 100))},
               {"i16", ps::mds_number(static_cast<std::int16_t>(n - 30000))},
               {"i32", ps::mds_number(static_cast<std::int32_t>(n - 2'000'000'000))},
               {"i64", ps::mds_number(n - 9'000'000'000'000'000'000)},
               {"f16", ps::mds_number(ps::half(static_cast<float>(i) / 4))},
               {"f32", ps::mds_number(static_cast<float>(i) / 8)},
               {"f64", ps::mds_number(static_cast<double>(i) / 16)},
               {"si", si},
               {"sf", sf[i]},
               {"sd", sd[i]},
               {"s", s},
               {"b", b},
               {"j", j},
               {"a", ps::mds_array_bytes<std::uint8_t>("ndarray", ps::extents(2, i + 1), a)},
               {"at", ps::mds_array_bytes<std::int16_t>("ndarray:int16", ps::extents(i + 1), at)},
               {"as", ps::mds_array_bytes<float>("ndarray:float32:2,3", ps::extents(2, 3), as)}});
  }
  out.close();
  const ps::mds_index again = ps::read_mds_index(made("again") + "/index.json");
  REQUIRE(again.shards.size() == index.shards.size());
  for (std::size_t k = 0; k < index.shards.size(); ++k) {
    const std::string& name = index.shards[k].name;
    const std::string theirs = mds_bytes("values/" + name), ours = content(made.dir / "again" / name);
    CHECK(again.shards[k].samples == index.shards[k].samples);
    CHECK(ours.substr(ours.find("\"version\": 2}")) == theirs.substr(theirs.find("\"version\": 2}")));
  }
}

TEST_CASE("source/mds_writer: samples of any size, and shards of the size that was asked for") {
  const temp_dir dir;
  const std::string folder = (dir / "deep/er").string();
  ps::mds_writer out(folder, {{"n", "int"}, {"t", "str"}}, {.size_limit = 400});
  for (std::int64_t i = 0; i < 30; ++i)
    out.write(
        {{"t", std::string(static_cast<std::size_t>(i == 20 ? 1000 : i), 'x')}, {"n", ps::mds_number(i)}});
  out.close();
  const auto data = ps::mds(folder);
  REQUIRE(data.size() == 30);
  for (const auto& one : data.manifest().shards()) CHECK((one.bytes <= 400 || one.samples == 1));
  std::uint64_t i = 0;
  for (auto&& one :
       (data | ps::decode<ps::field<"n", ps::raw_number<std::int64_t>>, ps::field<"t", ps::text>>).epoch(0)) {
    CHECK(ps::get<"n">(one) == static_cast<std::int64_t>(i));
    CHECK(ps::get<"t">(one).size() == (i == 20 ? 1000 : i));
    ++i;
  }
  CHECK_THAT(penstock_test::error_of([&] {
               ps::mds_writer(folder, {{"n", "int"}});
             }),
             contains("the folder has an index already"));
}

TEST_CASE("source/mds_writer: names are quoted as Python quotes them") {
  const temp_dir dir;
  ps::mds_writer out((dir / "d").string(), {{"a \"\u00e9\u4e2d", "int"}});
  out.write({{"a \"\u00e9\u4e2d", ps::mds_number(std::int64_t{1})}});
  out.close();
  CHECK_THAT(content(dir / "d/index.json"), contains(R"("a \"\u00e9\u4e2d")"));
  CHECK(ps::mds((dir / "d").string()).size() == 1);
}

TEST_CASE("source/mds_writer: what does not fit is refused, and the writer stays usable") {
  const temp_dir dir;
  const auto made = [&](std::vector<std::pair<std::string, std::string>> columns,
                        std::uint64_t limit = 1000) {
    return penstock_test::error_of(
        [&] { ps::mds_writer((dir / "x").string(), std::move(columns), {.size_limit = limit}); });
  };
  CHECK_THAT(made({}), contains("at least one column"));
  CHECK_THAT(made({{"a", "int"}, {"a", "str"}}), contains("two columns are called 'a'"));
  for (const char* const bad :
       {"pkl", "integer", "ndarray:", "ndarray:bool", "ndarray:int8:0", "ndarray:int8:65536,65536"})
    CHECK_THAT(made({{"a", bad}}), contains("is no encoding that is written"));
  CHECK_THAT(made({{"a", "int"}}, std::uint64_t{1} << 32), contains("less than 4 GiB"));

  ps::mds_writer out((dir / "d").string(), {{"n", "int"}, {"t", "str"}});
  const auto refused = [&](std::vector<ps::mds_field> fields) {
    return penstock_test::error_of([&] { out.write(fields); });
  };
  const auto one = ps::mds_number(std::int64_t{1});
  CHECK_THAT(refused({{"n", one}}), contains("no value for the column 't'"));
  CHECK_THAT(refused({{"n", one}, {"t", "x"}, {"t", "y"}}), contains("two values for the column 't'"));
  CHECK_THAT(refused({{"n", one}, {"t", "x"}, {"z", "y"}}), contains("there is no column 'z'"));
  CHECK_THAT(refused({{"n", "1"}, {"t", "x"}}),
             contains("a value of 'n' (int) has 8 bytes, and 1 were given"));
  CHECK(refused({{"n", one}, {"t", "x"}}).empty());
  out.close();
  CHECK(ps::mds((dir / "d").string()).size() == 1);
  CHECK_THAT(refused({{"n", one}, {"t", "x"}}), contains("this mds_writer is closed"));
  CHECK_THAT(penstock_test::error_of([&] { out.close(); }), contains("this mds_writer is closed"));

  const std::vector<float> two{1, 2};
  const auto array = [&](std::string_view encoding, const ps::extents& shape) {
    return penstock_test::error_of([&] { (void)ps::mds_array_bytes<float>(encoding, shape, two); });
  };
  CHECK_THAT(array("ndarray", ps::extents(3)), contains("was given 2 values"));
  CHECK_THAT(array("ndarray:int8", ps::extents(2)), contains("is of int8, but float32"));
  CHECK_THAT(array("ndarray:float32:1,2", ps::extents(2)), contains("does not fit the encoding"));
  CHECK_THAT(array("str", ps::extents(2)), contains("which has no arrays"));
}

}  // namespace mds_writer_test
