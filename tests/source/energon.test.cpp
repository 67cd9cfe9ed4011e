// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/energon.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace energon_test {

namespace fs = std::filesystem;
namespace ps = penstock;

/// A folder like the output of `energon prepare`: shards a-0 to a-3 of one to four samples.
struct prepared {
  penstock_test::temp_dir dir;

  prepared() {
    fs::create_directory(dir / ".nv-meta");
    fs::create_directory(dir / "more");
    for (int i = 0; i < 4; ++i) {
      penstock_test::raw_tar tar;
      for (int k = 0; k <= i; ++k) tar.member(std::to_string(i) + "-" + std::to_string(k) + ".txt", "x");
      tar.end().save((dir / name(i)).string());
    }
    // json.dump(..., indent=2)
    info(
        "{\n  \"energon_version\": \"7.4.1\",\n  \"shard_counts\": {\n    \"a-0.tar\": 1,\n    \"a-1.tar\": "
        "2,\n"
        "    \"a-2.tar\": 3,\n    \"more/a-3.tar\": 4\n  }\n}");
    // yaml.dump(..., sort_keys=False)
    split(
        "split_parts:\n  train:\n  - a-{0..1}.tar\n  - more/a-3.tar\n  val:\n  - a-2.tar\n  test: "
        "[]\nexclude: []\n");
  }
  static std::string name(int i) { return (i == 3 ? "more/a-" : "a-") + std::to_string(i) + ".tar"; }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(dir / ".nv-meta" / file, std::ios::binary) << text;
  }
  void info(const std::string& text) const { write(".info.json", text); }
  void split(const std::string& text) const { write("split.yaml", text); }
  [[nodiscard]] std::string folder() const { return dir.path().string(); }
  [[nodiscard]] std::string meta(const char* file) const { return (dir / ".nv-meta").string() + "/" + file; }

  [[nodiscard]] ps::error problem(const char* part = "train") const {
    try {
      (void)ps::energon(folder(), part);
    } catch (const ps::error& e) {
      return e;
    }
    FAIL("read what it must not");
    return {ps::errc::argument, ""};
  }
};

}  // namespace energon_test

using penstock_test::contains;

TEST_CASE("source/energon: the parts of a split, with the shards and samples of each") {
  using namespace energon_test;
  const prepared data;
  const auto train = ps::energon(data.folder(), "train");
  CHECK(train.size() == 7);
  CHECK(train.connect().key(0) == "0-0");
  CHECK(train.connect().key(6) == "3-3");
  CHECK(ps::energon(data.folder(), "val").size() == 3);
  const auto part = ps::read_energon_part(data.folder(), "train");
  CHECK(part.samples == std::vector<std::uint64_t>{1, 2, 4});
  CHECK(part.paths.at(2) == data.folder() + "/more/a-3.tar");
  CHECK(part.excluded_samples.empty());

  // equivalent metadata in other forms
  fs::rename(data.meta(".info.json"), data.meta(".info.yaml"));
  data.write(".info.yaml",
             "energon_version: 3.0.0\nshard_counts:\n  a-0.tar: 1\n  'a-1.tar': 2\n  more/a-3.tar: 4\n");
  fs::remove(data.meta("split.yaml"));
  data.write("split.json", R"({"split_parts": {"train": ["a-0.tar", "a-1.tar", "more/a-3.tar"]}})");
  CHECK(ps::energon(data.folder(), "train").fingerprint() == train.fingerprint());
}

TEST_CASE("source/energon: shards that are excluded are left out, and single samples are refused") {
  using namespace energon_test;
  const prepared data;
  const std::string parts = "split_parts: {train: ['a-{0..2}.tar', more/a-3.tar]}\n";
  data.split(parts + "exclude: ['a-{0..1}.tar', more/a-3.tar]\n");
  CHECK(ps::energon(data.folder(), "train").size() == 3);
  data.split(parts + "exclude: [a-1.tar/1-0]\n");
  const auto refused = data.problem();
  CHECK((refused.code() == ps::errc::argument));
  CHECK_THAT(refused.what(), contains("a-1.tar/1-0") && contains("filter"));
  CHECK(ps::read_energon_part(data.folder(), "train").excluded_samples ==
        std::vector<std::string>{"a-1.tar/1-0"});
  data.split(parts + "exclude: ['a-{0..2}.tar', more/a-3.tar]\n");
  CHECK_THAT(data.problem().what(), contains("leaves no shard for the part 'train'"));
}

