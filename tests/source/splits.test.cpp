// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/named_split.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/dataset.hpp>
#include <penstock/source/delta.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/iceberg.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/parquet.hpp>
#include <penstock/storage/memory_files.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/fixtures.hpp"
#include "support/stored_folder.hpp"
#include "support/temp_dir.hpp"

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

namespace {

using numbers = std::vector<std::int64_t>;

std::string report(std::string_view name) {
  return penstock_test::fixture("reports/" + std::string(name)).string();
}

/// Calls `use` for each row, without a run.
template <class Source, class Use>
void each_row(const Source& source, const Use& use) {
  const auto reader = source.connect();
  typename Source::reader::worker worker;
  for (std::uint64_t i = 0; i < source.size(); ++i) reader.evaluate({0, i}, worker, use);
}
/// The values of the first column.
template <class Source>
numbers numbers_of(const Source& source) {
  numbers made;
  each_row(source,
           [&](const auto& row) { made.push_back(row.member(0).cell().template number<std::int64_t>()); });
  return made;
}
template <class Source>
std::vector<std::string> texts_of(const Source& source) {
  std::vector<std::string> made;
  each_row(source, [&](const auto& one) { made.emplace_back(one); });
  return made;
}
void write(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace

TEST_CASE("source/splits: Parquet files of several splits are read by the split") {
  for (const std::string_view name : {"splits_flat", "splits_folders", "splits_data"}) {
    CAPTURE(name);
    const std::string folder = report(name);
    const auto joined = caught([&] { static_cast<void>(ps::parquet(folder)); });
    CHECK(joined.code == ps::errc::argument);
    CHECK_THAT(joined.line, contains("the splits train") && contains("test") &&
                                contains("parquet(\"" + folder + "\", split(\"train\"))"));
    const numbers train = name == "splits_data" ? numbers{1} : numbers{1, 2, 3};
    CHECK(numbers_of(ps::parquet(folder, ps::split("train"))) == train);
    CHECK(numbers_of(ps::parquet(folder, ps::split("test"), {.keep = 1})) == numbers{9});
    CHECK(caught([&] { static_cast<void>(ps::parquet(folder, ps::split("extra"))); }).code ==
          ps::errc::missing);
  }
  CHECK(numbers_of(ps::parquet(report("splits_flat"), ps::split("validation"))) == numbers{8});
  CHECK(ps::parquet(report("splits_flat"), ps::split("all")).size() == 5);
  CHECK(numbers_of(ps::parquet(report("splits_flat/t*.parquet"), ps::split("train"))) == numbers{1, 2, 3});
  CHECK(ps::parquet(report("splits_flat/*.parquet")).size() == 5);
}

TEST_CASE("source/splits: objects of several splits are read by the split, too") {
  const ps::memory_files objects = penstock_test::stored_folder(report("splits_folders"), "bucket/d");
  CHECK(caught([&] { static_cast<void>(ps::parquet(objects)); }).code == ps::errc::argument);
  CHECK(numbers_of(ps::parquet(objects, ps::split("train"))) == numbers{1, 2, 3});
  CHECK(numbers_of(ps::parquet(objects, ps::split("test"))) == numbers{9});
  CHECK(ps::parquet(objects, ps::split("all")).size() == 4);
}

TEST_CASE("source/splits: dataset takes a split of any format") {
  const auto size = [](const auto& source) { return source.size(); };
  for (const std::string_view name : {"splits_flat", "splits_folders", "splits_data"}) {
    CAPTURE(name);
    CHECK(std::visit(size, ps::dataset(report(name), ps::split("train"), ps::parquet_format{})) ==
          (name == "splits_data" ? 1 : 3));
    CHECK(std::visit(size, ps::dataset(report(name), ps::split("test"), ps::core_formats{},
                                       ps::parquet_format{})) == 1);
  }
  CHECK(caught([&] { static_cast<void>(ps::dataset(report("splits_flat"), ps::parquet_format{})); }).code ==
        ps::errc::argument);
  const ps::memory_files objects = penstock_test::stored_folder(report("splits_folders"), "bucket/d");
  CHECK(std::visit(size, ps::dataset(objects, ps::split("train"), ps::parquet_format{})) == 3);
}

TEST_CASE("source/splits: of what was saved twice, state.json lists what counts") {
  CHECK(numbers_of(ps::arrow_ipc(report("saved_twice"))) == numbers{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(std::visit([](const auto& source) { return source.size(); }, ps::dataset(report("saved_twice"))) ==
        8);
  const penstock_test::temp_dir dir;
  for (const auto& [from, to] :
       {std::pair{"data-00000-of-00004", "train"}, {"data-00001-of-00004", "test"}}) {
    std::filesystem::create_directories(dir.path() / to);
    std::filesystem::copy(report("saved_twice/" + std::string(from) + ".arrow"), dir.path() / to / "0.arrow");
  }
  CHECK(caught([&] { static_cast<void>(ps::arrow_ipc(dir.path().string())); }).code == ps::errc::argument);
  CHECK(numbers_of(ps::arrow_ipc(dir.path().string(), ps::split("test"))) == numbers{2, 3});
  const ps::memory_files objects = penstock_test::stored_folder(dir.path().string(), "bucket/d");
  CHECK(numbers_of(ps::arrow_ipc(objects, ps::split("train"))) == numbers{0, 1});
}

TEST_CASE("source/splits: lines have splits") {
  const penstock_test::temp_dir dir;
  write(dir.path() / "l/train.jsonl", "1\n2\n");
  write(dir.path() / "l/val.jsonl", "3\n");
  const std::string text = (dir.path() / "l").string();
  using texts = std::vector<std::string>;
  CHECK(texts_of(ps::lines(text, ps::split("train"))) == texts{"1", "2"});
  CHECK(texts_of(ps::lines(text, ps::split("validation"))) == texts{"3"});
  CHECK(texts_of(ps::lines(penstock_test::stored_folder(text, "bucket/d"), ps::split("dev"))) == texts{"3"});
  CHECK(caught([&] { static_cast<void>(ps::lines(text)); }).code == ps::errc::argument);
}

TEST_CASE("source/splits: images have splits, with their classes below") {
  const penstock_test::temp_dir dir;
  const std::string root = dir.path().string();
  for (const char* const name :
       {"i/test/cat/2.png", "i/train/cat/1.png", "i/train/dog/1.png", "c/cat/test/2.png", "c/cat/train/1.png",
        "c/dog/train/1.png", "f/test_1.png", "f/train_1.png", "k/test tube/1.png", "k/train station/1.png",
        "k/cat/1.png", "s/train/1.png"})
    write(dir.path() / name, name);
  const auto paths = [](const ps::directory& source) {
    std::vector<std::string> made;
    for (std::uint64_t i = 0; i < source.size(); ++i) made.emplace_back(source.path(i));
    return made;
  };
  using names = std::vector<std::string>;
  for (const char* const name : {"/i", "/c", "/f"}) {
    const auto joined = caught([&] { static_cast<void>(ps::directory(root + name)); });
    CHECK(joined.code == ps::errc::argument);
    CHECK_THAT(joined.line, contains("directory(\"" + root + name + "\", split(\"train\"))"));
  }
  const ps::directory train(root + "/i", ps::split("train"));
  CHECK(paths(train) == names{"cat/1.png", "dog/1.png"});
  CHECK(names(train.classes().begin(), train.classes().end()) == names{"cat", "dog"});
  CHECK(train.fingerprint() == ps::directory(root + "/i/train").fingerprint());
  CHECK(paths(ps::directory(root + "/i", ps::split("test"), {.extensions = {"png"}})) == names{"cat/2.png"});
  CHECK(paths(ps::directory(root + "/c", ps::split("train"))) == names{"cat/train/1.png", "dog/train/1.png"});
  CHECK(paths(ps::directory(root + "/f", ps::split("test"))) == names{"test_1.png"});
  CHECK(ps::directory(root + "/i", ps::split("all")).classes().size() == 2);
  // Classes may be called like splits.
  CHECK(ps::directory(root + "/k").classes().size() == 3);
  CHECK(paths(ps::directory(root + "/s")) == names{"train/1.png"});
  const auto none = caught([&] { static_cast<void>(ps::directory(root + "/k", ps::split("val"))); });
  CHECK(none.code == ps::errc::missing);
}

TEST_CASE("source/splits: a table's files are read by the table's source") {
  const std::string folder = report("removed_file");
  for (const auto& refused : {caught([&] { static_cast<void>(ps::parquet(folder)); }),
                              caught([&] { static_cast<void>(ps::parquet(folder + "/*.parquet")); }),
                              caught([&] { static_cast<void>(ps::parquet(folder, ps::split("all"))); })}) {
    CHECK(refused.code == ps::errc::argument);
    CHECK_THAT(refused.line, contains("delta(\"" + folder + "\")"));
  }
  CHECK(numbers_of(ps::delta(folder)) == numbers{3});
  const ps::memory_files objects = penstock_test::stored_folder(folder, "bucket/d");
  const auto stored = caught([&] { static_cast<void>(ps::parquet(objects)); });
  CHECK(stored.code == ps::errc::argument);
  CHECK_THAT(stored.line, contains("delta(storage)"));
  CHECK(numbers_of(ps::delta(objects)) == numbers{3});
  const auto unknown = caught([&] { static_cast<void>(ps::dataset(folder, ps::parquet_format{})); });
  CHECK_THAT(unknown.line, contains("this looks like delta"));
  CHECK(std::visit([](const auto& source) { return source.size(); },
                   ps::dataset(folder, ps::parquet_format{}, ps::delta_format{})) == 1);

  const penstock_test::temp_dir dir;
  std::filesystem::create_directories(dir.path() / "metadata");
  std::filesystem::copy(folder + "/part-1.parquet", dir.path() / "part-1.parquet");
  write(dir.path() / "metadata/00001-2f.metadata.json", "{}");
  const std::string iceberg = dir.path().string();
  CHECK_THAT(caught([&] { static_cast<void>(ps::parquet(iceberg)); }).line,
             contains("iceberg(\"" + iceberg + "\")"));
  CHECK_THAT(caught([&] { static_cast<void>(ps::dataset(iceberg, ps::parquet_format{})); }).line,
             contains("this looks like iceberg"));
  std::filesystem::rename(dir.path() / "metadata", dir.path() / ".hoodie");
  CHECK_THAT(caught([&] { static_cast<void>(ps::parquet(iceberg)); }).line, contains("Apache Hudi"));
  CHECK_THAT(caught([&] { static_cast<void>(ps::dataset(iceberg, ps::parquet_format{})); }).line,
             contains("Apache Hudi"));
}
