// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/litdata.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/litdata_files.hpp"
#include "support/members.hpp"
#include "support/resume_test.hpp"
#include "support/test_data.hpp"

#include <penstock/codec/arrow_value.hpp>
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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#if __has_include(<penstock/codec/unpack_zstd.hpp>) && __has_include(<zstd.h>)
#include <penstock/codec/unpack_zstd.hpp>

#include <zstd.h>
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
  return penstock_test::members_text<Name, Codec>(data, show);
}
const auto plain = [](auto value) { return std::to_string(value); };
const auto as_text = [](auto value) { return std::string(value); };
/// The rows of the dataset "rows" as text.
template <class Data>
std::string rows(const Data& data) {
  std::string all;
  for (auto&& one :
       (data |
        ps::decode<ps::field<"id", ps::arrow_value<std::int64_t>>, ps::field<"text", ps::text>,
                   ps::field<"score", ps::arrow_value<double>>, ps::field<"even", ps::arrow_value<bool>>,
                   ps::field<"raw", ps::arrow_value<std::string>>,
                   ps::field<"tags", ps::arrow_value<std::vector<std::string>>>,
                   ps::field<"box.x", ps::arrow_value<std::int64_t>>,
                   ps::field<"box.y", ps::arrow_value<std::optional<std::int64_t>>>> |
        ps::workers(0))
           .epoch(0)) {
    std::ostringstream line;
    line << ps::get<"id">(one) << " '" << std::string_view(ps::get<"text">(one)) << "' "
         << ps::get<"score">(one) << ' ' << ps::get<"even">(one) << " '";
    for (const char c : ps::get<"raw">(one)) line << static_cast<int>(c);
    line << "' " << ps::get<"tags">(one).size() << ' ' << ps::get<"box.x">(one) << ' ';
    if (const auto y = ps::get<"box.y">(one))
      line << *y;
    else
      line << "none";
    all += line.str() + ";";
  }
  return all;
}
const auto values_in = [](const auto& array) {
  std::string all;
  for (const auto value : array.flat()) all += std::to_string(static_cast<int>(value)) + " ";
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
  engine_test::check_all_stops(ps::litdata(made("values")) | ps::shuffle(ps::seed(3)) |
                               ps::decode<ps::field<"i", ps::raw_number<std::int64_t>>> | ps::map(number) |
                               ps::batch(2));
}

TEST_CASE(
    "source/litdata: chunks that are not what their index says, and kinds that are not read, are errors") {
  const litdata_folder made;
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::litdata(made("frames")); }),
             contains("litdata<unpack_zstd>"));
  CHECK_THAT(penstock_test::error_of([&] {
               (void)ps::litdata(ps::file(made("frames") + "/chunk-0-{0..1}.bin"),
                                 ps::read_litdata_index(made("frames") + "/index.json"));
             }),
             contains("'chunk-0-0.bin' may be compressed inside, and only litdata(folder) makes copies"));
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::litdata(made("packed_rows")); }),
             contains("read them with litdata_rows(folder)"));
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
  CHECK_THAT(with(rows), contains("the chunks hold rows of Arrow") && contains("litdata_rows(folder)"));
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
/// What an unpacker makes of a chunk that it gets in pieces; the first one has at least `least` bytes.
template <class Unpack>
std::string in_pieces(const std::string& chunk, std::size_t taken, std::size_t given, std::size_t least) {
  typename Unpack::stream stream;
  stream.begin();
  std::string all;
  std::size_t at = 0;
  for (bool whole = false; !whole || at != chunk.size();) {
    const std::size_t some = std::min(at == 0 ? std::max(least, taken) : taken, chunk.size() - at);
    std::string out(given, '\0');
    const ps::unpack_step done =
        stream.step(ps::bytes_of(chunk).subspan(at, some), std::as_writable_bytes(std::span(out)),
                    at + some == chunk.size());
    REQUIRE((done.taken != 0 || done.made != 0 || at == chunk.size()));
    at += done.taken;
    all += out.substr(0, done.made);
    whole = done.whole && done.made == 0;
  }
  return all;
}

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

