// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/webdataset_stream.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/forward_listing.hpp"
#include "support/raw_tar.hpp"
#include "support/tar_cases.hpp"
#include "support/temp_dir.hpp"

#include <penstock/codec/integer.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/order.hpp>
#include <penstock/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

static_assert(penstock::forward_source<penstock::webdataset_stream_source<>> &&
              penstock::open_sample<penstock::detail::tar_stream_sample>);

namespace {

using penstock::errc;
using penstock::webdataset_stream;
using penstock_test::forward_listing;
using penstock_test::raw_tar;

using lines_type = std::vector<std::string>;

template <class Call>
penstock::error failure_in(Call&& call) {
  try {
    call();
  } catch (const penstock::error& e) {
    return e;
  }
  FAIL("no error");
  throw 0;
}

/// An unpacker that copies the bytes between a gzip magic and an end mark, at most three at a time.
struct trickle {
  static constexpr std::string_view unpacker_format = "gzip";
  struct stream {
    void begin() {
      seen = 0;
      ended = false;
    }
    penstock::unpack_step step(penstock::bytes_view in, penstock::mutable_bytes out, bool) {
      if (in.empty()) return {0, 0, ended};
      if (seen < 2) return ++seen, penstock::unpack_step{1, 0, false};
      if (in[0] == std::byte{0x1d}) return ended = true, penstock::unpack_step{1, 0, true};
      if (in[0] == std::byte{0x1c}) return {0, 0, false};
      std::size_t n = 0;
      for (; n < std::min<std::size_t>({in.size(), out.size(), 3}) && in[n] != std::byte{0x1d} &&
             in[n] != std::byte{0x1c};
           ++n)
        out[n] = in[n];
      return {n, n, false};
    }
    int seen = 0;
    bool ended = false;
  };
};
static_assert(penstock::unpacker<trickle>);

}  // namespace

TEST_CASE("source/webdataset_stream: every dialect and rule, as for webdataset") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "t.tar").string();
  for (const auto& one : penstock_test::good_tar_cases()) {
    INFO(one.name);
    std::ofstream(path, std::ios::binary) << one.bytes;
    CHECK(forward_listing(webdataset_stream(path)) == one.lines);
    std::ofstream(path, std::ios::binary) << "\x1f\x8b" << one.bytes << "\x1d";
    CHECK(forward_listing(webdataset_stream<trickle>(path)) == one.lines);
  }
}

TEST_CASE("source/webdataset_stream: an option raises the limit of extension headers") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "t.tar").string();
  penstock_test::raw_tar tar;
  tar.pax('x', penstock_test::pax_record("comment=" + std::string(3u << 20, 'c'))).member("a.txt", "1").end();
  std::ofstream(path, std::ios::binary) << tar.bytes;
  CHECK((failure_in([&] { (void)forward_listing(webdataset_stream(path)); }).code() == errc::limit));
  CHECK(forward_listing(webdataset_stream(path, {.extension_limit = 4u << 20})) ==
        std::vector<std::string>{"a: txt=1"});
}

TEST_CASE("source/webdataset_stream: errors and their places, as for webdataset") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "t.tar").string();
  for (const auto& one : penstock_test::bad_tar_cases()) {
    INFO(one.name);
    std::ofstream(path, std::ios::binary) << one.bytes;
    const auto e = failure_in([&] { (void)forward_listing(webdataset_stream(path, {.limit = 1u << 20})); });
    CHECK((e.code() == (one.error.starts_with("the limit is") ? errc::limit : errc::format)));
    CHECK(e.file() == path);
    CHECK_THAT(e.what(), penstock_test::contains(one.error));
    CHECK(e.offset() == one.offset);
    CHECK(e.key() == one.key);
  }
}

TEST_CASE("source/webdataset_stream: samples before a failure are delivered, and nothing after it") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "t.tar").string();
  raw_tar().member("a.txt", "1").member("b.txt", "2").header("c.txt", 600).body("x").save(path);
  const auto data = webdataset_stream({path.c_str(), path.c_str()});
  auto reader = data.connect();
  decltype(data)::element sample;
  for (int round = 0; round < 2; ++round) {
    CHECK(reader.next(sample));
    CHECK(reader.next(sample));
    CHECK(sample.key() == "b");
    CHECK(sample.url() == path);
    const auto e = failure_in([&] { (void)reader.next(sample); });
    CHECK(e.key() == "c.txt");
    CHECK(e.offset() == 2560);
    CHECK_FALSE(reader.next(sample));
    reader.rewind(1);
  }
}

