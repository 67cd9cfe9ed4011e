// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/dali_index.hpp>
#include <penstock/source/energon_index.hpp>
#include <penstock/source/webdataset.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/raw_tar.hpp"
#include "support/tar_cases.hpp"
#include "support/temp_dir.hpp"

#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using penstock::dali_index;
using penstock::energon_index;
using penstock::index_policy;
using penstock::webdataset;
using penstock_test::raw_tar;

/// A shard in a folder of its own, with the indexes that DALI and Energon would write beside it.
struct indexed_shard {
  penstock_test::temp_dir dir;
  std::string shard = (dir / "train.v1-0.tar").string();

  explicit indexed_shard(const raw_tar& tar) { tar.save(shard); }
  void dali(const std::string& text) const {
    std::ofstream((dir / "train.idx").string(), std::ios::binary) << text;
  }
  void energon(const std::vector<std::uint64_t>& offsets) const {
    std::ofstream out(shard + ".idx", std::ios::binary);
    for (const std::uint64_t offset : offsets)
      for (int i = 0; i < 8; ++i) out.put(static_cast<char>(offset >> (8 * i)));
  }
  [[nodiscard]] std::vector<std::string> lines(index_policy policy) const {
    const webdataset data(shard, {.index = policy});
    CHECK(data.fingerprint() == webdataset(shard, {.index = index_policy::transient}).fingerprint());
    const auto reader = data.connect();
    decltype(data.connect())::worker worker;
    std::vector<std::string> found;
    for (std::uint64_t i = 0; i < data.size(); ++i) {
      reader.evaluate({0, i}, worker, [&](const auto& s) {
        std::string line(s.key());
        for (std::size_t m = 0; m < s.size(); ++m)
          line.append(" ").append(s.name(m)).append("=").append(penstock::text_of(s.member(m).finish()));
        found.push_back(line);
      });
    }
    return found;
  }
  /// The message of the error; checks that it names both files.
  [[nodiscard]] std::string refused(index_policy policy, penstock::errc code = penstock::errc::format) const {
    try {
      (void)webdataset(shard, {.index = policy});
    } catch (const penstock::error& e) {
      CHECK((e.code() == code));
      CHECK(e.file() == shard);
      CHECK_THAT(e.what(), penstock_test::contains(policy == dali_index ? "train.idx" : shard + ".idx"));
      return e.what();
    }
    return "accepted";
  }
};

//  header: 0 a.jpg, 1024 a.cls, 2048 README, 2560 pax, 3584 b.jpg, 4608 c.jpg, 5632 c.cls, 6656 end
raw_tar sample_shard() {
  return raw_tar()
      .member("a.JPG", "11")
      .member("a.cls", "2")
      .header("README", 0)
      .pax('x', penstock_test::pax_record("mtime=1.5"))
      .member("b.jpg", "3")
      .member("c.jpg", "4")
      .member("c.cls", "5")
      .end();
}

const std::vector<std::string> samples{"a jpg=11 cls=2", "b jpg=3", "c jpg=4 cls=5"};
const std::string with_names =
    "v1.2 3\nJPG 512 2 a.JPG cls 1536 1 a.cls\njpg 4096 1 b.jpg\njpg 5120 1 c.jpg cls 6144 1 c.cls\n";
const std::string without_names = "v1.1 3\nJPG 512 2 cls 1536 1\njpg 4096 1\njpg 5120 1 cls 6144 1\n";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("source/foreign_index: DALI's index of v1.2 and of v1.1, and Energon's, give equal samples") {
  const indexed_shard made(sample_shard());
  made.dali(with_names);
  CHECK(made.lines(dali_index) == samples);
  made.dali(without_names);
  CHECK(made.lines(dali_index) == samples);
  made.energon({0, 2560, 4608, 6656});
  CHECK(made.lines(energon_index) == samples);
  // no index of ours was written
  CHECK_FALSE(std::filesystem::exists(made.shard + ".penstock-index"));
  const webdataset mapped(penstock::mapped_file(made.shard), {.index = energon_index});
  CHECK(mapped.size() == 3);
}

TEST_CASE("source/foreign_index: a policy by itself, and one that is asked where there is no index of ours") {
  const indexed_shard made(sample_shard());
  made.dali(with_names);
  CHECK(webdataset(made.shard, dali_index).size() == 3);
  CHECK(made.lines(index_policy::require.or_else(dali_index)) == samples);
  CHECK_FALSE(std::filesystem::exists(made.shard + ".penstock-index"));  // `require` writes nothing
  CHECK(webdataset(made.shard, index_policy::keep.or_else(dali_index)).size() == 3);
  CHECK(std::filesystem::exists(made.shard + ".penstock-index"));
  made.dali("v1.2 1\njpg 512 2 a.jpg\n");  // is not asked any more
  CHECK(made.lines(index_policy::transient.or_else(dali_index)) == samples);
  std::filesystem::remove(made.shard + ".penstock-index");
  CHECK(made.lines(index_policy::transient.or_else(dali_index)) == samples);
  CHECK(made.lines(index_policy::transient.or_else(energon_index)) == samples);  // there is none
  CHECK_THROWS_AS(webdataset(made.shard, index_policy::require.or_else(dali_index)), penstock::error);
  CHECK_THROWS_AS(webdataset(made.shard, index_policy::require.or_else(energon_index)), penstock::error);
}

