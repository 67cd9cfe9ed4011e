// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/index_policy.hpp>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

#include <penstock/source/webdataset.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/resource.h>

namespace {

namespace fs = std::filesystem;
using penstock::index_policy;
using penstock::webdataset;
using penstock::webdataset_options;

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

void two_samples(const fs::path& path, const char* text = "one") {
  penstock_test::raw_tar().member("a.txt", text).member("b.txt", "two").end().save(path.string());
}

std::string first_text(const penstock::webdataset<penstock::file>& data) {
  const auto reader = data.connect();
  decltype(data.connect())::worker worker;
  std::string text;
  reader.evaluate({0, 0}, worker,
                  [&](const auto& s) { text = std::string(penstock::text_of(s.member(0).finish())); });
  return text;
}

/// An environment variable that is restored at the end.
class variable {
 public:
  variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;
  ~variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> all;
  if (!fs::exists(folder)) return all;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) all.push_back(entry.path());
  return all;
}

const penstock::webdataset_options kept{.index = index_policy::keep};

}  // namespace

TEST_CASE("source/index_policy: keep writes the index once and uses it afterwards") {
  const penstock_test::temp_dir dir;
  const fs::path shard = dir / "s.tar";
  const fs::path index = dir / "s.tar.penstock-index";
  two_samples(shard);
  CHECK(first_text(webdataset(shard, kept)) == "one");
  REQUIRE(fs::exists(index));
  const std::string bytes = slurp(index);
  CHECK(bytes.substr(0, 8) == "PENSTIDX");
  const auto written = fs::last_write_time(index);
  CHECK(first_text(webdataset(shard, kept)) == "one");
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

TEST_CASE("source/index_policy: by default, an index is kept in the user's cache folder") {
  const penstock_test::temp_dir dir;
  const fs::path data = dir / "data", cache = dir / "cache" / "of mine";
  fs::create_directories(data);
  two_samples(data / "s.tar");
  const variable home("XDG_CACHE_HOME", cache.c_str());
  CHECK(first_text(webdataset(data / "s.tar")) == "one");
  CHECK(files_below(data) == std::vector<fs::path>{data / "s.tar"});
  const std::vector<fs::path> there = files_below(cache);
  REQUIRE(there.size() == 1);
  CHECK(there[0].parent_path() == cache / "penstock" / "indexes");
  CHECK((fs::status(cache).permissions() & fs::perms::others_all) == fs::perms::none);

  const auto written = fs::last_write_time(there[0]);
  const fs::path link = dir / "link.tar";
  fs::create_symlink(data / "s.tar", link);
  CHECK(first_text(webdataset(link)) == "one");
  CHECK(files_below(cache) == there);  // one file, one index, also by another path
  CHECK(fs::last_write_time(there[0]) == written);

  // Another state of the shard, and a damaged index, are noticed there too.
  penstock_test::raw_tar().member("c.txt", "new").end().save((data / "s.tar").string());
  fs::last_write_time(data / "s.tar", fs::last_write_time(data / "s.tar") + std::chrono::seconds(5));
  CHECK(first_text(webdataset(data / "s.tar")) == "new");
  const std::string good = slurp(there[0]);
  spill(there[0], good.substr(0, 140));
  CHECK(first_text(webdataset(data / "s.tar")) == "new");
  CHECK(slurp(there[0]) == good);
  const webdataset planned(data / "s.tar");
  spill(there[0], good.substr(0, 140) + std::string(good.size() - 140, '\0'));
  CHECK(first_text(planned) == "new");
  CHECK(slurp(there[0]) == good);
  CHECK(files_below(data) == std::vector<fs::path>{data / "s.tar"});
}

TEST_CASE("source/index_policy: by default, an index beside the shard is used if there is one") {
  const penstock_test::temp_dir dir;
  const fs::path cache = dir / "cache";
  two_samples(dir / "s.tar");
  CHECK(webdataset(dir / "s.tar", kept).size() == 2);
  const variable home("XDG_CACHE_HOME", cache.c_str());
  CHECK(first_text(webdataset(dir / "s.tar")) == "one");
  CHECK(files_below(cache).empty());
}

TEST_CASE("source/index_policy: the cache folder has one index of a shard, however its path is written") {
  const penstock_test::temp_dir dir;
  const auto kept = [&](const std::string& shard) {
    return penstock::detail::cached_index_path(dir.path().string(), shard);
  };
  std::ofstream(dir / "s.tar") << "1";
  std::filesystem::create_symlink(dir / "s.tar", dir / "link.tar");
  CHECK(kept(dir / "s.tar") == kept(dir / "link.tar"));
  // A path that cannot be followed, too, is another one in another folder.
  CHECK(kept("no/such.tar") == kept(std::filesystem::current_path() / "no/such.tar"));
}

TEST_CASE("source/index_policy: cache is below HOME, or in memory if HOME is unset") {
  const penstock_test::temp_dir dir;
  two_samples(dir / "s.tar");
  const webdataset_options options{.index = index_policy::cache};
  const variable relative("XDG_CACHE_HOME", "relative/is/ignored");
  {
    const variable none("HOME", nullptr);
    CHECK(first_text(webdataset(dir / "s.tar", options)) == "one");
    CHECK(files_below(dir.path()).size() == 1);
  }
  fs::create_directories(dir / "home");
  const variable home("HOME", (dir / "home").c_str());
  CHECK(first_text(webdataset(dir / "s.tar", options)) == "one");
  CHECK(files_below(dir / "home" / ".cache" / "penstock" / "indexes").size() == 1);
  CHECK_FALSE(fs::exists("relative"));
  fs::remove_all(dir / "home");
  spill(dir / "home", "no folder");
  CHECK(first_text(webdataset(dir / "s.tar", options)) == "one");  // the index stays in memory
}

TEST_CASE(
    "source/index_policy: an index of another state of the shard is rebuilt, or refused with both names") {
  const penstock_test::temp_dir dir;
  const fs::path shard = dir / "s.tar";
  two_samples(shard);
  const webdataset before(shard, kept);
  penstock_test::raw_tar().member("c.txt", "new").end().save(shard.string());
  fs::last_write_time(shard, fs::last_write_time(shard) + std::chrono::seconds(5));
  CHECK_THROWS_WITH(webdataset(shard, {.index = index_policy::require}),
                    penstock_test::contains("s.tar.penstock-index of the shard") &&
                        penstock_test::contains("was made for another state of the shard"));
  const webdataset after(shard, kept);
  CHECK(after.size() == 1);
  CHECK(first_text(after) == "new");
  CHECK(after.fingerprint() != before.fingerprint());
  CHECK_THROWS_WITH(first_text(before), penstock_test::contains("was changed after the dataset was opened"));
}

TEST_CASE("source/index_policy: a shard of unchanged size with a new modification time is indexed again") {
  const penstock_test::temp_dir dir;
  const fs::path shard = dir / "s.tar";
  two_samples(shard);
  const webdataset before(shard, kept);
  penstock_test::raw_tar().member("x.txt", "one").member("y.txt", "two").end().save(shard.string());
  fs::last_write_time(shard, fs::last_write_time(shard) + std::chrono::seconds(5));
  CHECK(webdataset(shard, kept).connect().key(0) == "x");
}

TEST_CASE("source/index_policy: a damaged index is rebuilt, or refused with both names") {
  const penstock_test::temp_dir dir;
  const fs::path shard = dir / "s.tar";
  const fs::path index = dir / "s.tar.penstock-index";
  two_samples(shard);
  const auto mark = webdataset(shard, kept).fingerprint();
  const std::string good = slurp(index);
  for (std::size_t i = 0; i < good.size(); ++i) {  // each byte in turn: header, tables and texts
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    spill(index, bad);
    const auto refused = [&] { return first_text(webdataset(shard, {.index = index_policy::require})); };
    CHECK_THROWS_WITH(refused(), penstock_test::contains("s.tar.penstock-index of the shard"));
    const webdataset data(shard, kept);
    CHECK(data.fingerprint() == mark);
    CHECK(first_text(data) == "one");
    CHECK(slurp(index) == good);
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{128}, good.size() - 1}) {
    spill(index, good.substr(0, size));
    CHECK(first_text(webdataset(shard, kept)) == "one");
    CHECK(slurp(index) == good);
  }
  spill(index, good + "x");
  CHECK(first_text(webdataset(shard, kept)) == "one");
}

