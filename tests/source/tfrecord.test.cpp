// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/tfrecord.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/resume_test.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"
#include "support/tf_files.hpp"

#include <penstock/codec/text.hpp>
#include <penstock/codec/tf_example.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/dali_index.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::numbered_payloads;
using penstock_test::tf_record_of;
using penstock_test::tf_records_of;

static_assert(ps::indexed_source<ps::tfrecord_source<ps::file>> &&
              ps::projecting_source<ps::tfrecord_source<ps::file>>);
static_assert(ps::blob<ps::tfrecord_source<ps::mapped_file>::element>);

namespace tfrecord_test {

const ps::tfrecord_options kept{.index = ps::index_policy::keep};
const ps::tfrecord_options no_files{.index = ps::index_policy::transient};

/// Three files of 5, 0 and 9 records, the last of which has one of 100,000 bytes.
struct record_files {
  penstock_test::temp_dir dir;
  std::vector<std::string> paths, bytes;
  std::vector<std::string> payloads = numbered_payloads(0, 13);

  record_files() {
    payloads.push_back(std::string(100'000, '7'));
    bytes = {tf_records_of({payloads.begin(), payloads.begin() + 5}), "",
             tf_records_of({payloads.begin() + 5, payloads.end()})};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      paths.push_back((dir / ("part-" + std::to_string(i))).string());
      write(i, bytes[i]);
    }
  }
  void write(std::size_t file, std::string_view content) const {
    std::ofstream(paths[file], std::ios::binary) << content;
  }
  /// In every kind of storage: shown in place, copied, and read ahead.
  template <class F>
  void in_every_storage(F&& f) const {
    ps::memory_files memory;
    for (std::size_t i = 0; i < paths.size(); ++i) memory.add(paths[i], bytes[i]);
    f(ps::tfrecord(paths, no_files));
    f(ps::tfrecord(ps::mapped_file(paths), no_files));
    f(ps::tfrecord(ps::file(paths, {.access = ps::file_access::read}), no_files));
    f(ps::tfrecord(ps::file(paths, {.access = ps::file_access::map}), no_files));
    f(ps::tfrecord(memory, no_files));
    f(ps::tfrecord(ps::simulated_storage(ps::file(paths), {}), no_files));
  }
};

std::string text_in(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class Data>
std::vector<std::string> texts_of(const Data& data, unsigned workers = 0) {
  std::vector<std::string> all;
  for (auto&& one : (data | ps::decode<ps::text> | ps::workers(workers)).epoch(0)) all.emplace_back(one);
  return all;
}
/// The error of reading all records of a file.
std::string refusal(const std::string& path, ps::tfrecord_options options = no_files) {
  return penstock_test::error_of([&] { (void)texts_of(ps::tfrecord(path, options)); });
}

TEST_CASE("source/tfrecord: the records of files, from any storage, in any way of taking them") {
  const record_files made;
  made.in_every_storage([&](const auto& data) {
    REQUIRE(data.size() == 14);
    for (const unsigned workers : {0u, 1u, 2u, 7u}) CHECK(texts_of(data, workers) == made.payloads);
    CHECK(data.connect().key(5) == made.paths[2] + ":0");
    // straight into a batch, and by rows
    std::vector<std::string> rows;
    for (auto&& b : (data | ps::batch(4, ps::ragged)).epoch(0))
      for (std::size_t i = 0; i < b.valid_size(); ++i) {
        const auto row = b.values()[i];
        rows.emplace_back(reinterpret_cast<const char*>(row.data()), row.size());
      }
    CHECK(rows == made.payloads);
    // in another order, and of one sample
    const auto reader = data.connect();
    typename decltype(data.connect())::worker w;
    for (std::uint64_t i = data.size(); i-- != 0;)
      reader.evaluate({0, i}, w, [&](const auto& one) {
        REQUIRE(one.size() == made.payloads[i].size());
        std::string into(made.payloads[i].size(), '\0');
        one.read_into({reinterpret_cast<std::byte*>(into.data()), into.size()});
        CHECK(into == made.payloads[i]);
        CHECK(ps::text_of(one.finish()) == made.payloads[i]);
      });
  });
}

TEST_CASE("source/tfrecord: payloads that do not match their checksums are errors when they are used") {
  const record_files made;
  std::string bad = made.bytes[2];
  bad[bad.size() - 50'000] = '8';  // of the large record
  bad[12] = 'x';                   // of the first
  record_files damaged;
  damaged.write(2, bad);
  damaged.bytes[2] = bad;
  damaged.in_every_storage([&](const auto& data) {
    REQUIRE(data.size() == 14);
    const auto reader = data.connect();
    typename decltype(data.connect())::worker w;
    for (const std::uint64_t i : {5u, 13u})
      for (const bool into : {false, true}) {
        const std::string text = penstock_test::error_of([&] {
          reader.evaluate({0, i}, w, [&](const auto& one) {
            std::string room(damaged.payloads[i].size(), '\0');
            if (into)
              one.read_into({reinterpret_cast<std::byte*>(room.data()), room.size()});
            else
              (void)one.finish();
          });
        });
        CHECK_THAT(text, contains("the record does not match its checksum: the file is damaged"));
        CHECK_THAT(text, contains(damaged.paths[2] + ":" + std::to_string(i - 5)));
      }
    reader.evaluate({0, 6}, w,
                    [&](const auto& one) { CHECK(ps::text_of(one.finish()) == damaged.payloads[6]); });
  });
  const auto unchecked = ps::tfrecord(damaged.paths, {.index = ps::index_policy::transient, .check = false});
  CHECK(texts_of(unchecked)[5] == "x" + damaged.payloads[5].substr(1));
  CHECK(texts_of(unchecked)[13][50'004] == '8');
}

TEST_CASE(
    "source/tfrecord: a file that is no TFRecord, cut off, damaged or compressed is an error with its "
    "place") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "a").string();
  const auto with = [&](std::string_view content) {
    std::ofstream(path, std::ios::binary) << content;
    return refusal(path);
  };
  const std::string good = tf_records_of({"one", "three", "seven"});
  CHECK(with(good).empty());
  CHECK(with("").empty());
  CHECK_THAT(with("a text, and no record"), contains("this is not a TFRecord file"));
  CHECK_THAT(with("short"), contains("this is not a TFRecord file"));
  CHECK_THAT(with(std::string(100, '\0')), contains("this is not a TFRecord file"));
  CHECK_THAT(with("\x78\x9c and more of it"),
             contains("if it is compressed with zlib, write tfrecord_stream<unpack_zlib>"));
  CHECK_THAT(with("\x1f\x8b and more of it"),
             contains("the file is compressed with gzip: link penstock::zlib, include "
                      "<penstock/codec/unpack_gzip.hpp> and write tfrecord_stream<unpack_gzip>(...)"));
  for (std::size_t size = 1; size < good.size(); ++size) {
    const std::string text = with(std::string_view(good).substr(0, size));
    INFO(size);
    if (size == 19 || size == 19 + 21) {
      CHECK(text.empty());  // between two records
    } else {
      CHECK_THAT(text, contains(size < 12 ? "this is not a TFRecord file: it has only " +
                                                std::to_string(size) + " bytes"
                                          : "it was cut off"));
      CHECK_THAT(text, contains("file " + path));
      const std::size_t at = size < 19 ? 0 : size < 40 ? 19 : 40, payload = size < 19 ? 3 : 5;
      if (size >= at + 12)
        CHECK_THAT(text, contains("which needs " + std::to_string(payload + 4) + " bytes where " +
                                  std::to_string(size - at - 12) + " are left"));
    }
  }
  std::string damaged = good;
  damaged[19] = '\4';  // the size of the second record
  CHECK_THAT(with(damaged), contains("the size of record 1 does not match its checksum"));
  CHECK_THAT(with(damaged), contains("offset 19"));
  std::string huge = good.substr(0, 19);
  const std::string size = "\xff\xff\xff\xff\xff\xff\xff\xff";
  huge += size + penstock_test::masked_crc_of(size) + "abc";
  CHECK_THAT(with(huge),
             contains("the file ends within record 1, which needs 18446744073709551615 bytes where 3"));
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::tfrecord(path, {.index = ps::dali_index}); }),
             contains("tfrecord makes its own indexes"));
  std::filesystem::remove(path);
  CHECK_THAT(refusal(path), contains(path));
}

TEST_CASE(
    "source/tfrecord: indexes are kept, made again when the file changes, and not taken for those of tar") {
  const record_files made;
  const auto names = [&] {
    std::size_t indexes = 0;
    for (const auto& one : std::filesystem::directory_iterator(made.dir.path()))
      indexes += one.path().extension() == ".penstock-index" ? 1 : 0;
    return indexes;
  };
  CHECK(texts_of(ps::tfrecord(made.paths)) == made.payloads);
  REQUIRE(names() == 0);  // by default, nothing is written beside the files
  CHECK(texts_of(ps::tfrecord(made.paths, ps::index_policy::keep)) == made.payloads);
  REQUIRE(names() == 3);
  CHECK(texts_of(ps::tfrecord(made.paths, ps::index_policy::require)) == made.payloads);
  const std::uint64_t mark = ps::tfrecord(made.paths, kept).fingerprint();
  // Behind the header, where only its use shows it.
  std::string index = text_in(made.paths[2] + ".penstock-index");
  index.back() = static_cast<char>(index.back() ^ 1);
  std::ofstream(made.paths[2] + ".penstock-index", std::ios::binary) << index;
  CHECK(texts_of(ps::tfrecord(made.paths, kept)) == made.payloads);
  made.write(0, tf_records_of({"other"}));
  CHECK(texts_of(ps::tfrecord(made.paths, kept)).front() == "other");
  CHECK(ps::tfrecord(made.paths, kept).fingerprint() != mark);
  CHECK_THAT(ps::tfrecord(made.paths, kept).describe(), contains("3 shards, 10 samples"));

  // An index of the same file as a tar shard: it says that offsets are blocks.
  std::string other = text_in(made.paths[0] + ".penstock-index");
  const auto header = ps::detail::index_header::load(ps::bytes_of(other));
  REQUIRE(header.has_value());
  CHECK(header->bytewise == 1);
  auto as_tar = *header;
  as_tar.bytewise = 0;
  as_tar.store(reinterpret_cast<std::byte*>(other.data()));
  std::ofstream(made.paths[0] + ".penstock-index", std::ios::binary) << other;
  CHECK(texts_of(ps::tfrecord(made.paths, kept)).front() == "other");
  // A file that changes after the plan was made.
  const auto planned = ps::tfrecord(made.paths, no_files);
  made.write(0, tf_records_of({"other and longer"}));
  CHECK_THAT(penstock_test::error_of([&] { (void)texts_of(planned); }), contains("the shard was changed"));
}

TEST_CASE("source/tfrecord: an index that lies about its records is made again") {
  const record_files made;
  (void)ps::tfrecord(made.paths, kept);
  const std::string path = made.paths[0] + ".penstock-index", good = text_in(path);
  // The tables: 5 + 1 samples, and then the place and size of each record.
  const std::size_t first = ps::detail::index_header::size + 8 * 6;
  for (const auto& [at, value] :
       {std::pair{first + 8, std::uint64_t{2}}, std::pair{first, std::uint64_t{3} << 24}}) {
    std::string bad = good;
    const std::uint64_t before = ps::detail::load_little<std::uint64_t>(ps::bytes_of(good).data() + at);
    ps::detail::store_little<std::uint64_t>(reinterpret_cast<std::byte*>(bad.data()) + at, value);
    auto header = *ps::detail::index_header::load(ps::bytes_of(good));
    if (at == first + 8) header.payload += value - before;
    header.content = ps::detail::checksum(ps::bytes_of(bad).subspan(ps::detail::index_header::size));
    header.store(reinterpret_cast<std::byte*>(bad.data()));
    CHECK(ps::detail::shard_index::over(ps::bytes_of(good)).has_value());
    CHECK(!ps::detail::shard_index::over(ps::bytes_of(bad)).has_value());
  }
}

TEST_CASE("source/tfrecord: shuffled, sharded, and resumed after every batch") {
  const record_files made;
  const auto number =
      ps::decode<ps::text> | ps::map([](std::string_view digits) {
        return digits.size() > 9 ? std::uint64_t{77} : std::uint64_t(std::stoul(std::string(digits)));
      });
  const auto data = ps::tfrecord(made.paths, no_files);
  engine_test::check_all_stops(data | ps::shuffle(ps::seed(3)) | number | ps::batch(2));
  engine_test::check_elastic(
      [&](std::uint64_t rank, std::uint64_t world, std::uint64_t size) {
        return data | ps::shuffle(ps::seed(5)) | number | ps::shard(rank, world) | ps::batch(size);
      },
      4, 2, 4, 1);
}

TEST_CASE("source/tfrecord: what TensorFlow and others wrote") {
  const auto folder = penstock_test::test_data("tfrecord");
  if (!folder) {
    WARN("skipped: PENSTOCK_TEST_DATA names no folder with tfrecord");
    return;
  }
  using example =
      ps::tf_example<ps::feature<"x_int", std::span<const std::int64_t>>,
                     ps::feature<"x_float", std::array<float, 10>>, ps::feature<"x_byte", ps::bytes>>;
  std::string all;
  const auto data = ps::tfrecord((*folder / "example.tfrecord").string(), no_files);
  for (auto&& one : (data | ps::decode<example> | ps::workers(0)).epoch(0)) {
    REQUIRE(ps::get<"x_int">(one).size() == 10);
    all += std::to_string(ps::get<"x_int">(one)[9]) + " " + std::to_string(ps::get<"x_float">(one)[9]) + " " +
           std::string(ps::text_of(ps::get<"x_byte">(one))) + ";";
  }
  CHECK(all == "90 9.000000 test str;190 19.000000 test str;290 29.000000 test str;390 39.000000 test str;");
  CHECK(ps::tfrecord((*folder / "morris_sequence_first_5.tfrecord").string(), no_files).size() == 5);
  CHECK(ps::tfrecord((*folder / "sequence_example.tfrecord").string(), no_files).size() == 4);
}

TEST_CASE("source/tfrecord: a folder's files, of one split") {
  const penstock_test::temp_dir dir;
  const auto write = [&](const std::string& name, const std::vector<std::string>& payloads) {
    std::ofstream(dir.path() / name, std::ios::binary) << penstock_test::tf_records_of(payloads);
  };
  write("mnist-train.tfrecord-00000-of-00001", {"1", "2"});
  const auto texts = [](const auto& source) {
    std::vector<std::string> made;
    for (const auto& one : (source | ps::decode<ps::text>).epoch(0)) made.emplace_back(one);
    return made;
  };
  using list = std::vector<std::string>;
  CHECK(texts(ps::tfrecord(dir.path().string())) == list{"1", "2"});
  write("mnist-test.tfrecord-00000-of-00001", {"3"});
  CHECK_THROWS_AS(ps::tfrecord(dir.path().string()), ps::error);
  CHECK(texts(ps::tfrecord(dir.path().string(), ps::split("train"))) == list{"1", "2"});
  CHECK(texts(ps::tfrecord(dir.path().string(), ps::split("test"))) == list{"3"});
}

}  // namespace tfrecord_test