TEST_CASE("source/foreign_index: what is wrong with both indexes is told where one of them must do") {
  const indexed_shard made(sample_shard());
  const auto refusal = [&] {
    return penstock_test::error_of(
        [&] { (void)webdataset(made.shard, index_policy::require.or_else(dali_index)); });
  };
  CHECK_THAT(refusal(), penstock_test::contains("(does not exist; the DALI index ") &&
                            penstock_test::contains("No such file"));
  std::ofstream(made.shard + ".penstock-index") << "damaged";
  made.dali("v1.2 1\njpg 512 2 a.jpg\n");
  CHECK_THAT(refusal(),
             penstock_test::contains("(is damaged, or was written by another version; the DALI index ") &&
                 penstock_test::contains("index_policy::require allows no other"));
  made.dali(with_names);
  CHECK(made.lines(index_policy::require.or_else(dali_index)) == samples);
}

TEST_CASE("source/foreign_index: with names, payloads and most headers are not read") {
  raw_tar tar;
  std::string index = "v1.2 200\n";
  std::vector<std::string> lines;
  for (int i = 0; i < 200; ++i) {
    const std::string name = std::to_string(i) + ".txt";
    tar.member(name, "x");
    index += "txt " + std::to_string(1024 * i + 512) + " 1 " + name + "\n";
    lines.push_back(std::to_string(i) + " txt=x");
  }
  tar.end();
  tar.bytes[1024 * 100 + 300] = '!';  // a wrong checksum, between the headers that are read
  const indexed_shard made(tar);
  made.dali(index);
  const webdataset data(made.shard, {.index = dali_index});
  CHECK(data.size() == 200);
  CHECK_THROWS(webdataset(made.shard, {.index = index_policy::transient}));
}

TEST_CASE("source/foreign_index: DALI's index may list members that WebDataset skips") {
  const indexed_shard made(
      raw_tar().member("__meta__/a.txt", "0").member("a.txt", "1").member("nodot", "2").end());
  made.dali("v1.2 3\ntxt 512 1 __meta__/a.txt\ntxt 1536 1 a.txt\nnodot 2560 1 nodot\n");
  CHECK(made.lines(dali_index) == std::vector<std::string>{"a txt=1"});
  made.dali("v1.1 3\ntxt 512 1\ntxt 1536 1\nnodot 2560 1\n");
  CHECK(made.lines(dali_index) == std::vector<std::string>{"a txt=1"});
}

TEST_CASE("source/foreign_index: long and non-ASCII names are in headers of their own") {
  const std::string name = std::string(150, 'n') + ".txt", other = "\xc3\xa4.txt";
  const indexed_shard made(raw_tar()
                               .pax('x', penstock_test::pax_record("path=" + name))
                               .member(name.substr(0, 100), "1")
                               .pax('x', penstock_test::pax_record("path=" + other))
                               .member("?.txt", "2")
                               .end());
  made.dali("v1.2 2\ntxt 1536 1 " + name + "\ntxt 3584 1 " + other + "\n");
  CHECK(made.lines(dali_index) ==
        std::vector<std::string>{std::string(150, 'n') + " txt=1", "\xc3\xa4 txt=2"});
  made.energon({0, 2048, 4096});
  CHECK(made.lines(energon_index).size() == 2);
}

