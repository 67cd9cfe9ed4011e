// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/files/split_files.hpp>

#include <penstock/core/error.hpp>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/external_program.hpp"

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

namespace {

using names = std::vector<std::string>;

std::map<std::string, names> by_split(const names& paths) {
  std::map<std::string, names> made;
  for (const auto& one : ps::detail::splits_of(paths))
    for (const std::size_t i : one.files) made[one.name].push_back(paths[i]);
  return made;
}
names chosen(const names& paths, const std::string& split) {
  names made;
  for (const std::size_t i : ps::detail::files_of(paths, ps::split(split), {"parquet", "f"}))
    made.push_back(paths[i]);
  return made;
}
codec_test::thrown refusal(const names& paths, std::string_view folder = "f") {
  return caught([&] { ps::detail::refuse_several_splits(paths, {"parquet", folder}); });
}
codec_test::thrown miscounted(const names& paths) {
  return caught([&] { ps::detail::check_numbered_files(paths, {"parquet", "f"}); });
}

}  // namespace

TEST_CASE("source/split_files: files are of the splits that Hugging Face's datasets finds") {
  using made = std::map<std::string, names>;
  CHECK(by_split({"train.csv", "test.csv"}) == made{{"train", {"train.csv"}}, {"test", {"test.csv"}}});
  CHECK(by_split({"my_training-1.x", "val2017.x", "a-dev.x", "x.eval.x", "evaluation 3"}) ==
        made{{"train", {"my_training-1.x"}},
             {"validation", {"val2017.x", "a-dev.x"}},
             {"test", {"x.eval.x", "evaluation 3"}}});
  // A word is whole: nothing of these is one.
  CHECK(by_split({"trains.x", "strain.x", "latest.x", "medieval.x", "contest/a.x", "value.x",
                  "split=train/a.x", "device.x"})
            .empty());
  // Folders count more than files, at any depth.
  CHECK(by_split({"en/train/test.x", "en/test/train.x", "extra.x"}) ==
        made{{"train", {"en/train/test.x"}}, {"test", {"en/test/train.x"}}});
  CHECK(by_split({"train_images/a.x", "default-val/b.x"}) ==
        made{{"train", {"train_images/a.x"}}, {"validation", {"default-val/b.x"}}});
  // In "data" any name is one, and counts more than folders.
  CHECK(by_split({"data/train_sft-00000-of-00001.x", "data/test_sft-00000-of-00002-a09b.x",
                  "data/test_sft-00001-of-00002-c3d4.x", "test/a.x"}) ==
        made{{"train_sft", {"data/train_sft-00000-of-00001.x"}},
             {"test_sft", {"data/test_sft-00000-of-00002-a09b.x", "data/test_sft-00001-of-00002-c3d4.x"}}});
  // Names of both are of both.
  CHECK(by_split({"eval_train.x"}) == made{{"train", {"eval_train.x"}}, {"test", {"eval_train.x"}}});
  // Numbers tell sets apart, whatever they are called.
  CHECK(by_split({"a-00000-of-00001.x", "b-00000-of-00001.x"}) ==
        made{{"a", {"a-00000-of-00001.x"}}, {"b", {"b-00000-of-00001.x"}}});
  CHECK(by_split({"a-00000-of-00002.x", "a-00001-of-00002.x"}).empty());
}

TEST_CASE("source/split_files: a split is chosen by any of its names") {
  const names flat{"test.x", "train-0.x", "train-1.x", "unsupervised.x", "valid.x"};
  CHECK(chosen(flat, "train") == names{"train-0.x", "train-1.x"});
  CHECK(chosen(flat, "training") == names{"train-0.x", "train-1.x"});
  CHECK(chosen(flat, "dev") == names{"valid.x"});
  CHECK(chosen(flat, "eval") == names{"test.x"});
  CHECK(chosen(flat, "unsupervised") == names{"unsupervised.x"});
  CHECK(chosen(flat, "all") == flat);
  const names sets{"test-00000-of-00001.x", "train-00000-of-00001.x", "train_sft-00000-of-00001.x"};
  CHECK(chosen(sets, "train") == names{sets[1]});
  CHECK(chosen(sets, "train_sft") == names{sets[2]});
  CHECK(chosen({"data/val-00000-of-00001.x", "data/train-00000-of-00001.x"}, "validation") ==
        names{"data/val-00000-of-00001.x"});

  const auto none = caught([&] { static_cast<void>(chosen(flat, "extra")); });
  CHECK(none.code == ps::errc::missing);
  CHECK_THAT(none.line,
             contains("no split 'extra' in the folder, which has the splits train, validation, test"));
  const auto unnamed = caught([&] { static_cast<void>(chosen({"a.x", "b.x"}, "train")); });
  CHECK(unnamed.code == ps::errc::missing);
  CHECK_THAT(unnamed.line, contains("leave split(\"train\") out"));
  // Two sets are called after training.
  const auto both = caught([&] {
    static_cast<void>(chosen({"train_a-00000-of-00001.x", "train_b-00000-of-00001.x", "test.x"}, "train"));
  });
  CHECK(both.code == ps::errc::argument);
  CHECK_THAT(both.line, contains("train_a, train_b") && contains("split(\"train_a\")"));
}