TEST_CASE("source/litdata: chunks that are compressed inside, in batches of samples") {
  const litdata_folder made;
  std::string numbers, arrays;
  for (int i = 0; i < 30; ++i) {
    numbers += std::to_string(i) + ";";
    for (int k = 0; k <= i; ++k) arrays += std::to_string(k) + " ";
    arrays += "(" + std::to_string(i + 1) + ",);";
  }
  const auto data = ps::litdata<ps::unpack_zstd>(made("frames"), {.folder = made("copies")});
  CHECK(leaf<"x", ps::raw_number<std::int64_t>>(data, plain) == numbers);
  CHECK(leaf<"t", ps::litdata_array<std::int16_t>>(data, values_in) == arrays);
  CHECK(leaf<"x", ps::raw_number<std::int64_t>>(ps::litdata<ps::unpack_zstd>(made("unframed")), plain) ==
        "0;1;2;3;");
  // The same dataset without compression is the same dataset.
  std::vector<std::string> paths;
  for (const auto& one : std::filesystem::recursive_directory_iterator(made("copies")))
    if (const std::string path = one.path().string(); path.ends_with("-unpacked")) paths.push_back(path);
  std::ranges::sort(paths);
  REQUIRE(paths.size() == 2);
  const ps::file copies(paths);
  ps::litdata_index index = ps::read_litdata_index(made("frames") + "/index.json");
  const auto session = copies.connect();
  for (std::size_t i = 0; i < 2; ++i) {
    index.chunks.shards[i].bytes = session.size(static_cast<ps::object_id>(i));
    index.chunks.shards[i].packed_name.clear();
  }
  CHECK(ps::litdata(copies, index).fingerprint() == data.fingerprint());

  // Damage in front of the frames, and a chunk that ends anywhere, which is read a few bytes at a time.
  const std::string path = made("frames") + "/chunk-0-0.bin";
  std::ifstream in(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  const auto with = [&](const std::string& content) {
    std::filesystem::remove_all(made("copies"));  // files of one size may have one time, too
    std::ofstream(path, std::ios::binary) << content;
    return penstock_test::error_of([&] {
      (void)leaf<"x", ps::raw_number<std::int64_t>>(
          ps::litdata<ps::unpack_zstd>(made("frames"), {.folder = made("copies")}), plain);
    });
  };
  CHECK(with(bytes).empty());
  const auto changed = [&](std::size_t at, char to) {
    std::string other = bytes;
    other[at] = to;
    return with(other);
  };
  CHECK_THAT(with(bytes + "x"), contains("the chunk has") && contains("and its index says"));
  CHECK_THAT(changed(8, '\2'), contains("version 2 of LitData's frames") && contains("chunk-0-0.bin"));
  CHECK_THAT(changed(10, '\1'), contains("with the flags 1"));
  CHECK_THAT(changed(12, '\0'), contains("0 samples in 4 frames of 5: it is damaged"));
  CHECK_THAT(changed(20, '\3'), contains("16 samples in 3 frames of 5: it is damaged"));
  CHECK_THAT(changed(27, '\377'), contains("begins at"));
  CHECK_THAT(changed(24 + 4 * 16 + 3, '\377'), contains("begins at") && contains("chunk-0-0.bin"));
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    INFO(size);
    CHECK_FALSE(with(bytes.substr(0, size)).empty());
  }
}