TEST_CASE("source/webdataset_stream: shards one after another, by patterns and lists, again and again") {
  const penstock_test::temp_dir dir;
  raw_tar().end().save((dir / "s-0.tar").string());
  raw_tar().member("a.txt", "1").member("b.txt", "2").end().save((dir / "s-1.tar").string());
  raw_tar().member("README", "").end().save((dir / "s-2.tar").string());
  raw_tar().member("b.txt", "3").end().save((dir / "s-3.tar").string());
  const lines_type lines{"a: txt=1", "b: txt=2", "b: txt=3"};  // samples never span shards
  const auto data = webdataset_stream((dir / "s-{0..3}.tar").string());
  CHECK(forward_listing(data) == lines);
  CHECK(forward_listing(webdataset_stream(dir / "s-{0..3}.tar")) == lines);
  CHECK(forward_listing(webdataset_stream((dir / "s-{0..1}.tar::").string() + (dir / "s-3.tar").string())) ==
        lines);
  CHECK(forward_listing(webdataset_stream(
            std::vector<std::string>{(dir / "s-1.tar").string(), (dir / "s-3.tar").string()})) == lines);
  auto reader = data.connect();
  decltype(data)::element sample;
  CHECK(reader.next(sample));
  reader.rewind(1);
  CHECK(penstock_test::rest_of(reader, sample) == lines);
  reader.rewind(2);
  CHECK(penstock_test::rest_of(reader, sample) == lines);
  CHECK_THAT(data.describe(), penstock_test::contains("4 shards"));
  CHECK(data.fingerprint() != webdataset_stream(dir / "s-{0..2}.tar").fingerprint());
  CHECK_THROWS_WITH(webdataset_stream(std::vector<std::string>{}),
                    penstock_test::contains("at least one shard"));
}

TEST_CASE("source/webdataset_stream: shards that are missing or are folders") {
  const penstock_test::temp_dir dir;
  const auto missing = failure_in([&] { (void)forward_listing(webdataset_stream(dir / "no.tar")); });
  CHECK((missing.code() == errc::io));
  CHECK(missing.file() == (dir / "no.tar").string());
  CHECK_THAT(missing.what(), penstock_test::contains("No such file"));
  CHECK_THROWS_WITH(forward_listing(webdataset_stream(dir.path())), penstock_test::contains("is a folder"));
}

TEST_CASE("source/webdataset_stream: members of all sizes, byte by byte") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "t.tar").string();
  raw_tar tar;
  lines_type lines;
  penstock::rng random(3, 0, 0);
  for (const std::size_t size :
       {0u, 1u, 511u, 512u, 513u, 262'143u, 262'144u, 262'145u, 600'000u, 3'000'000u, 5u}) {
    std::string content(size, '\0');
    for (char& c : content) c = static_cast<char>('a' + random.below(26));
    const std::string key = "s" + std::to_string(lines.size());
    tar.member(key + ".bin", content).member("skipped", content).member(key + ".cls", "7");
    lines.push_back(key + ": bin=" + content + " cls=7");
  }
  tar.end().save(path);
  CHECK(forward_listing(webdataset_stream(path)) == lines);
  std::ofstream(path, std::ios::binary) << "\x1f\x8b" << tar.bytes << "\x1d";
  CHECK(forward_listing(webdataset_stream<trickle>(path)) == lines);
}

