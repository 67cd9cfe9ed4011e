// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/tfrecord_stream.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/resume_test.hpp"
#include "support/temp_dir.hpp"
#include "support/tf_files.hpp"

#include <penstock/codec/text.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_zlib.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::tf_records_of;

static_assert(ps::forward_source<ps::tfrecord_stream_source<ps::file, ps::unpack_gzip>>);

namespace tfrecord_stream_test {

std::string packed(const std::string& text, int window_bits) {
  z_stream z{};
  REQUIRE(::deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string bytes(::deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(bytes.data());
  z.avail_out = static_cast<uInt>(bytes.size());
  REQUIRE(::deflate(&z, Z_FINISH) == Z_STREAM_END);
  bytes.resize(bytes.size() - z.avail_out);
  ::deflateEnd(&z);
  return bytes;
}
std::string gzip(const std::string& text) { return packed(text, 15 + 16); }
std::string zlib(const std::string& text) { return packed(text, 15); }

template <class Data>
std::vector<std::string> texts_of(const Data& data) {
  std::vector<std::string> all;
  for (auto&& one : (data | ps::decode<ps::text> | ps::workers(0)).epoch(0)) all.emplace_back(one);
  return all;
}
auto stream_of(const ps::memory_files& files, ps::tfrecord_stream_options options = {}) {
  return ps::tfrecord_stream<ps::unpack_gzip, ps::unpack_zlib>(files, options);
}
std::string refusal(const std::string& content, ps::tfrecord_stream_options options = {}) {
  ps::memory_files files;
  files.add("a", content);
  return penstock_test::error_of([&] { (void)texts_of(stream_of(files, options)); });
}

TEST_CASE(
    "source/tfrecord_stream: a pattern is expanded, and the names in a list are not, however it is given") {
  using names = std::vector<std::string>;
  const std::string one = "/none/x{0..1}.tfrecord";
  const auto given = [](ps::detail::given_paths paths) { return paths.names; };
  CHECK(given(one) == names{"/none/x0.tfrecord", "/none/x1.tfrecord"});
  CHECK(given({one}) == names{one});
  CHECK(given({one, one}) == names{one, one});
  CHECK(given({one, "/none/y"}) == names{one, "/none/y"});
  CHECK(given({"/none/x{0..1}.tfrecord"}) == names{one});
  CHECK(given(names{one}) == names{one});
}

TEST_CASE("source/tfrecord_stream: packed with gzip and zlib, and as they are, one file after another") {
  auto all = penstock_test::numbered_payloads(0, 40);
  all.push_back(std::string(3'000'000, 'l'));
  const auto part = [&](std::size_t first, std::size_t last) {
    return tf_records_of(
        {all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(last)});
  };
  ps::memory_files files;
  files.add("a.gz", gzip(part(0, 10)));
  files.add("b", part(10, 11));
  files.add("c", "");
  files.add("d.zz", zlib(part(11, 30)));
  files.add("e.gz", gzip(""));
  files.add("f", gzip(part(30, 35)) + gzip(part(35, 41)));
  CHECK(texts_of(stream_of(files)) == all);
  CHECK(texts_of(ps::tfrecord_stream<ps::unpack_zlib, ps::unpack_gzip>(ps::simulated_storage(files, {}))) ==
        all);

  const penstock_test::temp_dir dir;
  std::ofstream(dir / "x-0.gz", std::ios::binary) << gzip(part(0, 10));
  std::ofstream(dir / "x-1.gz", std::ios::binary) << gzip(part(10, 20));
  const auto named = ps::tfrecord_stream<ps::unpack_gzip>((dir / "x-{0..1}.gz").string());
  CHECK(texts_of(named) == std::vector<std::string>(all.begin(), all.begin() + 20));
  CHECK_THAT(named.describe(), contains("tfrecord_stream(2 shards from "));
  const auto listed = ps::tfrecord_stream<ps::unpack_gzip>(std::vector{(dir / "x-0.gz").string()});
  CHECK(texts_of(listed) == std::vector<std::string>(all.begin(), all.begin() + 10));
}

TEST_CASE("source/tfrecord_stream: a first record whose size looks like the beginning of a zlib stream") {
  for (const std::size_t size : {0x0178u, 0x5e78u, 0x9c78u, 0xda78u}) {
    ps::memory_files files;
    files.add("a", tf_records_of({std::string(size, 'a'), "b"}));
    CHECK(texts_of(stream_of(files)).size() == 2);
    CHECK(texts_of(ps::tfrecord_stream(files)).size() == 2);
  }
}

TEST_CASE("source/tfrecord_stream: resumed after every batch") {
  ps::memory_files files;
  files.add("a", gzip(tf_records_of(penstock_test::numbered_payloads(0, 7))));
  files.add("b", zlib(""));
  files.add("c", gzip(tf_records_of(penstock_test::numbered_payloads(7, 6))));
  const auto number = ps::decode<ps::text> | ps::map([](std::string_view digits) {
                        return std::uint64_t(std::stoul(std::string(digits)));
                      });
  engine_test::check_all_stops(stream_of(files) | number | ps::batch(2));
}

TEST_CASE("source/tfrecord_stream: damage is an error with file, offset and record") {
  const std::string good = tf_records_of({"one", "three", "seven"});
  CHECK(refusal(good).empty());
  for (std::size_t size = 1; size < good.size(); ++size) {
    INFO(size);
    for (const std::string& text : {refusal(good.substr(0, size)), refusal(gzip(good.substr(0, size)))}) {
      if (size == 19 || size == 40)
        CHECK(text.empty());  // between two records
      else
        CHECK_THAT(text, contains(size < 12 ? "this is not a TFRecord file" : "it was cut off"));
    }
    CHECK_THAT(refusal(gzip(good).substr(0, 5 + size % 20)), contains("cut off"));
  }
  std::string damaged = good;
  damaged[33] = 'x';  // in the second payload
  CHECK_THAT(refusal(damaged), contains("the record does not match its checksum"));
  CHECK_THAT(refusal(damaged), contains("record 1"));
  CHECK_THAT(refusal(damaged), contains("offset 31"));
  CHECK_THAT(refusal(zlib(damaged)), contains("the record does not match its checksum"));
  damaged = good;
  damaged[20] = '\1';
  CHECK_THAT(refusal(damaged), contains("the size of record 1 does not match its checksum"));
  CHECK_THAT(refusal("no record, but a text"), contains("this is not a TFRecord file"));
  CHECK_THAT(refusal(good, {.limit = 4}), contains("record 1 has 5 bytes, and the limit is 4"));
  std::string huge = "\xff\xff\xff\xff\x07" + std::string(3, '\0');
  huge += penstock_test::masked_crc_of(huge) + "abc";
  CHECK_THAT(refusal(huge, {.limit = 1ull << 40}),
             contains("which needs 34359738371 bytes where 3 are left"));
  ps::memory_files files;
  files.add("a", gzip(good));
  CHECK_THAT(penstock_test::error_of([&] { (void)texts_of(ps::tfrecord_stream(files)); }),
             contains("write tfrecord_stream<unpack_gzip>(...)"));
  ps::memory_files others;
  others.add("a", zlib(good));
  CHECK_THAT(penstock_test::error_of([&] { (void)texts_of(ps::tfrecord_stream(others)); }),
             contains("write tfrecord_stream<unpack_zlib>(...)"));
}

}  // namespace tfrecord_stream_test
