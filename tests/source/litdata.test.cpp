// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/litdata.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/litdata_files.hpp"
#include "support/resume_test.hpp"
#include "support/test_data.hpp"

#include <penstock/codec/identity.hpp>
#include <penstock/codec/litdata_array.hpp>
#include <penstock/codec/mds_array.hpp>
#include <penstock/codec/raw_number.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/core/name.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#if __has_include(<penstock/codec/unpack_zstd.hpp>) && __has_include(<zstd.h>)
#include <penstock/codec/unpack_zstd.hpp>
#define LITDATA_TEST_ZSTD 1
#endif

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::litdata_folder;

static_assert(ps::indexed_source<ps::litdata_source<ps::file>>);

namespace litdata_test {

/// Reads one leaf of all samples as text.
template <ps::fixed_string Name, class Codec, class Data, class Show>
std::string leaf(const Data& data, Show show) {
  std::string all;
  for (auto&& one : (data | ps::decode<ps::field<Name, Codec>> | ps::workers(0)).epoch(0))
    all.append(show(ps::get<Name>(one))) += ";";
  return all;
}
const auto plain = [](auto value) { return std::to_string(value); };
const auto as_text = [](auto value) { return std::string(value); };
const auto values_in = [](const auto& array) {
  std::string all;
  for (const auto value : array.values()) all += std::to_string(static_cast<int>(value)) + " ";
  return all + ps::to_string(array.shape());
};

TEST_CASE("source/litdata: every format, as LitData's writer wrote it") {
  const litdata_folder made;
  const auto data = ps::litdata(made("values"));
  REQUIRE(data.size() == 5);
  REQUIRE(data.starts()->size() == 4);
  CHECK(leaf<"i", ps::raw_number<std::int64_t>>(data, plain) ==
        "0;-1000000000000;-2000000000000;-3000000000000;-4000000000000;");
  CHECK(leaf<"f", ps::raw_number<double>>(data, plain) == "0.000000;0.125000;0.250000;0.375000;0.500000;");
  CHECK(leaf<"b", ps::raw_number<std::uint8_t>>(data, plain) == "1;0;1;0;1;");
  CHECK(leaf<"s", ps::text>(data, as_text).starts_with(";\u00e9;\u00e9\u00e9;"));
  const auto bytes = [](const auto& value) { return std::string(ps::text_of(ps::as_bytes(value))); };
  CHECK(leaf<"raw", ps::identity>(data, bytes).ends_with(std::string("\0\1\2\3;", 5)));
  CHECK(leaf<"t", ps::litdata_array<std::int16_t>>(data, values_in)
            .starts_with("0 1 " + ps::to_string(ps::extents(2, 1)) + ";0 1 2 3 " +
                         ps::to_string(ps::extents(2, 2))));
  CHECK(leaf<"v", ps::litdata_array<float>>(data, values_in)
            .ends_with("0 1 2 3 4 " + ps::to_string(ps::extents(5)) + ";"));
  CHECK(leaf<"n", ps::litdata_array<double>>(data, values_in)
            .ends_with("4 5 6 7 8 9 " + ps::to_string(ps::extents(2, 3)) + ";"));
  CHECK(leaf<"w", ps::litdata_array<std::uint8_t>>(data, values_in)
            .ends_with("0 1 2 3 4 " + ps::to_string(ps::extents(5)) + ";"));
  CHECK(leaf<"z", ps::litdata_array<std::int64_t>>(data, values_in) ==
        "0 " + ps::to_string(ps::extents(1)) + ";1 " + ps::to_string(ps::extents(1)) + ";2 " +
            ps::to_string(ps::extents(1)) + ";3 " + ps::to_string(ps::extents(1)) + ";4 " +
            ps::to_string(ps::extents(1)) + ";");
  const auto batches = data | ps::decode<ps::field<"n", ps::litdata_array<double>>> | ps::batch(5);
  for (auto&& b : batches.epoch(0)) CHECK(ps::get<"n">(b).shape() == ps::extents(5, 2, 3));
  CHECK(data.connect().key(3) == "chunk-0-1.bin:1");
  CHECK_THAT(data.describe(), contains("litdata(3 shards, 1217 bytes): 5 samples of i (int), f (float64)"));
}

TEST_CASE("source/litdata: leaves of a tree are called by the way to them") {
  const litdata_folder made;
  const auto data = ps::litdata(made("tree"));
  CHECK(leaf<"0", ps::raw_number<std::int64_t>>(data, plain) == "0;1;2;");
  CHECK(leaf<"1.0", ps::text>(data, as_text) == "s0;s1;s2;");
  CHECK(leaf<"1.1", ps::raw_number<std::int64_t>>(data, plain) == "0;1;2;");
}

TEST_CASE("source/litdata: a codec that does not read a leaf's format is refused, and so are pickles") {
  const litdata_folder made;
  const auto data = ps::litdata(made("values"));
  const auto refused = [&](auto stage) {
    return penstock_test::error_of([&] {
      for (auto&& one : (data | stage | ps::workers(0)).epoch(0)) (void)one;
    });
  };
  CHECK_THAT(refused(ps::decode<ps::field<"p", ps::identity>>),
             contains("holds pickles, which can run any program"));
  CHECK_THAT(refused(ps::decode<ps::field<"i", ps::text>>), contains("the column 'i' is of encoding 'int'"));
  CHECK_THAT(refused(ps::decode<ps::field<"s", ps::litdata_array<float>>>),
             contains("'str', which has no arrays"));
  CHECK_THAT(refused(ps::decode<ps::field<"t", ps::litdata_array<float>>>),
             contains("the array is of int16, but float32"));
  CHECK_THAT(refused(ps::decode<ps::field<"v", ps::litdata_array<double>>>),
             contains("of float32, but float64"));
  CHECK_THAT(refused(ps::decode<ps::field<"t", ps::mds_array<std::int16_t>>>),
             contains("'tensor', which has no arrays"));
}

TEST_CASE("source/litdata: any order, and a resumption after every batch") {
  const litdata_folder made;
  const auto number = [](const auto& one) { return static_cast<std::uint64_t>(-ps::get<"i">(one)); };
  engine_test::check_all_stops(ps::litdata(made("values")) | ps::shuffle(3) |
                               ps::decode<ps::field<"i", ps::raw_number<std::int64_t>>> | ps::map(number) |
                               ps::batch(2));
}

TEST_CASE(
    "source/litdata: chunks that are not what their index says, and kinds that are not read, are errors") {
  const litdata_folder made;
  CHECK_THAT(
      penstock_test::error_of([&] { (void)ps::litdata(made("framed")); }),
      contains("the chunks are compressed inside, by batch: write them with compression_level=\"chunk\""));
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::litdata(made("tokens")); }),
             contains("read them with litdata_tokens<T>(folder, window)"));
  const std::string path = made("values") + "/chunk-0-0.bin";
  std::string bytes(448, '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), 448);
  const auto with = [&](std::string_view content) {
    std::ofstream(path, std::ios::binary) << content;
    return penstock_test::error_of([&] { (void)leaf<"s", ps::text>(ps::litdata(made("values")), as_text); });
  };
  CHECK(with(bytes).empty());
  CHECK_THAT(with(bytes.substr(0, 440)), contains("the shard has 440 bytes, and its index says 448"));
  // Versions before 0.2.57 do not count the table of 16 bytes.
  CHECK(with(bytes).empty());
  ps::litdata_index old = ps::read_litdata_index(made("values") + "/index.json");
  for (auto& one : old.chunks.shards) one.bytes -= 4 * (one.samples + 2);
  ps::memory_files memory;
  for (const auto& one : old.chunks.shards) {
    std::ifstream in(made("values") + "/" + one.name, std::ios::binary);
    memory.add(one.name, std::string(std::istreambuf_iterator<char>(in), {}));
  }
  CHECK(leaf<"b", ps::raw_number<std::uint8_t>>(ps::litdata(memory, old), plain) == "1;0;1;0;1;");
  std::string damaged = bytes;
  damaged[4] = '\7';  // where the first sample begins
  CHECK_THAT(with(damaged), contains("sample 0 of the shard begins at 7"));
  // What BinaryWriter makes of dicts where pyarrow is installed: a table of nothing, and a file of Arrow.
  std::string rows("\2\0\0\0\20\0\0\0\20\0\0\0\20\0\0\0", 16);
  rows += std::string(424, 'a') + std::string("LDARW01\0", 8);
  CHECK_THAT(with(rows),
             contains("the chunks hold rows of Arrow, as BinaryWriter writes dicts of plain values"));
  std::filesystem::remove(path);
  CHECK_THAT(
      penstock_test::error_of([&] { (void)leaf<"s", ps::text>(ps::litdata(made("values")), as_text); }),
      contains("chunk-0-0.bin"));
}