TEST_CASE("source/webdataset_stream: a sample has a limit, and announced sizes are not trusted") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "t.tar").string();
  raw_tar().member("a.bin", std::string(2000, 'x')).end().save(path);
  CHECK(forward_listing(webdataset_stream(path, {.limit = 2100})).size() == 1);
  const auto e = failure_in([&] { (void)forward_listing(webdataset_stream(path, {.limit = 2000})); });
  CHECK((e.code() == errc::limit));
  CHECK(e.key() == "a");
  CHECK(e.offset() == 0);
  CHECK_THAT(e.what(), penstock_test::contains("'a.bin' of 2000 bytes"));

  // a petabyte, under a limit that allows it: the end is reached before memory is allocated
  raw_tar()
      .header("a.bin", 0)
      .patch(124, penstock_test::base256(std::uint64_t{1} << 50))
      .body("x")
      .save(path);
  const auto cut =
      failure_in([&] { (void)forward_listing(webdataset_stream(path, {.limit = ~std::uint64_t{0}})); });
  CHECK((cut.code() == errc::format));
  CHECK_THAT(cut.what(), penstock_test::contains("and 512 are left"));

  // empty members count too
  raw_tar many;
  for (int i = 0; i < 2000; ++i) many.header("a.m" + std::to_string(i), 0);
  many.end().save(path);
  CHECK(forward_listing(webdataset_stream(path)).size() == 1);
  CHECK((failure_in([&] { (void)forward_listing(webdataset_stream(path, {.limit = 10'000})); }).code() ==
         errc::limit));
  many.bytes.resize(many.bytes.size() - 1024);
  many.header("a.M1999", 0).end().save(path);
  CHECK_THROWS_WITH(forward_listing(webdataset_stream(path)), penstock_test::contains("two members 'm1999'"));
}

TEST_CASE("source/webdataset_stream: packed shards without an unpacker say what to link and to write") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "t.tar").string();
  const auto problem = [&](const std::string& head) {
    std::ofstream(path, std::ios::binary) << head << std::string(1000, 'z');
    return failure_in([&] { (void)forward_listing(webdataset_stream(path)); });
  };
  CHECK((problem("\x1f\x8b").code() == errc::argument));
  CHECK_THAT(
      problem("\x1f\x8b").what(),
      penstock_test::contains("link penstock::zlib, include <penstock/codec/unpack_gzip.hpp> and write "
                              "webdataset_stream<unpack_gzip>(...)"));
  CHECK_THAT(problem("\x28\xb5\x2f\xfd").what(), penstock_test::contains("link penstock::zstd"));
  CHECK_THAT(problem("\x04\x22\x4d\x18").what(), penstock_test::contains("link penstock::lz4"));
  CHECK_THAT(problem("BZh9").what(), penstock_test::contains("link penstock::bz2"));
  CHECK_THAT(problem(std::string("\xfd\x37zXZ\0", 6)).what(), penstock_test::contains("link penstock::xz"));
  CHECK((problem("\x1f\x9d").code() == errc::format));
  CHECK_THAT(problem("\x1f\x9d").what(),
             penstock_test::contains("compress (.Z), for which there is no unpacker"));
  raw_tar().member("BZh.txt", "1").end().save(path);
  CHECK(forward_listing(webdataset_stream(path)) == lines_type{"BZh: txt=1"});
}

TEST_CASE("source/webdataset_stream: packed shards that are cut off or make no progress") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "t.tar").string();
  const std::string tar = raw_tar().member("a.txt", "1").member("b.txt", "2").end().bytes;
  std::ofstream(path, std::ios::binary) << "\x1f\x8b" << tar;  // the end mark is missing
  auto e = failure_in([&] { (void)forward_listing(webdataset_stream<trickle>(path)); });
  CHECK((e.code() == errc::format));
  CHECK_THAT(e.what(), penstock_test::contains("the compressed shard is cut off"));
  CHECK(e.offset() == tar.size());
  std::ofstream(path, std::ios::binary) << "\x1f\x8b" << tar.substr(0, 1024) << "\x1c";
  e = failure_in([&] { (void)forward_listing(webdataset_stream<trickle>(path)); });
  CHECK_THAT(e.what(), penstock_test::contains("damaged"));
  CHECK(e.offset() == 1024);
}

