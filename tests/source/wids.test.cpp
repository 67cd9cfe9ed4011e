// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/wids.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

using penstock::wids;

struct described_shards {
  penstock_test::temp_dir dir;
  std::string path = (dir / "shardindex.json").string();

  described_shards() {
    std::filesystem::create_directory(dir / "d");
    penstock_test::raw_tar().member("a.txt", "1").member("b.txt", "2").end().save((dir / "s-0.tar").string());
    penstock_test::raw_tar().member("c.txt", "3").end().save((dir / "d" / "s-1.tar").string());
  }
  void write(const std::string& text) const { std::ofstream(path) << text; }
  [[nodiscard]] std::string keys() const {
    const auto data = wids(path, {.index = penstock::index_policy::transient});
    const auto reader = data.connect();
    std::string found;
    for (std::uint64_t i = 0; i < data.size(); ++i) found += reader.key(i);
    return found;
  }
  [[nodiscard]] penstock::error refused(const std::string& text) const {
    write(text);
    try {
      (void)keys();
    } catch (const penstock::error& e) {
      return e;
    }
    FAIL("accepted: " << text);
    throw 0;
  }
};

std::string version(const std::string& rest) {
  return R"({"__kind__": "wids-shard-index-v1", "wids_version": 1, )" + rest + "}";
}

}  // namespace

TEST_CASE("source/wids: shards of a description, relative to its folder, to its base, or absolute") {
  const described_shards made;
  made.write(version(
      R"("name": "x", "shardlist": [{"url": "s-0.tar", "nsamples": 2, "filesize": 3072, "md5sum": "-"},)"
      R"({"url": "file:d/s-1.tar", "nsamples": 1}])"));
  CHECK(made.keys() == "abc");
  made.write(version(R"("base": "d", "shardlist": [{"url": "s-1.tar", "nsamples": 1}])"));
  CHECK(made.keys() == "c");
  made.write(version(R"("shardlist": [{"url": "file://)" + (made.dir / "s-0.tar").string() +
                     R"(", "nsamples": 2}])"));
  CHECK(made.keys() == "ab");
}

TEST_CASE("source/wids: lists in a list of datasets, one level deep") {
  const described_shards made;
  std::ofstream(made.dir / "d" / "other.json")
      << version(R"("shardlist": [{"url": "s-1.tar", "nsamples": 1}])");
  made.write(version(R"("datasets": [{"source_url": "d/other.json"}, {"name": "x", "weight": 2, )"
                     R"("shardlist": [{"url": "s-0.tar", "nsamples": 2}]}])"));
  CHECK(made.keys() == "cab");
  std::ofstream(made.dir / "d" / "other.json") << version(R"("datasets": [{"source_url": "other.json"}])");
  const auto e = made.refused(version(R"("datasets": [{"source_url": "d/other.json"}])"));
  CHECK(e.file() == (made.dir / "d" / "other.json").string());
  CHECK_THAT(e.what(), penstock_test::contains("may not name a third"));
}

TEST_CASE("source/wids: a description that disagrees with a shard names both") {
  const described_shards made;
  auto e = made.refused(version(R"("shardlist": [{"url": "s-0.tar", "nsamples": 3}])"));
  CHECK((e.code() == penstock::errc::format));
  CHECK(e.file() == (made.dir / "s-0.tar").string());
  CHECK_THAT(e.what(), penstock_test::contains(made.path + " says that the shard"));
  CHECK_THAT(e.what(), penstock_test::contains("has 3 samples, and it has 2"));
  e = made.refused(version(R"("shardlist": [{"url": "s-0.tar", "nsamples": 2, "filesize": 10240}])"));
  CHECK_THAT(e.what(), penstock_test::contains("10240 bytes, and it has 3072"));
}

