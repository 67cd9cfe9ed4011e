// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/shard_writer.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <penstock/source/records/shard_index.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/memory_files.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace {

namespace fs = std::filesystem;
using penstock::shard_writer;

std::string number_key(int i) { return "k" + std::to_string(i); }

/// Keeps what it was given; a name with `refused` in it is refused at the end.
class shard_store {
 public:
  using objects = std::map<std::string, std::string>;
  explicit shard_store(objects& all, std::string refused = "no") : all_(&all), refused_(std::move(refused)) {}
  void open(std::string_view name) {
    abort();
    name_ = name;
  }
  void write(penstock::bytes_view bytes) { bytes_ += penstock::text_of(bytes); }
  penstock::object_version finish() {
    if (name_.find(refused_) != std::string::npos) throw penstock::error(penstock::errc::io, "no room");
    (*all_)[name_] = bytes_;
    return {std::exchange(bytes_, {}).size(), 7};
  }
  void abort() noexcept { bytes_.clear(); }

 private:
  objects* all_;
  std::string refused_, name_, bytes_;
};
static_assert(penstock::object_writer<shard_store>);

}  // namespace

TEST_CASE("source/shard_writer: starts a new shard when one is full, by count or by bytes") {
  const penstock_test::temp_dir dir;
  shard_writer out((dir / "c-%06d.tar").string(), {.maxcount = 3});
  for (int i = 0; i < 8; ++i) out.write(number_key(i), {{"txt", "x"}});
  CHECK(out.shards().size() == 2);
  const auto made = out.close();
  REQUIRE(made.shards().size() == 3);
  CHECK(made.shards()[2].samples == 2);
  CHECK(made.shards()[2].name == (dir / "c-000002.tar").string());

  shard_writer sized((dir / "s-%d.tar").string(), {.maxsize = 100, .start_shard = 9});
  for (int i = 0; i < 4; ++i) sized.write(number_key(i), {{"txt", std::string(60, 'x')}});
  CHECK(sized.close().shards().size() == 2);
  CHECK(fs::exists(dir / "s-9.tar"));
  CHECK(fs::exists(dir / "s-10.tar"));
}

TEST_CASE("source/shard_writer: its manifest matches the reader's, and indexes are written on request") {
  const penstock_test::temp_dir dir;
  shard_writer out((dir / "t-%02d.tar").string(), {.maxcount = 10, .tar = {.index = true}});
  for (int i = 0; i < 25; ++i) out.write(number_key(i), {{"txt", number_key(i)}, {"cls", "1"}});
  const auto made = out.close();
  const penstock::webdataset data((dir / "t-{00..02}.tar").string(),
                                  {.index = penstock::index_policy::require});
  CHECK(data.size() == 25);
  CHECK(data.fingerprint() == made.fingerprint());
  CHECK(*data.starts() == *made.starts());
  CHECK(data.connect().key(24) == "k24");
}

TEST_CASE("source/shard_writer: names from patterns and prefixes") {
  CHECK(shard_writer("a-%06d.tar").name(7) == "a-000007.tar");
  CHECK(shard_writer("a-%d.tar").name(7) == "a-7.tar");
  CHECK(shard_writer("a-%3d.tar").name(7) == "a-  7.tar");
  CHECK(shard_writer("100%%-%02d").name(123) == "100%-123");
  CHECK(shard_writer("train").name(1) == "train-000001.tar");
  CHECK(shard_writer("train.tar").name(1) == "train-000001.tar");
  for (const char* wrong : {"", "%", "a%s.tar", "%d-%d.tar", "a%", "%99999999999d", "%06x"}) {
    CHECK_THROWS_AS(shard_writer(wrong), penstock::error);
  }
  CHECK_THROWS_AS(shard_writer("a", {.maxcount = 0}), penstock::error);
}