TEST_CASE("source/webdataset_stream: a FIFO is read once, and says so when it is read again") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "pipe").string();
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  raw_tar tar;
  // more padding than a pipe holds
  tar.member("a.txt", "1").member("b.bin", std::string(300'000, 'x')).end(40);
  std::thread writer([&] { tar.save(path); });
  const auto data = penstock::webdataset_pipe(path);
  auto reader = data.connect();
  decltype(data)::element sample;
  CHECK(penstock_test::rest_of(reader, sample) ==
        lines_type{"a: txt=1", "b: bin=" + std::string(300'000, 'x')});
  writer.join();
  reader.rewind(1);
  for (int round = 0; round < 2; ++round) {
    const auto e = failure_in([&] { round == 0 ? (void)reader.next(sample) : (void)forward_listing(data); });
    CHECK((e.code() == errc::state));
    CHECK(e.file() == path);
    CHECK_THAT(e.what(), penstock_test::contains("can be read only once"));
  }
}

TEST_CASE("source/webdataset_stream: standard input") {
  const penstock_test::temp_dir dir;
  raw_tar().member("a.txt", "1").member("b.txt", "2").end().save((dir / "t.tar").string());
  const int saved = ::dup(STDIN_FILENO);
  std::FILE* const file = std::fopen((dir / "t.tar").c_str(), "rb");
  REQUIRE(file != nullptr);
  ::dup2(::fileno(file), STDIN_FILENO);
  const auto data = penstock::webdataset_pipe("-");
  const auto lines = forward_listing(data);
  const auto again = failure_in([&] { (void)forward_listing(data); });
  if (saved >= 0) {
    ::dup2(saved, STDIN_FILENO);
    ::close(saved);
  }
  std::fclose(file);
  CHECK(lines == lines_type{"a: txt=1", "b: txt=2"});
  CHECK((again.code() == errc::state));
  CHECK_THAT(again.what(), penstock_test::contains("standard input can be read only once"));
}

TEST_CASE("source/webdataset_stream: nothing is allocated once the memory has grown") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "t.tar").string();
  raw_tar tar;
  for (int i = 0; i < 200; ++i) {
    const std::string key =
        "a-key-that-is-longer-than-what-a-string-holds-itself-" + std::to_string(1000 + i);
    tar.pax('x', penstock_test::pax_record("path=folder-of-samples/" + key + ".jpg"));
    tar.member("s", std::string(5000, 'x')).member("folder-of-samples/" + key + ".class-of-it", "7");
  }
  tar.end().save(path);
  const auto data = webdataset_stream(path);
  auto reader = data.connect();
  decltype(data)::element sample;
  for (int i = 0; i < 20; ++i) REQUIRE(reader.next(sample));
  bool all = true;
  CHECK(penstock_test::allocations_of([&] {
          for (int i = 20; i < 200; ++i) all = reader.next(sample) && all;
        }) == 0);
  CHECK(all);
}

TEST_CASE("source/webdataset_stream: fields, decode and batch after it") {
  const penstock_test::temp_dir dir;
  raw_tar tar;
  for (int i = 0; i < 100; ++i)
    tar.member(std::to_string(i) + ".txt", "text " + std::to_string(i))
        .member(std::to_string(i) + ".cls", std::to_string(i % 10));
  tar.end().save((dir / "t.tar").string());
  const auto plan =
      webdataset_stream(dir / "t.tar") |
      penstock::decode<penstock::field<"cls", penstock::integer>, penstock::field<"txt", penstock::text>> |
      penstock::batch(10, penstock::ragged) | penstock::workers(2);
  int seen = 0, wrong = 0;
  for (auto&& b : plan) {
    for (const auto value : penstock::get<"cls">(b)) wrong += value == seen++ % 10 ? 0 : 1;
  }
  CHECK(seen == 100);
  CHECK(wrong == 0);
}

TEST_CASE(
    "source/webdataset_stream: take, skip, repeat and shuffle_buffer move samples that own their bytes") {
  const penstock_test::temp_dir dir;
  raw_tar tar;
  for (int i = 0; i < 60; ++i) tar.member(std::to_string(i) + ".cls", std::to_string(i));
  tar.end().save((dir / "t.tar").string());
  const auto data = webdataset_stream(dir / "t.tar");
  const auto values = [](const auto& plan) {
    std::vector<std::int64_t> found;
    for (auto&& b : plan.epoch(0))
      for (const auto value : penstock::get<"cls">(b)) found.push_back(value);
    return found;
  };
  const auto numbers = penstock::decode<penstock::field<"cls", penstock::integer>> | penstock::batch(7);
  const auto mixed =
      values(data | penstock::shuffle_buffer(10, penstock::seed(3)) | numbers | penstock::workers(3));
  CHECK(mixed ==
        values(data | penstock::shuffle_buffer(10, penstock::seed(3)) | numbers | penstock::workers(0)));
  auto sorted = mixed;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted != mixed);
  CHECK(sorted == values(data | numbers | penstock::workers(2)));
  const auto part = values(data | penstock::skip(5) | penstock::take(20) | numbers);
  REQUIRE(part.size() == 20);
  CHECK(part[1] == 6);
  CHECK(values(data | penstock::repeat(2) | numbers).size() == 120);
}

TEST_CASE("source/webdataset_stream: a second epoch over a pipe is an error of the run") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "pipe").string();
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::thread writer([&] { raw_tar().member("1.cls", "1").member("2.cls", "2").end().save(path); });
  const auto plan = penstock::webdataset_pipe(path) | penstock::repeat(2) |
                    penstock::decode<penstock::field<"cls", penstock::integer>> | penstock::batch(2);
  int seen = 0;
  const auto e = failure_in([&] {
    for (auto&& b : plan) seen += static_cast<int>(b.size());
  });
  writer.join();
  CHECK(seen == 2);
  CHECK((e.code() == errc::state));
  CHECK(e.file() == path);
}