TEST_CASE("source/energon: metadata that does not match the shards names both") {
  using namespace energon_test;
  const prepared data;
  data.info(R"({"shard_counts": {"a-0.tar": 1, "a-1.tar": 3, "more/a-3.tar": 4}})");
  const auto wrong = data.problem();
  CHECK((wrong.code() == ps::errc::format));
  CHECK(wrong.file() == data.folder() + "/a-1.tar");
  CHECK_THAT(wrong.what(), contains("has 3 samples, and it has 2") && contains(".nv-meta"));
  data.info(R"({"shard_counts": {"a-0.tar": 1}})");
  CHECK_THAT(data.problem().what(), contains("'a-1.tar', which the dataset's .info does not"));
  const auto none = data.problem("dev");
  CHECK((none.code() == ps::errc::missing));
  CHECK_THAT(none.what(), contains("no part 'dev'; it has: train, val, test") && contains("split.yaml"));
  std::string many = "split_parts:\n";
  for (int i = 0; i < 100; ++i) many += "  part-" + std::string(1000, 'x') + std::to_string(i) + ": []\n";
  data.split(many);
  CHECK(std::string(data.problem("dev").what()).size() < 500);
  fs::remove(data.meta("split.yaml"));
  CHECK((data.problem().code() == ps::errc::io));
  CHECK(data.problem().file() == data.meta("split.yaml"));
}

TEST_CASE("source/energon: false metadata is one error with its file and offset") {
  using namespace energon_test;
  const prepared data;
  struct row {
    std::string text;
    const char* says;
  };
  const auto check = [&](const char* file, const row& r, ps::errc code = ps::errc::format) {
    INFO(r.says);
    data.write(file, r.text);
    const auto found = data.problem();
    CHECK((found.code() == code));
    CHECK(found.file() == data.meta(file));
    CHECK(found.offset());
    CHECK_THAT(found.what(), contains(r.says));
  };
  for (const row& r : {
           row{"", "empty"},
           row{"5", "is not a map"},
           row{"[]", "is not a map"},
           row{"{}", "no 'shard_counts'"},
           row{"{\"shard_counts\": 5}", "no 'shard_counts'"},
           row{"{\"shard_counts\": {\"a-0.tar\": -1}}", "no number of samples for the shard 'a-0.tar'"},
           row{"{\"shard_counts\": {\"a-0.tar\": 18446744073709551616}}", "no number of samples"},
           row{"{\"shard_counts\": {\"a-0.tar\": [1]}}", "no number of samples"},
           row{"{\"shard_counts\": {\"a-0.tar\": 1, \"a-0.tar\": 1}}", "a key appears twice"},
           row{"{\"shard_counts\": {\"../a.tar\": 1}}", "outside the dataset's folder"},
           row{"{\"shard_counts\": {\"more/..\": 1}}", "outside the dataset's folder"},
           row{"{\"shard_counts\": {\"/a.tar\": 1}}", "outside the dataset's folder"},
           row{"{\"shard_counts\": {\"a\\0b\": 1}}", "outside the dataset's folder"},
           row{"{\"shard_counts\": {\"\": 1}}", "outside the dataset's folder"},
           row{"{\"shard_counts\": {", "not YAML"},
           row{std::string("\xff\xfe\xff", 3), "not YAML"},
           row{"{a\xff: 1}", "not YAML"},
           row{"a: &x [1]\nshard_counts: *x\n", "alias"},
           row{"[1]: 2\n", "a key is not text"},
           row{"--- {}\n--- {}\n", "a second document begins"},
       }) {
    check(".info.json", r);
  }
  check(".info.json", {std::string(100'000, '['), "16 deep"}, ps::errc::limit);
  const prepared fresh;
  fs::copy_file(fresh.meta(".info.json"), data.meta(".info.json"), fs::copy_options::overwrite_existing);
  check("split.yaml", {"exclude: []\n", "no 'split_parts'"});
  check("split.yaml", {"split_parts: {train: a-0.tar}\n", "that is not a list"});
  check("split.yaml", {"split_parts: {train: [[a-0.tar]]}\n", "an entry that is not a name"});
  check("split.yaml", {"split_parts: {train: []}\nexclude: 5\n", "'exclude' that is not a list"});
  check("split.yaml", {"split_parts: {train: ['{0..99999999}{0..99999999}']}\n", "names"});
  // A million names of 300 characters, from 320 bytes.
  const std::string longer = "'{0..999}{0..999}" + std::string(300, 'x') + "'";
  check("split.yaml", {"split_parts: {train: [" + longer + "]}\n", "far more than the dataset has shards"});
  check("split.yaml", {"split_parts: {train: [a-0.tar]}\nexclude: [" + longer + ", " + longer + "]\n",
                       "'exclude' stands for more than"});
  // 280,000 names of 400 characters.
  const std::string wide = "'{0..5}{0..5}{0..5}{0..5}{0..5}{0..5}{0..5}" + std::string(400, 'x') + "'";
  check("split.yaml",
        {"split_parts: {train: [a-0.tar]}\nexclude: [" + wide + "]\n", "more than 64 MiB of names"});
}