TEST_CASE("source/litdata: chunks whose samples are compressed one by one") {
  const litdata_folder made;
  const auto read = [&](const std::string& name) {
    std::ifstream in(made("values") + "/" + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const auto number_of = [](const std::string& bytes, std::size_t i) {
    return ps::detail::load_little<std::uint32_t>(ps::bytes_of(bytes).data() + 4 * i);
  };
  // What LitData makes of these chunks with compression_level="sample".
  const auto plain_numbers = leaf<"i", ps::raw_number<std::int64_t>>(ps::litdata(made("values")), plain);
  const auto plain_arrays =
      leaf<"t", ps::litdata_array<std::int16_t>>(ps::litdata(made("values")), values_in);
  std::filesystem::create_directory(made("samples"));
  nlohmann::json index = nlohmann::json::parse(read("index.json"));
  index["config"]["compression"] = "zstd";
  index["config"]["compression_level"] = "sample";
  for (auto& chunk : index["chunks"]) {
    const std::string name = chunk["filename"], bytes = read(name);
    const std::size_t samples = number_of(bytes, 0);
    std::string table(4 * (samples + 2), '\0'), packed;
    const auto put = [&](std::size_t i, std::size_t value) {
      for (std::size_t byte = 0; byte < 4; ++byte)
        table[4 * i + byte] = static_cast<char>(value >> 8 * byte & 255);
    };
    put(0, samples);
    put(1, table.size());
    for (std::size_t i = 0; i < samples; ++i) {
      const std::string_view sample = std::string_view(bytes).substr(
          number_of(bytes, i + 1), number_of(bytes, i + 2) - number_of(bytes, i + 1));
      std::string one(ZSTD_compressBound(sample.size()), '\0');
      one.resize(ZSTD_compress(one.data(), one.size(), sample.data(), sample.size(), 3));
      put(i + 2, table.size() + (packed += one).size());
    }
    chunk["chunk_bytes"] = table.size() + packed.size();
    std::ofstream(made("samples") + "/" + name, std::ios::binary) << table << packed;
  }
  const auto write_index = [&] { std::ofstream(made("samples") + "/index.json") << index.dump(); };
  write_index();
  const auto data = ps::litdata<ps::unpack_zstd>(made("samples"), {.folder = made("copies")});
  CHECK(leaf<"i", ps::raw_number<std::int64_t>>(data, plain) == plain_numbers);
  CHECK(leaf<"t", ps::litdata_array<std::int16_t>>(data, values_in) == plain_arrays);
  CHECK(data.fingerprint() == ps::litdata(made("values")).fingerprint());
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::litdata(made("samples")); }), contains("unpack_zstd"));

  const std::string first = index["chunks"][0]["filename"];
  std::ifstream in(made("samples") + "/" + first, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  const auto with = [&](const std::string& content) {
    std::filesystem::remove_all(made("copies"));
    std::ofstream(made("samples") + "/" + first, std::ios::binary) << content;
    index["chunks"][0]["chunk_bytes"] = content.size();
    write_index();
    return penstock_test::error_of(
        [&] { (void)ps::litdata<ps::unpack_zstd>(made("samples"), {.folder = made("copies")}); });
  };
  const auto changed = [&](std::size_t at, char to) {
    std::string other = bytes;
    other[at] = to;
    return with(other);
  };
  CHECK(with(bytes).empty());
  CHECK(with(read(first)).empty());  // one that is not compressed
  CHECK_THAT(with(bytes + "x"), contains("bytes behind its") && contains(first));
  CHECK_THAT(changed(0, '\0'), contains("0 samples: it is damaged"));
  CHECK_THAT(changed(3, '\177'), contains("samples: it is damaged"));
  CHECK_THAT(changed(4, '\1'), contains("sample 0 begins at 1, where none can"));
  CHECK_THAT(changed(11, '\1'), contains("sample 2 begins at") && contains("where none can"));
  CHECK_FALSE(changed(bytes.size() - 5, static_cast<char>(bytes[bytes.size() - 5] ^ 1)).empty());
  for (std::size_t size = 12; size < bytes.size(); size += 11) {
    INFO(size);
    CHECK_FALSE(with(bytes.substr(0, size)).empty());
  }

  // In pieces of any size it is the same chunk.
  for (const auto& [taken, given] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {3, 100'000}, {100'000, 3}, {17, 64}})
    CHECK(in_pieces<ps::detail::litdata_samples<ps::unpack_zstd>>(bytes, taken, given, 0) == read(first));
}

