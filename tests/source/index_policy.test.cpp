// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/index_policy.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

#include <penstock/source/webdataset.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

namespace fs = std::filesystem;
using penstock::index_policy;
using penstock::webdataset;

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

void two_samples(const fs::path& path, const char* text = "one") {
  penstock_test::raw_tar().member("a.txt", text).member("b.txt", "two").end().save(path.string());
}

std::string first_text(const penstock::webdataset<penstock::file>& data) {
  const auto reader = data.open();
  decltype(data.open())::worker worker;
  std::string text;
  reader.evaluate({0, 0}, worker,
                  [&](const auto& s) { text = std::string(penstock::text_of(s.member(0).finish())); });
  return text;
}

}  // namespace

TEST_CASE("source/index_policy: keep writes the index once and uses it afterwards") {
  const penstock_test::temp_dir dir;
  const fs::path shard = dir / "s.tar";
  const fs::path index = dir / "s.tar.penstock-index";
  two_samples(shard);
  CHECK(first_text(webdataset(shard)) == "one");
  REQUIRE(fs::exists(index));
  const std::string bytes = slurp(index);
  CHECK(bytes.substr(0, 8) == "PENSTIDX");
  const auto written = fs::last_write_time(index);
  CHECK(first_text(webdataset(shard)) == "one");
  CHECK(first_text(webdataset(shard, {.index = index_policy::require})) == "one");
  CHECK(fs::last_write_time(index) == written);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(dir.path())) ++files;
  CHECK(files == 2);  // no temporary file is left
}

TEST_CASE("source/index_policy: transient writes nothing") {
  const penstock_test::temp_dir dir;
  two_samples(dir / "s.tar");
  CHECK(first_text(webdataset(dir / "s.tar", {.index = index_policy::transient})) == "one");
  CHECK_FALSE(fs::exists(dir / "s.tar.penstock-index"));
}

TEST_CASE(
    "source/index_policy: an index of another state of the shard is built again, or refused with both "
    "names") {
  const penstock_test::temp_dir dir;
  const fs::path shard = dir / "s.tar";
  two_samples(shard);
  const webdataset before(shard);
  penstock_test::raw_tar().member("c.txt", "new").end().save(shard.string());
  fs::last_write_time(shard, fs::last_write_time(shard) + std::chrono::seconds(5));
  CHECK_THROWS_WITH(webdataset(shard, {.index = index_policy::require}),
                    penstock_test::contains("s.tar.penstock-index of the shard") &&
                        penstock_test::contains("was made for another state of the shard"));
  const webdataset after(shard);
  CHECK(after.size() == 1);
  CHECK(first_text(after) == "new");
  CHECK(after.fingerprint() != before.fingerprint());
  CHECK_THROWS_WITH(first_text(before), penstock_test::contains("was changed after the dataset was opened"));
}

TEST_CASE("source/index_policy: a shard of the same size with another time of change is looked at again") {
  const penstock_test::temp_dir dir;
  const fs::path shard = dir / "s.tar";
  two_samples(shard);
  const webdataset before(shard);
  penstock_test::raw_tar().member("x.txt", "one").member("y.txt", "two").end().save(shard.string());
  fs::last_write_time(shard, fs::last_write_time(shard) + std::chrono::seconds(5));
  CHECK(webdataset(shard).open().key(0) == "x");
}

TEST_CASE("source/index_policy: a damaged index is built again, or refused with both names") {
  const penstock_test::temp_dir dir;
  const fs::path shard = dir / "s.tar";
  const fs::path index = dir / "s.tar.penstock-index";
  two_samples(shard);
  const auto mark = webdataset(shard).fingerprint();
  const std::string good = slurp(index);
  for (std::size_t i = 0; i < good.size(); ++i) {  // each byte in turn: header, tables and texts
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    spill(index, bad);
    const auto refused = [&] { return first_text(webdataset(shard, {.index = index_policy::require})); };
    CHECK_THROWS_WITH(refused(), penstock_test::contains("s.tar.penstock-index of the shard"));
    const webdataset data(shard);
    CHECK(data.fingerprint() == mark);
    CHECK(first_text(data) == "one");
    CHECK(slurp(index) == good);
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{128}, good.size() - 1}) {
    spill(index, good.substr(0, size));
    CHECK(first_text(webdataset(shard)) == "one");
    CHECK(slurp(index) == good);
  }
  spill(index, good + "x");
  CHECK(first_text(webdataset(shard)) == "one");
}

TEST_CASE("source/index_policy: an index that is damaged or lost after the plan was made") {
  const penstock_test::temp_dir dir;
  const fs::path shard = dir / "s.tar";
  const fs::path index = dir / "s.tar.penstock-index";
  two_samples(shard);
  const webdataset data(shard);
  const std::string good = slurp(index);
  fs::remove(index);
  CHECK(first_text(data) == "one");
  spill(index, good.substr(0, 200));
  CHECK(first_text(data) == "one");
  const webdataset strict(shard, {.index = index_policy::require});
  fs::remove(index);
  CHECK_THROWS_WITH(first_text(strict), penstock_test::contains("s.tar.penstock-index of the shard"));
}

TEST_CASE("source/index_policy: a missing index is an error only where one is required") {
  const penstock_test::temp_dir dir;
  two_samples(dir / "s.tar");
  CHECK_THROWS_WITH(webdataset(dir / "s.tar", {.index = index_policy::require}),
                    penstock_test::contains("does not exist"));
  CHECK_FALSE(fs::exists(dir / "s.tar.penstock-index"));
}

TEST_CASE("source/index_policy: where no index can be written it stays in memory, without an error") {
  const penstock_test::temp_dir dir;
  two_samples(dir / "s.tar");
  fs::create_directories(dir / "s.tar.penstock-index");  // its name is taken, even for root
  const webdataset data(dir / "s.tar");
  CHECK(first_text(data) == "one");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(dir.path())) ++files;
  CHECK(files == 2);
  fs::create_directories(dir / "locked");
  two_samples(dir / "locked" / "s.tar");
  fs::permissions(dir / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  CHECK(first_text(webdataset(dir / "locked" / "s.tar")) == "one");
  fs::permissions(dir / "locked", fs::perms::owner_all);
}