TEST_CASE(
    "source/shard_writer: without samples no file; a writer that is not closed leaves only complete shards") {
  const penstock_test::temp_dir dir;
  CHECK(shard_writer((dir / "e").string()).close().shards().empty());
  CHECK(fs::is_empty(dir.path()));
  {
    shard_writer out((dir / "p-%d.tar").string(), {.maxcount = 1});
    out.write("a", {{"txt", "x"}});
    out.write("b", {{"txt", "x"}});
  }
  CHECK(fs::exists(dir / "p-0.tar"));
  CHECK_FALSE(fs::exists(dir / "p-1.tar"));
  shard_writer closed((dir / "q").string());
  closed.close();
  CHECK_THROWS_AS(closed.write("a", {{"txt", "x"}}), penstock::error);
  CHECK_THROWS_AS(closed.close(), penstock::error);
}

TEST_CASE("source/shard_writer: into a store, the shards are those that files would be") {
  const penstock_test::temp_dir dir;
  shard_store::objects stored;
  {
    shard_writer files((dir / "a-%02d.tar").string(), {.maxcount = 10});
    shard_writer out("bucket/a-%02d.tar", shard_store(stored), {.maxcount = 10});
    for (int i = 0; i < 25; ++i)
      for (shard_writer* one : {&files, &out})
        one->write(number_key(i), {{"txt", number_key(i)}, {"cls", "1"}});
    CHECK(stored.size() == 2);
    CHECK(out.shards().size() == 2);
    const auto in_files = files.close(), made = out.close();
    CHECK(made.fingerprint() == in_files.fingerprint());
    REQUIRE(made.shards().size() == 3);
    CHECK(made.shards()[2].name == "bucket/a-02.tar");
    CHECK(made.shards()[2].samples == 5);
  }
  for (const auto& [name, bytes] : stored) {
    std::ifstream file(dir / name.substr(7), std::ios::binary);
    CHECK((bytes == std::string(std::istreambuf_iterator<char>(file), {})));
  }
  {
    shard_writer unfinished("bucket/b-%d.tar", shard_store(stored));
    unfinished.write("a", {{"txt", "x"}});
  }
  CHECK(stored.size() == 3);
  shard_writer refused("bucket/no-%d.tar", shard_store(stored));
  refused.write("a", {{"txt", "x"}});
  CHECK_THROWS_WITH(refused.close(), penstock_test::contains("no room"));
}

TEST_CASE("source/shard_writer: into a store, each shard's index follows it on request") {
  shard_store::objects stored;
  shard_writer out("bucket/a-%02d.tar", shard_store(stored), {.maxcount = 10, .tar = {.index = true}});
  for (int i = 0; i < 25; ++i) {
    out.write(number_key(i), {{"txt", number_key(i)}, {"cls", "1"}});
    CHECK(stored.size() == (i < 10 ? 0 : i < 20 ? 2 : 4));
  }
  const auto made = out.close();
  CHECK(stored.size() == 6);
  for (const std::string shard : {"bucket/a-00.tar", "bucket/a-01.tar", "bucket/a-02.tar"}) {
    const std::string index = stored[shard + ".penstock-index"];
    const auto tables = penstock::detail::shard_index::over(penstock::bytes_of(index));
    REQUIRE(tables.has_value());
    CHECK(tables->header().shard_size == stored[shard].size());
    CHECK(tables->header().shard_stamp == 7);  // that of the object, so that it is used as it is
  }
  penstock::memory_files files;
  for (const auto& [name, bytes] : stored)
    if (name.ends_with(".tar")) files.add(name, bytes);
  CHECK(penstock::webdataset(files).fingerprint() == made.fingerprint());

  shard_writer refused("bucket/n%d.tar", shard_store(stored, "index"), {.tar = {.index = true}});
  refused.write("a", {{"txt", "x"}});
  CHECK_THROWS_WITH(refused.close(), penstock_test::contains("no room"));
  CHECK(stored.count("bucket/n0.tar") == 1);
}