TEST_CASE("source/litdata: a number of samples that looks like another compression") {
  const auto compression = ps::detail::litdata_streams().compression;
  CHECK(compression(ps::bytes_of(std::string_view("\x1f\x8b\0\0", 4))).empty());
  CHECK(compression(ps::bytes_of(std::string_view("\x28\xb5\x2f\xfd"))) == "zstd");
  CHECK(compression(ps::bytes_of(std::string_view("LDFZ01\0\0", 8))) == "zstd");
}

TEST_CASE("source/litdata: frames in pieces of any size are the same chunk") {
  const litdata_folder made;
  std::ifstream in(made("frames") + "/chunk-0-0.bin", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  const auto unpacked = [&](std::size_t taken, std::size_t given) {
    return in_pieces<ps::detail::litdata_frames<ps::unpack_zstd>>(bytes, taken, given, 24);
  };
  const std::string all = unpacked(bytes.size(), 4096);
  CHECK(all.starts_with(
      std::string_view("\20\0\0\0\110\0\0\0", 8)));  // 16 samples, the first one behind 72 bytes
  for (const std::size_t taken : {1U, 2U, 3U, 5U, 24U, 31U})
    for (const std::size_t given : {1U, 2U, 3U, 7U, 100U}) CHECK(unpacked(taken, given) == all);
}

TEST_CASE("source/litdata: rows of Arrow that are compressed") {
  const litdata_folder made;
  const auto data = ps::litdata_rows<ps::unpack_zstd>(made("packed_rows"));
  CHECK(litdata_test::rows(data) == litdata_test::rows(ps::litdata_rows(made("rows"))));
  CHECK_THAT(
      penstock_test::error_of([&] { (void)litdata_test::rows(ps::litdata_rows(made("packed_rows"))); }),
      contains("unpack_zstd"));
}
#endif

TEST_CASE("source/litdata: rows of Arrow, as LitData writes dicts where pyarrow is installed") {
  const litdata_folder made;
  const auto data = ps::litdata_rows(made("rows"));
  CHECK(litdata_test::rows(data) ==
        "0 '' 0 1 '' 0 0 0;1 '\u00e9' 0.125 0 '0' 1 -1 1;2 '\u00e9\u00e9' 0.25 1 '01' 2 -2 2;3 "
        "'\u00e9\u00e9\u00e9' 0.375 0 '012' 0 -3 none;"
        "4 '\u00e9\u00e9\u00e9\u00e9' 0.5 1 '0123' 1 -4 4;5 '\u00e9\u00e9\u00e9\u00e9\u00e9' 0.625 0 '01234' "
        "2 -5 5;6 '\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9' 0.75 1 '012345' 0 -6 6;");
  CHECK(data.size() == 7);
  engine_test::check_all_stops(data | ps::shuffle(ps::seed(3)) |
                               ps::decode<ps::field<"id", ps::arrow_value<std::uint64_t>>> |
                               ps::map([](const auto& one) { return ps::get<"id">(one); }) | ps::batch(2));
  CHECK_THAT(
      penstock_test::error_of([&] { (void)leaf<"text", ps::text>(ps::litdata(made("rows")), as_text); }),
      contains("read them with litdata_rows(folder)"));

  const std::string path = made("rows") + "/chunk-0-0.bin";
  std::ifstream in(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  const auto with = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    return penstock_test::error_of([&] { (void)litdata_test::rows(ps::litdata_rows(made("rows"))); });
  };
  CHECK(with(bytes).empty());
  std::string longer = bytes;
  longer[bytes.size() - 9] = '\1';
  CHECK_THAT(with(longer), contains("rows of Arrow have 1") && contains("chunk-0-0.bin"));
  std::filesystem::copy_file(made("rows") + "/chunk-0-1.bin", path,
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(with(bytes).empty());
  std::filesystem::copy_file(made("rows") + "/chunk-0-2.bin", path,
                             std::filesystem::copy_options::overwrite_existing);
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::litdata_rows(made("rows")); }),
             contains("the chunk has 1 rows, and the index says 3") && contains("chunk-0-0.bin"));
}

