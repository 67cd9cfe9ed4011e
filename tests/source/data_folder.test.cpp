// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/files/data_folder.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/memory_files.hpp>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/temp_dir.hpp"

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

namespace {

using names = std::vector<std::string>;

class folder {
 public:
  folder(std::initializer_list<std::string_view> files) {
    for (const std::string_view one : files) write(one);
  }
  void write(std::string_view name, std::string_view content = "") const {
    const std::filesystem::path path = dir_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  [[nodiscard]] std::string path(std::string_view name = "") const {
    return name.empty() ? dir_.path().string() : (dir_.path() / name).string();
  }
  /// Paths below the folder.
  [[nodiscard]] names of(const names& paths) const {
    names made;
    for (const std::string& one : paths) made.push_back(one.substr(path().size() + 1));
    return made;
  }

 private:
  penstock_test::temp_dir dir_;
};

using kind = ps::detail::data_kind;

codec_test::thrown refusal(kind of, const std::string& path) {
  return caught([&] { static_cast<void>(ps::detail::data_paths(of, path)); });
}

}  // namespace

TEST_CASE("source/data_folder: each source finds its files, and the files of a split") {
  struct example {
    kind of;
    std::string_view source;
    names files, train;
  };
  const example examples[] = {
      {kind::parquet,
       "parquet",
       {"default/test/0.parquet", "default/train/0.parq", "default/train/1.pq"},
       {"default/train/0.parq", "default/train/1.pq"}},
      {kind::parquet,
       "parquet",
       {"data/test-00000-of-00001.parquet", "data/train-00000-of-00001.parquet"},
       {"data/train-00000-of-00001.parquet"}},
      {kind::arrow,
       "arrow_ipc",
       {"imdb-test.arrow", "imdb-train-00000-of-00002.arrow", "imdb-train-00001-of-00002.arrow",
        "imdb-unsupervised.arrow"},
       {"imdb-train-00000-of-00002.arrow", "imdb-train-00001-of-00002.arrow"}},
      {kind::arrow,
       "arrow_ipc",
       {"test/data-00000-of-00001.arrow", "train/data-00000-of-00001.arrow"},
       {"train/data-00000-of-00001.arrow"}},
      {kind::lines,
       "lines",
       {"dev.jsonl", "train.0.jsonl", "train.1.ndjson"},
       {"train.0.jsonl", "train.1.ndjson"}},
      {kind::lines, "lines", {"test/a.txt", "train/b.txt"}, {"train/b.txt"}},
      {kind::tfrecord,
       "tfrecord",
       {"mnist-test.tfrecord-00000-of-00001", "mnist-train.tfrecord-00000-of-00001"},
       {"mnist-train.tfrecord-00000-of-00001"}},
      {kind::tfrecord,
       "tfrecord",
       {"train-00000-of-00002", "train-00001-of-00002", "validation-00000-of-00001"},
       {"train-00000-of-00002", "train-00001-of-00002"}},
  };
  for (const example& one : examples) {
    const folder made{"README.md", "dataset_info.json", ".hidden/train.jsonl", "_x/train.parquet"};
    for (const std::string& name : one.files) made.write(name);
    CAPTURE(one.source, one.train);
    const ps::named_split train = ps::split("train"), all = ps::split("all");
    CHECK(made.of(ps::detail::data_paths(one.of, made.path(), &train)) == one.train);
    CHECK(made.of(ps::detail::data_paths(one.of, made.path() + "/", &all)) == one.files);
    const auto several = refusal(one.of, made.path());
    CHECK(several.code == ps::errc::argument);
    CHECK_THAT(several.line, contains(made.path()));
    CHECK_THAT(several.line, contains("train") && contains(std::string(one.source) + "(\"" + made.path() +
                                                           "\", split(\"train\"))"));
    const folder none{"README.md"};
    CHECK(refusal(one.of, none.path()).code == ps::errc::missing);
  }
}

TEST_CASE("source/data_folder: a folder of one split is read as it is, and indexes are not data") {
  const folder made{"train-0.tfrecord", "train-0.tfrecord.penstock-index", "train-0.tfrecord.idx",
                    "train-1.tfrecord"};
  CHECK(made.of(ps::detail::data_paths(kind::tfrecord, made.path())) ==
        names{"train-0.tfrecord", "train-1.tfrecord"});
  const folder years{"year=2024/a.parquet", "year=2025/a.parquet", "_SUCCESS"};
  CHECK(years.of(ps::detail::data_paths(kind::parquet, years.path())) ==
        names{"year=2024/a.parquet", "year=2025/a.parquet"});
  // The pattern of the advice keeps the folder.
  const folder twice{"en/x-0-of-1.parquet", "en/x-0-of-2.parquet", "en/x-1-of-2.parquet"};
  const auto stale = refusal(kind::parquet, twice.path());
  CHECK(stale.code == ps::errc::argument);
  const std::string pattern = twice.path("en/x-*-of-2.parquet");
  CHECK_THAT(stale.line, contains("parquet(\"" + pattern + "\")"));
  CHECK(twice.of(ps::detail::data_paths(kind::parquet, pattern)) ==
        names{"en/x-0-of-2.parquet", "en/x-1-of-2.parquet"});
  // Of files that differ in letters the advice can be followed, too.
  const folder kinds{"squad-a.arrow", "squad-b0.arrow", "squad-b1.arrow"};
  const auto several = refusal(kind::arrow, kinds.path());
  CHECK(several.code == ps::errc::argument);
  CHECK_THAT(several.line, contains("arrow_ipc(\"" + kinds.path() + "\", split(\"squad-b\"))"));
  const ps::named_split which = ps::split("squad-b");
  CHECK(kinds.of(ps::detail::data_paths(kind::arrow, kinds.path(), &which)) ==
        names{"squad-b0.arrow", "squad-b1.arrow"});
}

TEST_CASE("source/data_folder: what save_to_disk lists is the dataset") {
  const folder made{"train/data-00000-of-00001.arrow", "train/data-00000-of-00002.arrow",
                    "train/data-00001-of-00002.arrow", "test/data-00000-of-00001.arrow",
                    "train/cache-1.arrow"};
  made.write("train/state.json",
             "{\n \"_data_files\": [\n {\"filename\": \"data-00000-of-00002.arrow\"},\n"
             " {\"filename\": \"data-00001-of-00002.arrow\"}],\n \"_split\": \"train\"}");
  made.write("test/state.json", R"({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]})");
  const names train{"train/data-00000-of-00002.arrow", "train/data-00001-of-00002.arrow"};
  const ps::named_split which = ps::split("train");
  CHECK(made.of(ps::detail::data_paths(kind::arrow, made.path(), &which)) == train);
  CHECK(made.of(ps::detail::data_paths(kind::arrow, made.path("train"))) == names{train[0], train[1]});
  CHECK(refusal(kind::arrow, made.path()).code == ps::errc::argument);

  std::filesystem::remove(made.path(train[1]));
  const auto lost = refusal(kind::arrow, made.path("train"));
  CHECK(lost.code == ps::errc::missing);
  CHECK_THAT(lost.line, contains("'state.json' lists 'data-00001-of-00002.arrow', which is not there"));
  made.write("train/state.json", R"({"_data_files": [{"filename": "../x.arrow"}]})");
  CHECK(refusal(kind::arrow, made.path("train")).code == ps::errc::format);
  made.write("train/state.json", R"({"_data_files": 3})");
  const auto odd = refusal(kind::arrow, made.path("train"));
  CHECK(odd.code == ps::errc::format);
  CHECK_THAT(odd.line, contains("state.json"));
}

TEST_CASE("source/data_folder: a table's folder is not its rows") {
  struct example {
    std::string_view mark, call;
  };
  const example examples[] = {{"_delta_log/00000000000000000000.json", "delta(\""},
                              {"metadata/v1.metadata.json", "iceberg(\""},
                              {"metadata/00000-0b2c.metadata.json.gz", "iceberg(\""},
                              {".hoodie/hoodie.properties", "Apache Hudi"},
                              {"_spark_metadata/0", "_spark_metadata"}};
  for (const example& one : examples) {
    for (const auto& [list, name] :
         {std::pair{kind::parquet, "x=1/a.parquet"}, {kind::arrow, "x=1/a.arrow"}}) {
      const folder made{one.mark, name};
      CAPTURE(one.mark, name);
      const std::string below = made.path(name).substr(0, made.path(name).rfind('.'));
      for (const std::string& path : {made.path(), made.path() + "/", made.path("x=1"), below + ".*"}) {
        const auto refused = refusal(list, path);
        CHECK(refused.code == ps::errc::argument);
        CHECK_THAT(refused.line, contains(std::string(one.call)));
      }
      // Files that are named are read as they are.
      CHECK(ps::detail::data_paths(list, made.path(name)) == names{made.path(name)});
    }
    ps::memory_files objects;
    objects.add("sales/" + std::string(one.mark), "");
    objects.add("sales/a.parquet", "");
    const auto stored = caught([&] { static_cast<void>(ps::detail::one_split(objects, "parquet")); });
    if (one.call == "iceberg(\"" || one.call == "delta(\"")
      CHECK_THAT(stored.line, contains(std::string(one.call.substr(0, one.call.size() - 1)) + "storage)"));
    CHECK(stored.code == ps::errc::argument);
    CHECK(caught([&] {
            static_cast<void>(ps::detail::one_split(objects, ps::split("all"), "parquet"));
          }).code == ps::errc::argument);
  }
  const folder plain{"metadata/readme.md", "a.parquet"};
  CHECK(plain.of(ps::detail::data_paths(kind::parquet, plain.path())) == names{"a.parquet"});
}

TEST_CASE("source/data_folder: a storage has one split, or one is chosen") {
  ps::memory_files objects;
  for (const char* const name : {"d/test.parquet", "d/train.parquet"}) objects.add(name, "");
  const auto several = caught([&] { static_cast<void>(ps::detail::one_split(objects, "parquet")); });
  CHECK(several.code == ps::errc::argument);
  CHECK_THAT(several.line, contains("parquet(storage, split(\"train\"))"));
  const auto train = ps::detail::one_split(objects, ps::split("train"), "parquet");
  CHECK(names(train.names().begin(), train.names().end()) == names{"d/train.parquet"});
  CHECK(ps::detail::one_split(objects, ps::split("all"), "parquet").names().size() == 2);
}