TEST_CASE("source/foreign_index: an index that disagrees with its shard is an error that names both") {
  const indexed_shard made(sample_shard());
  const auto dali = [&](const std::string& text) {
    made.dali(text);
    return made.refused(dali_index);
  };
  for (const std::string& good : {with_names, without_names}) {
    INFO(good);
    CHECK_THAT(dali(with(good, " 512 2", " 512 3")), penstock_test::contains("512"));
    CHECK_THAT(dali(with(good, " 512 ", " 1024 ")), penstock_test::contains("in line 2"));
    CHECK_THAT(dali(with(good, "6144 1", "6144 9000")), penstock_test::contains("the shard has"));
    CHECK_THAT(dali(with(good, "6144 1", "6144 18446744073709551615")),
               penstock_test::contains("the shard has"));
    CHECK_THAT(dali(with(good, "6144 1", "18446744073709551104 1")),
               penstock_test::contains("the shard has"));
    CHECK_THAT(dali(with(good, "1536 1", "1536 3000")), penstock_test::contains("overlap"));
    CHECK_THAT(dali(with(good, "1536 1", "1537 1")), penstock_test::contains("multiple of 512"));
    CHECK_THAT(dali(with(good, "1536 1", "1536 -1")), penstock_test::contains("where a number should be"));
    CHECK_THAT(dali(with(good, "1536 1", "1536 99999999999999999999")),
               penstock_test::contains("where a number should be"));
    CHECK_THAT(dali(with(good, " 3\n", " 4\n")), penstock_test::contains("announces 4 samples and has 3"));
    CHECK_THAT(dali(with(good, "v1.", "v2.")), penstock_test::contains("v1.1 or v1.2"));
    CHECK_THAT(dali(with(good, "\njpg 5120", " jpg 5120")), penstock_test::contains("announces 3"));
    CHECK_THAT(dali(with(good, " 3\n", " 3\n\n")), penstock_test::contains("no member in line 2"));
  }
  CHECK_THAT(dali(with(with_names, " c.cls\n", "\n")), penstock_test::contains("ends within line 4"));
  CHECK_THAT(dali(with(with_names, "a.cls", "a.txt")),
             penstock_test::contains("calls 'a.txt' a member 'cls'"));
  CHECK_THAT(dali(with(with_names, "b.jpg", "d.jpg")), penstock_test::contains("'d.jpg'"));
  CHECK_THAT(dali(with(with(with_names, " 3\n", " 2\n"), "a.cls\n", "a.cls ")),
             penstock_test::contains("two samples in line 2"));
  CHECK_THAT(dali(with(with(with_names, " 3\n", " 4\n"), "c.jpg ", "c.jpg\n")),
             penstock_test::contains("divides a sample"));
  CHECK_THAT(dali(with(with(without_names, " 3\n", " 4\n"), "5120 1 ", "5120 1\n")),
             penstock_test::contains("divides a sample"));
  // fewer members than the shard has, and more
  CHECK_THAT(dali("v1.2 2\nJPG 512 2 a.JPG cls 1536 1 a.cls\njpg 4096 1 b.jpg\n"),
             penstock_test::contains("ends before 'c.jpg'"));
  CHECK_THAT(dali("v1.1 2\nJPG 512 2 cls 1536 1\njpg 4096 1\n"),
             penstock_test::contains("does not have 'c.jpg'"));
  CHECK_THAT(dali("v1.2 1\njpg 4096 1 b.jpg\n"), penstock_test::contains("first member"));
  CHECK_THAT(dali("v1.2 0\n"), penstock_test::contains("first member"));
  CHECK_THAT(dali(""), penstock_test::contains("v1.1 or v1.2"));
  CHECK_THAT(dali(without_names.substr(0, 24)), penstock_test::contains("index"));
  // empty members without room for a header between them
  CHECK_THAT(dali("v1.1 1\na 512 0 a 512 0 a 512 0\n"), penstock_test::contains("overlap"));

  const auto energon = [&](const std::vector<std::uint64_t>& offsets) {
    made.energon(offsets);
    return made.refused(energon_index);
  };
  CHECK_THAT(energon({}), penstock_test::contains("not a list of 64-bit offsets"));
  CHECK_THAT(energon({0, 3584, 4608, 6656}), penstock_test::contains("sample 1 begins at 3584"));
  CHECK_THAT(energon({0, 2560, 4608}), penstock_test::contains("has 2 samples"));
  CHECK_THAT(energon({0, 2560, 4608, 6656, 6656}),
             penstock_test::contains("has 4 samples, and the shard has 3"));
  CHECK_THAT(energon({0, 2560, 4608, 6000}), penstock_test::contains("end at 6000"));
  CHECK_THAT(energon({0, 2560, 4608, 1u << 20}), penstock_test::contains("end at 1048576"));
  std::ofstream(made.shard + ".idx", std::ios::binary | std::ios::app) << "x";
  CHECK_THAT(made.refused(energon_index), penstock_test::contains("not a list of 64-bit offsets"));
}

TEST_CASE("source/foreign_index: an index far larger than its shard is not read") {
  const indexed_shard made(sample_shard());
  made.dali(with_names);
  std::filesystem::resize_file(made.dir / "train.idx", std::uintmax_t{1} << 40);  // a hole: it takes no room
  CHECK_THAT(made.refused(dali_index, penstock::errc::limit),
             penstock_test::contains("the index of this shard may not have more than"));
  made.energon({0});
  std::filesystem::resize_file(made.shard + ".idx", std::uintmax_t{1} << 40);
  CHECK_THAT(made.refused(energon_index, penstock::errc::limit),
             penstock_test::contains("the index of this shard may not have more than"));
}

TEST_CASE("source/foreign_index: a missing index, and storages without files") {
  const indexed_shard made(sample_shard());
  CHECK_THAT(made.refused(dali_index, penstock::errc::missing), penstock_test::contains("No such file"));
  CHECK_THAT(made.refused(energon_index, penstock::errc::missing), penstock_test::contains("No such file"));
  for (const auto& [policy, name] : {std::pair(dali_index, "the DALI index t.idx of the shard t.tar"),
                                     std::pair(energon_index, "the Energon index t.tar.idx of the")}) {
    CHECK_THROWS_WITH(
        webdataset(penstock::memory_files().add("t.tar", sample_shard().bytes), {.index = policy}),
        penstock_test::contains(name) && penstock_test::contains("cannot be used: no such object was added"));
  }
}
