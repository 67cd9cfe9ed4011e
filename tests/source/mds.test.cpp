// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/mds.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/mds_files.hpp"
#include "support/members.hpp"
#include "support/resume_test.hpp"
#include "support/test_data.hpp"

#include <penstock/codec/chain.hpp>
#include <penstock/codec/floating.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/integer.hpp>
#include <penstock/codec/json.hpp>
#include <penstock/codec/json_field.hpp>
#include <penstock/codec/mds_array.hpp>
#include <penstock/codec/raw_number.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/codec/unpack_brotli.hpp>
#include <penstock/codec/unpack_snappy.hpp>
#include <penstock/core/name.hpp>
#include <penstock/order/compat/mosaic.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#if __has_include(<penstock/codec/unpack_zstd.hpp>) && __has_include(<zstd.h>)
#include <penstock/codec/unpack_zstd.hpp>
#define MDS_TEST_ZSTD 1
#endif

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::mds_folder;

static_assert(ps::indexed_source<ps::mds_source<ps::file>> &&
              ps::projecting_source<ps::mds_source<ps::file>>);
static_assert(ps::open_sample<ps::mds_source<ps::mapped_file>::element>);

namespace mds_test {

/// The shards of `values` in every kind of storage: shown in place, copied, and read ahead.
template <class F>
void in_every_storage(const mds_folder& made, F&& f) {
  const std::string folder = made("values");
  const ps::mds_index index = ps::read_mds_index(folder + "/index.json");
  std::vector<std::string> paths;
  ps::memory_files memory;
  for (const ps::mds_shard& one : index.shards) {
    paths.push_back(folder + "/" + one.name);
    memory.add(one.name, penstock_test::mds_bytes("values/" + one.name));
  }
  f(ps::mds(folder));
  f(ps::mds(ps::mapped_file(paths), index));
  f(ps::mds(ps::file(paths, {.access = ps::file_access::read}), index));
  f(ps::mds(ps::file(paths, {.access = ps::file_access::map}), index));
  f(ps::mds(memory, index));
  f(ps::mds(ps::simulated_storage(ps::file(paths), {}), index));
}

/// Reads one column as text.
template <ps::fixed_string Name, class Codec, class Data, class Show>
std::string column(const Data& data, Show show) {
  return penstock_test::members_text<Name, Codec>(data, show);
}
const auto plain = [](auto value) { return std::to_string(value); };
const auto with_sign = [](auto value) { return std::to_string(static_cast<double>(value)); };
const auto as_text = [](auto value) { return std::string(value); };

std::string refusal(const mds_folder& made, std::string_view dataset) {
  return penstock_test::error_of([&] {
    const auto data = ps::mds(made(dataset));
    const auto reader = data.connect();
    typename decltype(data.connect())::worker w;
    for (std::uint64_t i = 0; i < data.size(); ++i)
      reader.evaluate({0, i}, w, [](const auto& sample) {
        for (std::size_t k = 0; k < sample.size(); ++k) (void)sample.member(k).finish();
      });
  });
}
/// The shard of `values` with one 32-bit number replaced.
std::string changed_shard(std::size_t offset, std::uint32_t value) {
  std::string bytes = penstock_test::mds_bytes("values/shard.00000.mds");
  for (std::size_t i = 0; i < 4; ++i) bytes.at(offset + i) = static_cast<char>(value >> (8 * i));
  return bytes;
}

TEST_CASE("source/mds: every encoding, as MosaicML's writer wrote it, from any storage") {
  const mds_folder made;
  in_every_storage(made, [](const auto& data) {
    REQUIRE(data.size() == 7);
    REQUIRE(data.starts()->size() == 3);
    CHECK(column<"i", ps::raw_number<std::int64_t>>(data, plain) ==
          "0;-1000000000000;2000000000000;-3000000000000;4000000000000;-5000000000000;6000000000000;");
    CHECK(column<"u8", ps::raw_number<std::uint8_t>>(data, plain) == "200;201;202;203;204;205;206;");
    CHECK(column<"i8", ps::raw_number<std::int8_t>>(data, plain) == "-100;-99;-98;-97;-96;-95;-94;");
    CHECK(column<"u16", ps::raw_number<std::uint16_t>>(data, plain).starts_with("60000;60001;"));
    CHECK(column<"i16", ps::raw_number<std::int16_t>>(data, plain).starts_with("-30000;-29999;"));
    CHECK(column<"u32", ps::raw_number<std::uint32_t>>(data, plain).starts_with("4000000000;4000000001;"));
    CHECK(column<"i32", ps::raw_number<std::int32_t>>(data, plain).starts_with("-2000000000;-1999999999;"));
    CHECK(column<"u64", ps::raw_number<std::uint64_t>>(data, plain).ends_with("18000000000000000006;"));
    CHECK(column<"i64", ps::raw_number<std::int64_t>>(data, plain).ends_with("-8999999999999999994;"));
    CHECK(column<"f16", ps::raw_number<ps::half>>(data, with_sign).ends_with("1.500000;"));
    CHECK(column<"f32", ps::raw_number<float>>(data, with_sign).ends_with("0.750000;"));
    CHECK(column<"f64", ps::raw_number<double>>(data, with_sign).ends_with("0.375000;"));
    CHECK(column<"si", ps::integer>(data, plain) == "0;-1;2;-3;4;-5;6;");
    CHECK(column<"sf", ps::floating_as<double>>(data, with_sign).ends_with("0.600000;"));
    CHECK(column<"sd", ps::text>(data, as_text) == "0;0.25;0.5;0.75;1;1.25;1.5;");
    CHECK(column<"s", ps::text>(data, as_text).starts_with(";\u00e9;\u00e9\u00e9;"));
    CHECK(column<"j", ps::json_field<"n", int>>(data, plain) == "0;1;2;3;4;5;6;");
    const auto bytes = [](const auto& value) { return std::string(ps::text_of(ps::as_bytes(value))); };
    CHECK(column<"b", ps::identity>(data, bytes).ends_with(std::string("\0\1\2\3\4\5;", 7)));
    const auto values = [](const auto& array) {
      std::string all;
      for (const auto value : array.flat()) all += std::to_string(static_cast<int>(value)) + " ";
      return all + ps::to_string(array.shape());
    };
    CHECK(column<"a", ps::mds_array<std::uint8_t>>(data, values)
              .starts_with("0 1 " + ps::to_string(ps::extents(2, 1))));
    CHECK(column<"at", ps::mds_array<std::int16_t>>(data, values)
              .ends_with("-2 -1 0 1 2 3 4 " + ps::to_string(ps::extents(7)) + ";"));
    CHECK(column<"as", ps::mds_array<float>>(data, values)
              .ends_with("6 7 8 9 10 11 " + ps::to_string(ps::extents(2, 3)) + ";"));
    const auto batches =
        data |
        ps::decode<ps::field<"as", ps::mds_array<float>>, ps::field<"i32", ps::raw_number<std::int32_t>>> |
        ps::batch(7);
    for (auto&& b : batches.epoch(0)) CHECK(ps::get<"as">(b).shape() == ps::extents(7, 2, 3));
  });
}

TEST_CASE("source/mds: images and lists of images are given as their bytes") {
  const mds_folder made;
  const auto data = ps::mds(made("images"));
  const auto head = [](ps::bytes_view bytes) { return std::string(ps::text_of(bytes).substr(0, 4)); };
  CHECK(column<"pil", ps::pil_pixels>(data, [](const auto& image) { return ps::to_string(image.shape()); }) ==
        ps::to_string(ps::extents(2, 3, 3)) + ";" + ps::to_string(ps::extents(2, 3, 1)) + ";" +
            ps::to_string(ps::extents(2, 3, 4)) + ";");
  CHECK(column<"png", ps::identity>(data, [&](const auto& one) { return head(ps::as_bytes(one)); }) ==
        "\x89PNG;\x89PNG;\x89PNG;");
  const auto parts = [&](const auto& list) {
    std::string all;
    for (const std::string& one : list) all += one.substr(0, 4) + ",";
    return all;
  };
  CHECK(column<"list", ps::mds_list>(data, parts) == ";\x89PNG,;\x89PNG,\x89PNG,;");
  CHECK(column<"more", ps::mds_list>(data, [](const auto& list) { return std::to_string(list.size()); }) ==
        "1;2;3;");
  CHECK(column<"pils", ps::mds_list>(data, [](const auto& list) { return std::to_string(list.size()); }) ==
        "0;1;2;");
}

TEST_CASE("source/mds: a codec that does not read a column's encoding is refused, and so are pickles") {
  const mds_folder made;
  const auto data = ps::mds(made("values"));
  const auto refused = [&](auto stage) {
    return penstock_test::error_of([&] {
      for (auto&& one : (data | stage | ps::workers(0)).epoch(0)) (void)one;
    });
  };
  const std::string text = refused(ps::decode<ps::field<"i", ps::integer>>);
  CHECK_THAT(text, contains("the column 'i' is of encoding 'int', which this codec does not read"));
  CHECK_THAT(text, contains("shard.00000.mds:0"));
  CHECK_THAT(refused(ps::decode<ps::field<"i", ps::raw_number<double>>>), contains("'int', not float64"));
  CHECK_THAT(refused(ps::decode<ps::field<"s", ps::mds_array<float>>>),
             contains("'str', which has no arrays"));
  CHECK_THAT(refused(ps::decode<ps::field<"a", ps::text>>), contains("'ndarray', which this codec"));
  CHECK_THAT(refused(ps::decode<ps::field<"zz", ps::text>>), contains("has no member 'zz'"));
  CHECK_THAT(refused(ps::decode<ps::field<"i", ps::chain<ps::identity, ps::text>>>),
             contains("'int', which this codec does not read"));

  const auto pickled = ps::mds(made("pkl"));
  CHECK(column<"x", ps::raw_number<std::int64_t>>(pickled, plain) == "0;1;");
  CHECK_THAT(penstock_test::error_of(
                 [&] { (void)column<"p", ps::identity>(pickled, [](const auto&) { return ""; }); }),
             contains("the column 'p' holds pickles, which can run any program and are never read"));
}

TEST_CASE("source/mds: large values of copied samples are read one by one, straight into their place") {
  const penstock_test::temp_dir dir;
  // Columns "a" and "b" of bytes; one sample of 40,000 and 30,000 bytes.
  const std::string columns = R"("column_encodings": ["bytes", "bytes", "int"], )"
                              R"("column_names": ["a", "b", "n"], "column_sizes": [null, null, 8])";
  const std::string config = "{" + columns + "}";
  const auto number = [](std::uint32_t n) { return std::string(reinterpret_cast<const char*>(&n), 4); };
  const std::string sample = number(40'000) + number(30'000) + std::string(40'000, 'a') +
                             std::string(30'000, 'b') + std::string("\5\0\0\0\0\0\0\0", 8);
  const auto begin = static_cast<std::uint32_t>(12 + config.size());
  const std::string shard =
      number(1) + number(begin) + number(begin + static_cast<std::uint32_t>(sample.size())) + config + sample;
  const std::string index = R"({"version": 2, "shards": [{"format": "mds", "samples": 1, )" + columns +
                            R"(, "raw_data": {"basename": "s", "bytes": )" + std::to_string(shard.size()) +
                            "}}]}";
  std::ofstream(dir / "s", std::ios::binary) << shard;
  const auto data = ps::mds(ps::file(std::vector{(dir / "s").string()}, {.access = ps::file_access::read}),
                            ps::mds_index_from_string(index));
  const auto reader = data.connect();
  typename decltype(data.connect())::worker w;
  for (int round = 0; round < 2; ++round)
    reader.evaluate({0, 0}, w, [&](const auto& one) {
      std::string into(30'000, ' ');
      one.member(1).read_into({reinterpret_cast<std::byte*>(into.data()), into.size()});
      CHECK(into == std::string(30'000, 'b'));
      CHECK(ps::text_of(one.member(0).finish()) == std::string(40'000, 'a'));
      CHECK(ps::text_of(one.member(0).finish()) == std::string(40'000, 'a'));
      CHECK(one.member(2).finish()[0] == std::byte{5});
      CHECK(one.member(2).offset() == shard.size() - 8);
    });
}

TEST_CASE("source/mds: any order, any number of workers, and a resumption after every batch") {
  const mds_folder made;
  const auto data = ps::mds(made("values"));
  const std::string all = column<"i8", ps::raw_number<std::int8_t>>(data, plain);
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    std::string seen;
    for (auto&& one :
         (data | ps::decode<ps::field<"i8", ps::raw_number<std::int8_t>>> | ps::workers(workers)).epoch(0))
      seen += plain(ps::get<"i8">(one)) + ";";
    CHECK(seen == all);
  }
  const auto number = [](const auto& one) { return std::uint64_t{ps::get<"u8">(one)}; };
  engine_test::check_all_stops(data | ps::shuffle(ps::seed(3)) |
                               ps::decode<ps::field<"u8", ps::raw_number<std::uint8_t>>> | ps::map(number) |
                               ps::batch(2));
  engine_test::check_all_stops(
      data |
      ps::mosaic({.num_canonical_nodes = 1, .physical_nodes = 1, .ranks_per_node = 1, .shuffle = true}) |
      ps::decode<ps::field<"u8", ps::raw_number<std::uint8_t>>> | ps::map(number) | ps::batch(2));
}

TEST_CASE("source/mds: what is unused is not read, and a fingerprint is the data's") {
  const mds_folder made;
  const auto data = ps::mds(made("values"));
  const auto moved = mds_folder();
  CHECK(ps::mds(moved("values")).fingerprint() == data.fingerprint());
  CHECK(ps::mds(made("images")).fingerprint() != data.fingerprint());
  CHECK(data.connect().key(5) == "shard.00001.mds:0");
  CHECK_THAT(data.describe(),
             contains("mds(2 shards, 2334 bytes): 7 samples of a (ndarray), as (ndarray:float32:2,3)"));
  const auto reader = data.connect(ps::projection::none());
  typename decltype(data.connect())::worker w;
  reader.evaluate({0, 3}, w, [](const auto& one) { CHECK(one.key() == "shard.00000.mds:3"); });
  CHECK(reader.bytes_per_sample() == 0);
}

/// Counts ranges, and does not want anything to be read for them.
struct impatient {
  int ranges = 0, unknowns = 0;
  template <class Session>
  void operator()(Session&, ps::object_id, std::uint64_t, std::uint64_t) {
    ++ranges;
  }
  void unknown() { ++unknowns; }
};

TEST_CASE("source/mds: where samples are is not known before a shard's table is loaded") {
  const mds_folder made;
  const auto data = ps::mds(made("values"));
  const auto reader = data.connect();
  impatient sink;
  reader.ranges(0, sink);
  CHECK(sink.ranges == 0);
  CHECK(sink.unknowns == 1);
  const ps::position first[] = {{0, 0}};
  reader.get_ready(first);
  reader.ranges(0, sink);
  CHECK(sink.ranges == 1);
  CHECK(sink.unknowns == 1);
}

TEST_CASE("source/mds: shards that are not what their index says are errors") {
  const mds_folder made;
  const auto with = [&](std::string_view shard) {
    made.write("values/shard.00000.mds", shard);
    return refusal(made, "values");
  };
  const std::string good = penstock_test::mds_bytes("values/shard.00000.mds");
  CHECK(with(good).empty());
  CHECK_THAT(with(good.substr(0, 1000)), contains("the shard has 1000 bytes, and its index says 1368"));
  CHECK_THAT(with(changed_shard(0, 6)), contains("the shard has 6 samples, and its index says 5"));
  CHECK_THAT(with(changed_shard(4, 1)), contains("sample 0 of the shard begins at 1, which is not behind"));
  CHECK_THAT(with(changed_shard(12, 5'000'000)), contains("sample 2 of the shard begins at 5000000"));
  CHECK_THAT(with(changed_shard(24, 1367)),
             contains("the shard's last sample ends at 1367, and the shard at 1368"));
  std::string other = good;
  other.replace(other.find("\"u8\"]"), 5, "\"u9\"]");
  CHECK_THAT(with(other), contains("the shard describes other columns than its index"));
  other = good;
  other.at(28) = '[';
  CHECK_THAT(with(other), contains("not JSON"));
  CHECK_THAT(with(other), contains("at byte"));
  // A size of the first sample: the columns then do not fill it.
  std::uint32_t begin = 0;
  for (std::size_t i = 4; i-- != 0;) begin = begin << 8 | static_cast<unsigned char>(good[4 + i]);
  const std::string damaged = with(changed_shard(begin, 77));
  CHECK_THAT(damaged, contains("and its columns have"));
  CHECK_THAT(damaged, contains("shard.00000.mds"));
  std::filesystem::remove(made.dir / "values/shard.00000.mds");
  CHECK_THAT(refusal(made, "values"), contains("shard.00000.mds"));
}

TEST_CASE("source/mds: shards in another order, and an index that could not have been read, are refused") {
  const mds_folder made;
  ps::mds_index index = ps::read_mds_index(made("values") + "/index.json");
  const std::string first = made("values") + "/shard.00000.mds", second = made("values") + "/shard.00001.mds";
  const auto refused = [&](std::vector<std::string> paths) {
    return penstock_test::error_of([&] { (void)ps::mds(ps::file(std::move(paths)), index); });
  };
  CHECK(refused({first, second}).empty());
  CHECK_THAT(refused({second, first}), contains("give them in the index's order"));
  CHECK_THAT(refused({first}), contains("the index describes 2 shards, and the storage has 1 objects"));
  index.shards[1].columns = 1;
  CHECK_THAT(refused({first, second}), contains("no list of columns number 1"));
  index.columns.push_back({{"a", "", 0}});
  CHECK_THAT(refused({first, second}), contains("the column 'a' has no encoding"));
  index.columns.back().clear();
  CHECK_THAT(refused({first, second}), contains("at least one column"));
  std::filesystem::rename(made.dir / "values", made.dir / "va?lues");
  CHECK(ps::mds(made("va?lues")).size() == 7);
}

TEST_CASE("source/mds: shards of several lists of columns, empty ones, and long descriptions") {
  const penstock_test::temp_dir dir;
  const auto number = [](std::size_t n) {
    std::string bytes;
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(n >> (8 * i) & 255);
    return bytes;
  };
  std::string entries;
  const auto add = [&](const std::string& name, const std::string& columns, std::vector<std::string> samples,
                       std::size_t padding = 0) {
    const std::string config = "{" + columns + std::string(padding, ' ') + "}";
    std::size_t at = 4 * (samples.size() + 2) + config.size();
    std::string head = number(samples.size()) + number(at), all;
    for (const std::string& one : samples) {
      head += number(at += one.size());
      all += one;
    }
    std::ofstream(dir / name, std::ios::binary) << head << config << all;
    entries += std::string(entries.empty() ? "" : ", ") + R"({"format": "mds", )" + columns +
               R"(, "samples": )" + std::to_string(samples.size()) + R"(, "raw_data": {"basename": ")" +
               name + R"(", "bytes": )" + std::to_string(head.size() + config.size() + all.size()) + "}}";
  };
  const std::string digits = R"("column_encodings": ["str_int"], "column_names": ["x"], "column_sizes": [0])",
                    text = R"("column_encodings": ["json"], "column_names": ["x"], "column_sizes": [null])";
  add("empty", digits, {});
  add("a", digits, {number(1) + "7", number(2) + "12"}, 5000);
  add("b", text, {number(2) + "{}"});
  add("c", digits, {number(1) + "9"});
  std::ofstream(dir / "index.json") << R"({"version": 2, "shards": [)" << entries << "]}";
  const auto data = ps::mds(dir.path().string());
  REQUIRE(data.size() == 4);
  CHECK(column<"x", ps::text>(data, as_text) == "7;12;{};9;");
  const auto reader = data.connect();
  typename decltype(data.connect())::worker w;
  const auto digits_of = [&](std::uint64_t i) {
    std::int64_t value = 0;
    reader.evaluate({0, i}, w, [&](const auto& sample) {
      ps::no_scratch none;
      sample.member(0).check_codec(ps::integer::codec_name);
      value = ps::integer{}.decode(sample.member(0), none);
    });
    return value;
  };
  CHECK(digits_of(0) == 7);
  CHECK_THAT(penstock_test::error_of([&] { (void)digits_of(2); }), contains("is of encoding 'json'"));
  CHECK(digits_of(3) == 9);
  CHECK(digits_of(1) == 12);
  CHECK(reader.is_ready());
  add("d", digits, {number(1) + "9"}, 2 << 20);
  std::ofstream(dir / "index.json") << R"({"version": 2, "shards": [)" << entries << "]}";
  CHECK_THAT(
      penstock_test::error_of([&] { (void)column<"x", ps::text>(ps::mds(dir.path().string()), as_text); }),
      contains("the limit is 1 MiB"));
}

#ifdef MDS_TEST_ZSTD
TEST_CASE("source/mds: compressed shards are unpacked once; a shard that is there uncompressed is taken") {
  const mds_folder made;
  const auto data = ps::mds<ps::unpack_zstd>(made("zstd"), {.folder = made("copies")});
  REQUIRE(data.size() == 40);
  CHECK(column<"s", ps::text>(data, as_text).ends_with("line 38;line 39;"));
  CHECK(ps::mds<ps::unpack_zstd>(made("zstd"), {.folder = made("copies")}).fingerprint() ==
        data.fingerprint());
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::mds<ps::unpack_zstd>(made("br")); }),
             contains("compressed with brotli") && contains("mds<unpack_brotli>(...)") &&
                 contains("shard.00000.mds.br"));
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::mds(made("zstd")); }), contains("unpack_zstd"));
  // The shards themselves, beside the compressed ones, as Streaming leaves them.
  const ps::mds_index index = ps::read_mds_index(made("zstd") + "/index.json");
  for (std::size_t i = 0; i < index.shards.size(); ++i)
    std::filesystem::copy_file(std::string(data.manifest().shards()[i].name),
                               made("zstd") + "/" + index.shards[i].name);
  const auto plain_shards = ps::mds(made("zstd"));
  CHECK(plain_shards.fingerprint() == data.fingerprint());
  CHECK(plain_shards.connect().key(20) == data.connect().key(20));
  CHECK(column<"s", ps::text>(plain_shards, as_text) == column<"s", ps::text>(data, as_text));
}
#endif