TEST_CASE("source/litdata: rows of Arrow whose chunks have types and columns of their own") {
  const litdata_folder made;
  const auto data = ps::litdata_rows(made("uneven_rows"));
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : std::string("none"); };
  using optional = ps::arrow_value<std::optional<std::int64_t>>;
  for (const std::size_t workers : {0u, 2u}) {
    std::string found;
    for (auto&& one :
         (data |
          ps::decode<ps::field<"id", ps::arrow_value<std::int64_t>>, ps::field<"n", optional>,
                     ps::field<"list", ps::arrow_array<std::int64_t>>, ps::field<"deep.x", optional>> |
          ps::workers(workers))
             .epoch(0)) {
      found += std::to_string(ps::get<"id">(one)) + " " + number(ps::get<"n">(one)) + " ";
      for (const std::int64_t value : ps::get<"list">(one).values()) found += std::to_string(value) + ",";
      found += " " + number(ps::get<"deep.x">(one)) + ";";
    }
    CHECK(found == "0 none  1;1 none  2;2 7 5,6, none;3 8  none;4 none 9, none;5 1  none;6 none 9, 3;");
  }
  CHECK(data.schema().text() ==
        "struct<id: int64, n: int64, list: list<int64>, boxes: list<struct<a: int64>>, "
        "deep: struct<x: int64>>");
  const auto lists = [](const auto& list) { return list.size(); };
  CHECK(leaf<"list", ps::arrow_value<std::span<const std::int64_t>>>(
            data, [&](const auto& one) { return std::to_string(lists(one)); }) == "0;0;2;0;1;0;1;");
  CHECK(ps::arrow_ipc(made("uneven_rows") + "/chunk-0-{0..3}.bin").schema().text() == data.schema().text());
  // Which of two columns of one name is which is not guessed.
  const std::string path = made("pair_rows") + "/chunk-0-1.bin";
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  const auto pair_of = [&] {
    return penstock_test::error_of(
        [&] { (void)ps::arrow_ipc(made("pair_rows") + "/chunk-0-{0..1}.bin").connect(); });
  };
  CHECK(pair_of().empty());
  for (std::size_t at = 0; (at = bytes.find("bb", at)) != bytes.npos;) bytes.replace(at, 2, "aa");
  std::ofstream(path, std::ios::binary) << bytes;
  CHECK_THAT(pair_of(), contains("the file has two columns called 'aa'"));
  // In any order: what is null first, or last.
  for (const char* const order : {"{0,2}", "{2,0}", "{0,3,2}", "{2,3,0}"})
    CHECK(ps::arrow_ipc(made("uneven_rows") + "/chunk-0-" + order + ".bin")
              .schema()
              .text()
              .ends_with("deep: struct<x: int64>>"));
}

TEST_CASE("source/litdata: chunks of rows and chunks of samples say what reads them") {
  const litdata_folder made;
  const auto rows_of = [&](const char* name) {
    return penstock_test::error_of([&] { (void)ps::litdata_rows(made(name)); });
  };
  CHECK_THAT(rows_of("part_rows"), contains("the chunk holds samples, and no rows of Arrow") &&
                                       contains("read the dataset with litdata(folder)") &&
                                       contains("chunk-0-1.bin"));
  CHECK_THAT(rows_of("values"), contains("read the dataset with litdata(folder)"));
  CHECK_THAT(rows_of("zstd"), contains("read the dataset with litdata(folder)"));
  CHECK_THAT(rows_of("tokens"), contains("read them with litdata_tokens<T>(folder, window)"));
}

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