TEST_CASE("source/litdata: tokens, in blocks and in windows") {
  const litdata_folder made;
  const auto blocks =
      ps::litdata_tokens<std::int32_t>(made("tokens"), ps::token_windows{.length = 7, .targets = 0});
  REQUIRE(blocks.size() == 3 + 3 + 2);  // of chunks of 21, 25 and 14 tokens
  CHECK(blocks.tokens() == 60);
  std::vector<std::int32_t> firsts;
  for (auto&& b : (blocks | ps::batch(1) | ps::workers(0)).epoch(0)) firsts.push_back(b.values()(0, 0));
  CHECK(firsts == std::vector<std::int32_t>{0, 7, 104, 200, 207, 302, 400, 407});
  CHECK(ps::litdata_tokens<std::uint32_t>(made("tokens"), ps::token_window<7, 0>{}).size() == 8);
  CHECK_THAT(blocks.describe(), contains("litdata_tokens(3 files, 60 tokens): 8 windows"));
  CHECK_THAT(penstock_test::error_of([&] {
               (void)ps::litdata_tokens<std::uint16_t>(made("tokens"), ps::token_windows{.length = 7});
             }),
             contains("the tokens are of int32, and uint16 was asked for"));
  CHECK_THAT(penstock_test::error_of([&] {
               (void)ps::litdata_tokens<std::int32_t>(made("values"), ps::token_windows{.length = 7});
             }),
             contains("read them with litdata(folder)"));
  made.write("tokens/chunk-0-1.bin", std::string("\2\0\0\0\20\0\0\0\22\0\0\0\25\0\0\0abcde", 21));
  CHECK_THAT(penstock_test::error_of([&] {
               (void)ps::litdata_tokens<std::int32_t>(made("tokens"), ps::token_windows{.length = 7});
             }),
             contains("the chunk has 5 bytes of tokens"));
  made.write("tokens/chunk-0-1.bin", "x");
  CHECK_THAT(penstock_test::error_of([&] {
               (void)ps::litdata_tokens<std::int32_t>(made("tokens"), ps::token_windows{.length = 7});
             }),
             contains("the chunk ends within its table"));
}