TEST_CASE("source/mds: shards that Streaming packed with brotli and snappy") {
  const mds_folder made;
  const auto brotli = ps::mds<ps::unpack_brotli>(made("br"));
  CHECK(brotli.size() == 3);
  CHECK(column<"x", ps::raw_number<std::int64_t>>(brotli, plain) == "0;1;2;");
  CHECK(column<"x", ps::raw_number<std::int64_t>>(
            ps::mds<ps::unpack_brotli, ps::unpack_snappy>(made("snappy")), plain) == "0;1;2;");
  const mds_folder other;  // without copies
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::mds<ps::unpack_brotli>(other("snappy")); }),
             contains("compressed with snappy") && contains("mds<unpack_snappy>(...)"));
  const std::string index = other("br") + "/index.json";
  std::ifstream in(index);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.replace(text.find("\"br\""), 4, "\"lz\"");
  std::ofstream(index) << text;
  CHECK_THAT(
      penstock_test::error_of([&] { (void)ps::mds<ps::unpack_brotli>(other("br")); }),
      contains("the shard's compression is 'lz'; those of gzip, zstd, bzip2, brotli (br) and snappy are"));
}

TEST_CASE("source/mds: real datasets") {
  const auto folder = penstock_test::test_data("mds");
  if (!folder) {
    WARN("skipped: PENSTOCK_TEST_DATA names no folder with mds");
    return;
  }
  for (const char* const name : {"naive_v1", "naive_v2"}) {
    const auto data = ps::mds((*folder / name).string());
    CHECK(column<"dept", ps::text>(data, as_text) == "Finance;Finance;Sales;Marketing;Sales;");
    CHECK(column<"id", ps::text>(data, as_text).starts_with("36636;40288;42114;"));
  }
}

}  // namespace mds_test