TEST_CASE("source/index_policy: a false index is refused even with correct checksums") {
  const penstock_test::temp_dir dir;
  const fs::path shard = dir / "s.tar";
  const fs::path index = dir / "s.tar.penstock-index";
  penstock_test::raw_tar()
      .member("a.txt", "one")
      .member("b.txt", "two")
      .member("b.x", "3")
      .end()
      .save(shard.string());
  (void)webdataset(shard, kept);
  const std::string good = slurp(index);
  const auto put = [](std::string& bytes, std::size_t at, std::uint64_t value, std::size_t size = 8) {
    for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
  };
  const auto seal = [&](std::string& bytes) {
    put(bytes, 80, penstock::detail::checksum(penstock::bytes_of(bytes).subspan(128)));
    put(bytes, 120, penstock::detail::checksum(penstock::bytes_of(bytes).first(120)));
    spill(index, bytes);
  };
  const auto lies = [&](const char* about, std::size_t at, std::uint64_t value, std::size_t bytes) {
    INFO(about);
    std::string bad = good;
    put(bad, at, value, bytes);
    seal(bad);
    CHECK_THROWS_WITH(first_text(webdataset(shard, {.index = index_policy::require})),
                      penstock_test::contains("s.tar.penstock-index of the shard"));
    // Its header is trusted until the tables are read.
    const auto refused = [&](index_policy policy, const char* advice) {
      std::string problem;
      try {
        (void)first_text(webdataset(shard, {.index = policy}));
      } catch (const penstock::error& e) {
        problem = e.what();
        CHECK((e.code() == penstock::errc::io));
        CHECK(e.file() == shard.string());
      }
      CHECK_THAT(problem, penstock_test::contains("s.tar.penstock-index of the shard") &&
                              penstock_test::contains(advice));
    };
    if (at >= 128) {
      refused(index_policy::transient, "delete it");
      refused(index_policy::cache, "delete it");  // what lies beside the shard is not written
      refused(index_policy::keep, "open the dataset again");
    }
    CHECK(first_text(webdataset(shard, kept)) == "one");
    CHECK(slurp(index) == good);
  };
  constexpr std::size_t samples = 128, members = samples + 8 * 3, ends = members + 16 * 3;
  const auto place = [](std::uint64_t offset, std::uint64_t suffix) { return offset / 512 << 24 | suffix; };
  lies("a member beyond the end", members + 32, place(1 << 20, 1), 8);
  lies("a member that goes on beyond the end", members + 40, 100'000, 8);
  lies("a size that wraps around", members + 40, ~std::uint64_t{0}, 8);
  lies("members that overlap", members + 16, place(512, 0), 8);
  lies("members in another order", members, place(2560, 0), 8);
  lies("a suffix that is not there", members, place(512, 77), 8);
  lies("suffixes that end beyond their texts", ends, 1000, 4);
  lies("suffixes that end before they begin", ends + 4, 0, 4);
  lies("a sample of no members", samples + 8, 0, 4);
  lies("a sample of members that are not there", samples + 8, 99, 4);
  lies("keys that begin beyond their texts", samples + 12, 99, 4);
  lies("a last sample that ends too early", samples + 16, 2, 4);
  lies("a payload that is not the sum of sizes", 72, std::uint64_t{1} << 60, 8);

  std::string empty = good;  // no samples, and all tables are keys, which would never be read
  for (const std::size_t field : {32u, 40u, 48u, 56u, 72u}) put(empty, field, 0);
  put(empty, 64, good.size() - 136);
  seal(empty);
  CHECK(webdataset(shard, {.index = index_policy::transient}).size() == 2);
}

TEST_CASE("source/index_policy: an index that is damaged or lost after the plan was made") {
  const penstock_test::temp_dir dir;
  const fs::path shard = dir / "s.tar";
  const fs::path index = dir / "s.tar.penstock-index";
  two_samples(shard);
  const webdataset data(shard, kept);
  const std::string good = slurp(index);
  fs::remove(index);
  CHECK(first_text(data) == "one");
  spill(index, good.substr(0, 200));
  CHECK(first_text(data) == "one");
  const webdataset strict(shard, {.index = index_policy::require});
  fs::remove(index);
  CHECK_THROWS_WITH(first_text(strict), penstock_test::contains("s.tar.penstock-index of the shard"));
}

TEST_CASE("source/index_policy: a missing index is an error only if it is required") {
  const penstock_test::temp_dir dir;
  two_samples(dir / "s.tar");
  CHECK_THROWS_WITH(webdataset(dir / "s.tar", {.index = index_policy::require}),
                    penstock_test::contains("does not exist"));
  CHECK_FALSE(fs::exists(dir / "s.tar.penstock-index"));
}

TEST_CASE("source/index_policy: an index that cannot be written stays in memory, without an error") {
  const penstock_test::temp_dir dir;
  two_samples(dir / "s.tar");
  fs::create_directories(dir / "s.tar.penstock-index");  // its name is taken, even for root
  const webdataset data(dir / "s.tar", kept);
  CHECK(first_text(data) == "one");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(dir.path())) ++files;
  CHECK(files == 2);
  fs::create_directories(dir / "locked");
  two_samples(dir / "locked" / "s.tar");
  fs::permissions(dir / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  CHECK(first_text(webdataset(dir / "locked" / "s.tar", kept)) == "one");
  fs::permissions(dir / "locked", fs::perms::owner_all);
}

TEST_CASE("source/index_policy: on a full disk no partial index is left, and samples are read") {
  const penstock_test::temp_dir dir;
  penstock_test::raw_tar tar;
  for (int i = 0; i < 400; ++i) tar.member("sample" + std::to_string(i) + ".txt", i == 0 ? "one" : "more");
  tar.end().save((dir / "s.tar").string());
  for (const rlim_t maximum : {rlim_t{0}, rlim_t{1}, rlim_t{127}, rlim_t{128}, rlim_t{4096}}) {
    INFO("a file may have " << maximum << " bytes");
    const int code = penstock_test::in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{maximum, maximum};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
      const webdataset data(dir / "s.tar", {.index = index_policy::keep, .threads = 1});
      return data.size() == 400 && first_text(data) == "one" ? 0 : 3;
    });
    CHECK(code == 0);
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(dir.path())) ++files;
    CHECK(files == 1);
  }
  CHECK(webdataset(dir / "s.tar", kept).size() == 400);
  CHECK(fs::file_size(dir / "s.tar.penstock-index") > 4096);
}