#ifdef LITDATA_TEST_ZSTD
TEST_CASE("source/litdata: chunks that are compressed as a whole are unpacked once") {
  const litdata_folder made;
  const auto data = ps::litdata<ps::unpack_zstd>(made("zstd"), {.folder = made("copies")});
  REQUIRE(data.size() == 20);
  CHECK(leaf<"s", ps::text>(data, as_text).ends_with("line 18;line 19;"));
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::litdata(made("zstd")); }), contains("unpack_zstd"));
  const auto tokens = ps::litdata_tokens<std::int32_t, ps::unpack_zstd>(
      made("packed_tokens"), ps::token_windows{.length = 7, .targets = 0}, {.folder = made("copies")});
  CHECK(tokens.size() == 8);
}
#endif

TEST_CASE("source/litdata: a real dataset, of which most chunks are missing") {
  const auto folder = penstock_test::test_data("litdata");
  if (!folder) {
    WARN("skipped: PENSTOCK_TEST_DATA names no folder with litdata");
    return;
  }
  const auto data = ps::litdata(folder->string());
  REQUIRE(data.size() == 160);
  const auto reader = data.connect();
  typename decltype(data.connect())::worker w;
  for (std::uint64_t i = 0; i < 10; ++i)
    reader.evaluate({0, i}, w, [](const auto& one) {
      const ps::bytes_view jpeg = one.member(0).finish();
      CHECK(ps::text_of(jpeg).substr(0, 3) == "\xff\xd8\xff");
      CHECK(ps::text_of(jpeg).substr(jpeg.size() - 2) == "\xff\xd9");
    });
  CHECK_THAT(penstock_test::error_of([&] {
               reader.evaluate({0, 10}, w, [](const auto&) {});
             }),
             contains("chunk-1-0.bin"));
  CHECK_THAT(penstock_test::error_of([&] {
               for (auto&& one : (data | ps::decode<ps::field<"1", ps::identity>> | ps::workers(0)).epoch(0))
                 (void)one;
             }),
             contains("holds pickles"));
}

}  // namespace litdata_test