TEST_CASE("source/wids: invalid descriptions") {
  const described_shards made;
  const auto said = [&](const std::string& text) {
    const auto e = made.refused(text);
    CHECK((e.code() == penstock::errc::format));
    CHECK(e.file() == made.path);
    return std::string(e.what());
  };
  CHECK_THAT(said(""), penstock_test::contains("not JSON"));
  CHECK_THAT(said("{\"a\": 1,}"), penstock_test::contains("offset 8"));
  CHECK_THAT(said("[]"), penstock_test::contains("not a JSON object"));
  CHECK_THAT(said("{}"), penstock_test::contains("'wids_version'"));
  CHECK_THAT(said(R"({"wids_version": 2, "shardlist": []})"), penstock_test::contains("'wids_version'"));
  CHECK_THAT(said(R"({"wids_version": 1, "__kind__": "x"})"), penstock_test::contains("'__kind__'"));
  CHECK_THAT(said(version(R"("name": "x")")), penstock_test::contains("neither"));
  CHECK_THAT(said(version(R"("shardlist": 1)")), penstock_test::contains("not a list"));
  CHECK_THAT(said(version(R"("shardlist": [])")), penstock_test::contains("lists no shard"));
  CHECK_THAT(said(version(R"("shardlist": [1])")), penstock_test::contains("no text 'url'"));
  CHECK_THAT(said(version(R"("shardlist": [{"url": "s-0.tar"}])")), penstock_test::contains("'nsamples'"));
  CHECK_THAT(said(version(R"("shardlist": [{"url": "s-0.tar", "nsamples": -2}])")),
             penstock_test::contains("'nsamples'"));
  CHECK_THAT(said(version(R"("shardlist": [{"url": "http://x/s-0.tar", "nsamples": 2}])")),
             penstock_test::contains("not a local file"));
  CHECK_THAT(said(version(R"("datasets": [1])")), penstock_test::contains("'source_url'"));
  CHECK_THAT(said(version(R"("shardlist": [], "x": 1e999)")), penstock_test::contains("out_of_range"));
  CHECK(said("{\"" + std::string(100'000, 'x')).size() < 1000);
  CHECK(said("{\"a\": " + std::string(100'000, '9') + "e9}").size() < 1000);
  CHECK_THAT(said(std::string(100'000, '[')), penstock_test::contains("more than 16 deep"));
  CHECK_THROWS_WITH(wids((made.dir / "no.json").string()), penstock_test::contains("No such file"));
  made.write(version(R"("shardlist": [])"));
  CHECK_THROWS_WITH(wids(made.path), penstock_test::contains("at least one shard"));
}

TEST_CASE("source/wids: a description of a terabyte is refused before it is read") {
  const described_shards made;
  made.write("{");
  std::filesystem::resize_file(made.path, std::uintmax_t{1} << 40);  // sparse: it takes no room
  try {
    (void)wids(made.path);
    FAIL("accepted");
  } catch (const penstock::error& e) {
    CHECK((e.code() == penstock::errc::limit));
    CHECK(e.file() == made.path);
  }
}

TEST_CASE("source/wids: repetitions in a small description are bounded in total") {
  const described_shards made;
  const std::string base(400'000, 'x');
  std::string many;
  for (int i = 0; i < 200; ++i) many += R"({"url": "a", "nsamples": 1}, )";
  auto e = made.refused(
      version("\"base\": \"" + base + R"(", "shardlist": [)" + many + R"({"url": "b", "nsamples": 1}])"));
  CHECK((e.code() == penstock::errc::limit));
  CHECK_THAT(e.what(), penstock_test::contains("paths of the shards, with their base"));

  std::ofstream(made.dir / "d" / "other.json")
      << version(R"("shardlist": [{"url": "s-1.tar", "nsamples": 1}])") << std::string(1 << 20, ' ');
  many.clear();
  for (int i = 0; i < 70; ++i) many += std::string(i == 0 ? "" : ", ") + R"({"source_url": "d/other.json"})";
  e = made.refused(version("\"datasets\": [" + many + "]"));
  CHECK((e.code() == penstock::errc::limit));
  CHECK(e.file() == (made.dir / "d" / "other.json").string());
  CHECK_THAT(e.what(), penstock_test::contains("exceed 64 MiB"));

  e = made.refused(version(R"("shardlist": [{"url": "http://)" + base + R"(", "nsamples": 2}])"));
  CHECK(std::string(e.what()).size() < 1000);
}

TEST_CASE("source/wids: a name with NUL does not open the file named before the NUL") {
  const described_shards made;
  std::ofstream(made.dir / "d" / "other.json")
      << version(R"("shardlist": [{"url": "s-1.tar", "nsamples": 1}])");
  for (const std::string name : {"d/other.json\\u0000", "d/other.json\\u0000.json"}) {
    made.write(version(R"("datasets": [{"source_url": ")" + name + R"("}])"));
    CHECK_THROWS_WITH(made.keys(), penstock_test::contains("No such file"));
  }
}