TEST_CASE("source/split_files: files of a split without a number count beside the numbered ones") {
  CHECK(chosen({"test-00000-of-00001.x", "train-00000-of-00001.x", "train_extra.x"}, "train") ==
        names{"train-00000-of-00001.x", "train_extra.x"});
}

TEST_CASE("source/split_files: several splits are not one dataset") {
  const auto two = refusal({"en/train/0.x", "en/test/0.x"});
  CHECK(two.code == ps::errc::argument);
  CHECK_THAT(two.line, contains("the folder has the splits train, test: choose one, as in parquet(\"f\", "
                                "split(\"train\")), or read all files as one dataset with split(\"all\")"));
  CHECK_THAT(refusal({"train.x", "test.x"}, "").line,
             contains("the storage has the splits train, test: choose one, as in parquet(storage, "
                      "split(\"train\"))"));
  CHECK_THAT(refusal({"extra/0.x", "train/0.x"}).line,
             contains("has the split train, and files of none, such as 'extra/0.x'"));
  CHECK_THAT(refusal({"train_a-00000-of-00001.x", "train_b-00000-of-00001.x"}).line,
             contains("the splits train_a, train_b") && contains("split(\"train_a\")"));
  ps::detail::refuse_several_splits(names{"train/0.x", "train/1.x"}, {"parquet", "f"});
  ps::detail::refuse_several_splits(names{"eval_train.x"}, {"parquet", "f"});
  ps::detail::refuse_several_splits(names{"year=2024/a.x", "year=2025/a.x"}, {"parquet", "f"});
  ps::detail::refuse_several_splits(names{}, {"parquet", "f"});
}

TEST_CASE("source/split_files: numbered files are all there, and of one writing") {
  ps::detail::check_numbered_files(names{"f/a-1-of-2.x", "f/a-2-of-2.x", "g/a-0-of-1.x"}, {"parquet", "f"});
  const auto cut = miscounted({"f/en/a-0-of-3.x", "f/en/a-2-of-3.x"});
  CHECK(cut.code == ps::errc::missing);
  CHECK_THAT(cut.line, contains("has 2 of the 3 files that 'f/en/a-0-of-3.x' counts, and lacks number 1"));
  const auto stale = miscounted({"f/en/a-0-of-1.x", "f/en/a-0-of-2.x", "f/en/a-1-of-2.x"});
  CHECK(stale.code == ps::errc::argument);
  CHECK_THAT(stale.line, contains("written twice") && contains("parquet(\"f/en/a-*-of-"));
  const auto twice = miscounted({"f/a-0-of-2-aa.x", "f/a-0-of-2-bb.x"});
  CHECK(twice.code == ps::errc::argument);
  CHECK_THAT(twice.line, contains("number 0 of 2"));
}

TEST_CASE("source/split_files: objects of a storage are looked at from their common folder on") {
  using ps::detail::relative_paths;
  CHECK(relative_paths(names{"s3://test-data/train/a.x", "s3://test-data/train/b.x"}) == names{"a.x", "b.x"});
  CHECK(relative_paths(names{"https://h/d/train.x?k=test", "https://h/d/test.x?k=train"}) ==
        names{"train.x", "test.x"});
  CHECK(relative_paths(names{"a.x"}) == names{"a.x"});
  CHECK(relative_paths(names{}).empty());
  const auto of = [](const names& all, const std::string& split) {
    return ps::detail::names_of_split(all, ps::split(split), {"parquet", ""});
  };
  CHECK(of({"b/d/train/0.x", "b/d/test/0.x"}, "test") == names{"b/d/test/0.x"});
  CHECK(of({"b/d/train/0.x", "b/d/train/1.x"}, "train") == names{"b/d/train/0.x", "b/d/train/1.x"});
  CHECK(caught([&] {
          static_cast<void>(of({"b/d/train/0.x", "b/d/train/1.x"}, "test"));
        }).code == ps::errc::missing);
}

TEST_CASE("source/split_files: in made-up folders the splits are those of Hugging Face's datasets") {
  const char* const named = std::getenv("PENSTOCK_TEST_FORMATS");
  const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT");
  const std::string python = named == nullptr || *named == '\0' ? "python3" : named;
  if (support == nullptr ||
      !penstock_test::have_program("datasets", python + " -c 'import datasets.data_files'"))
    return;
  const auto peer =
      penstock_test::run_program(python + " -B " + support + "/split_peers.py 7 100 2>/dev/null");
  REQUIRE(peer.status == 0);
  std::istringstream lines(peer.output);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const std::size_t tab = line.find('\t');
    REQUIRE(tab != line.npos);
    names paths;
    std::istringstream files(line.substr(0, tab));
    for (std::string one; std::getline(files, one, '|');) paths.push_back(one);
    std::string found;
    using place = ps::detail::split_place;
    for (const place where : {place::sharded, place::folder, place::file}) {
      if (!found.empty()) break;
      for (const auto& split : ps::detail::splits_at(paths, where)) {
        found += (found.empty() ? "" : ";") + split.name + "=";
        for (std::size_t i = 0; i < split.files.size(); ++i)
          found += (i == 0 ? "" : ",") + paths[split.files[i]];
      }
    }
    CAPTURE(line);
    CHECK(found == line.substr(tab + 1));
  }
  CHECK(count == 100);
}
