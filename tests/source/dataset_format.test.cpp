// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/dataset_format.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/dataset_files.hpp"

#include <penstock/storage/memory_files.hpp>

#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;
using penstock_test::contains;
using penstock_test::dataset_folder;
using penstock_test::error_of;

namespace dataset_format_test {

std::vector<std::string> endings_of(const ps::dataset_listing& there) {
  std::vector<std::string> endings;
  for (const ps::listed_files& some : there.files()) endings.push_back(some.ending);
  return endings;
}
bool is_text_file(const ps::listed_files& some) { return some.ending == ".txt"; }

struct one_format {
  static constexpr std::string_view name = "one";
  using sources = std::variant<int>;
  [[nodiscard]] static ps::format_fit look(const ps::dataset_listing&) { return ps::format_fit::content; }
  [[nodiscard]] static sources open(const ps::dataset_listing&) { return 1; }
};
static_assert(ps::dataset_format<one_format> && !ps::dataset_format<int> &&
              !ps::stored_format<one_format, ps::memory_files>);

}  // namespace dataset_format_test

using namespace dataset_format_test;

TEST_CASE("source/dataset_format: the files of a folder by their endings, with one look at each") {
  const dataset_folder folder;
  folder.write("b-10.TAR", "first bytes, last bytes");
  folder.write("b-9.tar", "other");
  folder.write("a.tar.gz", "packed");
  folder.write("shard-00001", "none");
  folder.write("shard-00002", "none");
  folder.write("LICENSE", "text");
  folder.write("empty.txt", "");
  folder.write(".hidden", "x");
  folder.write("_SUCCESS", "x");
  folder.write("b-9.tar.penstock-index", "x");
  folder.write("more/x.tar", "x");
  const ps::dataset_listing there(folder() + "/");
  CHECK(there.path() == folder());
  CHECK((there.is_folder() && !there.is_storage()));
  CHECK(endings_of(there) == std::vector<std::string>{"license", ".tar.gz", ".tar", ".txt", "shard-"});
  CHECK(std::vector(there.folders().begin(), there.folders().end()) == std::vector<std::string>{"more"});
  const ps::listed_files& tars = there.files()[2];
  CHECK(tars.paths == std::vector<std::string>{folder("b-10.TAR"), folder("b-9.tar")});
  CHECK(tars.size == 23);
  CHECK(tars.begins("first"));
  CHECK(!tars.begins("other"));
  CHECK(tars.tail == "ytes, last bytes");
  CHECK(there.files()[3].head.empty());
  CHECK(there.has(".hidden"));
  CHECK(there.has("more"));
  CHECK(!there.has("less"));
  CHECK(there.below("more").files().size() == 1);
  CHECK_THAT(there.describe(), contains("1 file 'LICENSE', which begins with 74 65 78 74, "));
  CHECK_THAT(there.describe(), contains("1 file 'empty.txt', which is empty"));
  CHECK_THAT(there.describe(), contains("2 files like 'shard-00001', the first of which begins with"));
  CHECK_THAT(there.describe(), contains("1 folder, 'more'"));
}

TEST_CASE("source/dataset_format: paths, patterns, pairs and storages") {
  const dataset_folder folder;
  const std::string one = folder.write("a.txt", "one"), two = folder.write("b.txt", "two");
  CHECK(ps::dataset_listing(one).files().front().paths == std::vector{one});
  CHECK(ps::dataset_listing(folder("*.txt")).files().front().paths == std::vector{one, two});
  CHECK(ps::dataset_listing(folder("{b,a}.txt")).files().front().paths == std::vector{two, one});
  CHECK(ps::dataset_listing(two + "::" + one).files().front().paths == std::vector{two, one});
  CHECK(!ps::dataset_listing(one).has("b.txt"));
  folder.write("t.bin", "x");
  folder.write("t.idx", "y");
  for (const char* const name : {"t", "t.bin", "t.idx"})
    CHECK(endings_of(ps::dataset_listing(folder(name))) == std::vector<std::string>{".bin", ".idx"});
  folder.write("t", "a file that is really there");
  CHECK(endings_of(ps::dataset_listing(folder("t"))) == std::vector<std::string>{"t"});

  for (const char* const name : {"x{0..1}.txt", "c::d.txt", "[x].txt"}) {
    const std::string path = folder.write(name, "a file whatever the pattern would match");
    CHECK(ps::dataset_listing(path).files().front().paths == std::vector{path});
  }

  const auto stored = ps::memory_files().add("x/a.txt", "one").add("x/b.txt", "two");
  const ps::dataset_listing there(stored);
  CHECK((there.is_storage() && !there.is_folder()));
  CHECK(there.path() == "the storage");
  CHECK(there.files().front().paths == std::vector<std::string>{"x/a.txt", "x/b.txt"});
  CHECK(there.files().front().head == "one");
  CHECK(!there.has("x/a.txt"));
}

TEST_CASE("source/dataset_format: which folders a folder has, and in which the objects of a storage lie") {
  const dataset_folder folder;
  folder.write("more", "a file");
  std::filesystem::create_directory(folder("_log"));
  const ps::dataset_listing local(folder());
  CHECK(local.has_folder("_log"));
  CHECK(!local.has_folder("more"));
  CHECK(!local.has_folder("less"));
  CHECK(!ps::dataset_listing(folder("more")).has_folder("_log"));

  const ps::dataset_listing stored(
      ps::memory_files().add("top/a.txt", "1").add("s3://b/t/my_log_log/_log_/_log/c.txt", "2"));
  for (const char* const name : {"top", "b", "t", "my_log_log", "_log_", "_log"})
    CHECK(stored.has_folder(name));
  for (const char* const name : {"to", "op", "log", "a.txt", "c.txt", "my_log"})
    CHECK(!stored.has_folder(name));

  const auto is_iceberg = [](const char* name) {
    return ps::detail::has_iceberg_metadata(ps::dataset_listing(ps::memory_files().add(name, "{}")));
  };
  for (const char* const name : {"t/metadata/v3.metadata.json", "00003-x-y.metadata.json",
                                 "a/v7.gz.metadata.json", "a/v12.metadata.json.gz"})
    CHECK(is_iceberg(name));
  for (const char* const name :
       {"a/metadata.json", "v.metadata.json", "metadata/x.metadata.json", "v1.json", "v1x.metadata.json",
        "a/7.metadata.json", "v1-x.metadata.json", "v1.metadata.json/x", ""})
    CHECK(!is_iceberg(name));
}

TEST_CASE("source/dataset_format: which files fit, and files of several splits") {
  const dataset_folder folder;
  folder.write("a-1.txt", "x");
  folder.write("a-02.txt", "x");
  folder.write("readme.md", "x");
  const ps::dataset_listing there(folder());
  CHECK(there.fit_of(&is_text_file) == ps::format_fit::content);
  CHECK(there.paths_of(&is_text_file) == std::vector<std::string>{folder("a-02.txt"), folder("a-1.txt")});
  CHECK(there.fit_of([](const ps::listed_files&) { return false; }) == ps::format_fit::none);
  // Where files are named, all must be of the format.
  CHECK(ps::dataset_listing(folder("*")).fit_of(&is_text_file) == ps::format_fit::none);
  CHECK(ps::dataset_listing(folder("*.txt")).fit_of(&is_text_file) == ps::format_fit::content);
  folder.write("b-1.txt", "x");
  const std::string said =
      error_of([&] { static_cast<void>(ps::dataset_listing(folder()).paths_of(&is_text_file)); });
  CHECK_THAT(said, contains("files of several kinds, such as '" + folder("a-02.txt") + "' and '" +
                            folder("b-1.txt")));
  CHECK_THAT(said, contains("dataset(\"" + folder("a-*.txt") + "\")"));
  CHECK(ps::dataset_listing(folder("*.txt")).paths_of(&is_text_file).size() == 3);
  // A pattern that would match the others, too, is no help.
  folder.write("2.txt", "x");
  CHECK_THAT(error_of([&] { static_cast<void>(ps::dataset_listing(folder()).paths_of(&is_text_file)); }),
             contains("dataset(\"" + folder("2.txt") + "\")"));
}

TEST_CASE("source/dataset_format: the best of several fits, and what is said if there is none or more") {
  using ps::detail::best_format;
  using ps::detail::format_candidate;
  using fit = ps::format_fit;
  const dataset_folder folder;
  folder.write("x/y.txt", "z");
  const ps::dataset_listing there(folder());
  const auto best = [&](std::vector<format_candidate> all) { return best_format(there, all); };
  CHECK(best({{"a", fit::layout}, {"b", fit::description}, {"c", fit::content}}) == 1);
  CHECK(best({{"a", fit::none}, {"b", fit::none}, {"c", fit::layout}}) == 2);
  CHECK(best({{"a", fit::content}, {"b", fit::layout}, {"a", fit::content}}) ==
        2);  // the later one of a name
  const std::string two = error_of([&] {
    static_cast<void>(best({{"a", fit::content}, {"b", fit::content}, {"c", fit::none}}));
  });
  CHECK_THAT(
      two,
      contains(
          "this can be read as a and as b; found 1 folder, 'x'; choose, as in dataset(path, a_format{})"));
  const std::string none = error_of([&] {
    static_cast<void>(best({{"a", fit::none}, {"b", fit::none}, {"a", fit::none}}));
  });
  CHECK_THAT(none,
             contains("no dataset is recognised here; found 1 folder, 'x'; looked for a, b; if one of its "
                      "folders is the dataset, name it: \"" +
                      folder("x") + "\""));
  fs::remove_all(folder("x"));
  const ps::dataset_listing empty(folder());
  const std::array<format_candidate, 1> a{format_candidate{"a", fit::none}};
  CHECK_THAT(error_of([&] { static_cast<void>(best_format(empty, a)); }),
             contains("found nothing; looked for a [file " + folder()));
}

TEST_CASE("source/dataset_format: formats that were not looked for") {
  const auto said = [](std::string_view name, std::string_view bytes) {
    const dataset_folder folder;
    folder.write(name, bytes);
    return error_of([&] { static_cast<void>(ps::detail::best_format(ps::dataset_listing(folder()), {})); });
  };
  using namespace std::string_view_literals;
  CHECK_THAT(said("index.json", "{\"version\": 2, \"shards\": []}"),
             contains("this looks like mds: include <penstock/source/mds.hpp>, link penstock::json and give "
                      "dataset mds_format{}"));
  CHECK_THAT(said("index.json", "{\"chunks\": []}"), contains("litdata_format{}"));
  CHECK_THAT(said("_delta_log/0.json", "{}"), contains("delta_format{}"));
  CHECK_THAT(said("metadata/00000-0a1b.metadata.json", "{}"), contains("iceberg_format{}"));
  CHECK_THAT(said("metadata/more.json", "{}"), contains("if one of its folders is the dataset"));
  CHECK_THAT(said(".nv-meta/split.yaml", ""), contains("energon_format{}"));
  CHECK_THAT(said("x.pq", "PAR1"), contains("parquet_format{}"));
  CHECK_THAT(said("a.tfrecord-00000-of-00001", ""), contains("tfrecord_format{}"));
  CHECK_THAT(said("m.safetensors", "\x10\0\0\0\0\0\0\0{\"a\":1}"sv), contains("safetensors_rows_format{}"));
  CHECK_THAT(said("t-idx3-ubyte.gz", "\x1f\x8b\x08"), contains("idx_gz_format{}"));
  CHECK_THAT(said("train.bin", "xxxx"), contains("write raw_tokens<std::uint16_t>(path, window)"));
}

TEST_CASE("source/dataset_format: what cannot be listed") {
  const dataset_folder folder;
  const auto said = [](const std::string& path) {
    return error_of([&] { static_cast<void>(ps::dataset_listing{path}); });
  };
  CHECK_THAT(said(folder("nowhere")), contains("check the path"));
  CHECK_THAT(said(folder("*.tar")), contains("no file matches"));
  CHECK_THAT(said(""), contains("the path of the dataset is empty"));
  CHECK_THAT(said("s3://bucket/train-{0..9}.tar?signature=x"),
             contains("'s3://bucket/train-{0..9}.tar?...' is a URL, and a path was expected: include "
                      "<penstock/storage/s3.hpp>, link penstock::s3 and write dataset(s3(url))"));
  CHECK_THAT(said("https://host/a.tar"), contains("dataset(http(url))"));
  CHECK_THAT(said("https://host/a.tar?key=secret"), !contains("secret"));
  CHECK_THAT(said("gs://b/a.tar"),
             contains("is a URL, and a path was expected: give the source arrow_files"));
  CHECK_THAT(said("file:///a.tar"), contains("write its path"));
  CHECK_THAT(error_of([] { ps::detail::refuse_stored("x"); }), contains("cannot read x from this storage"));
  folder.write("closed/x", "y");
  if (::geteuid() == 0) return;  // root may list everything
  fs::permissions(folder("closed"), fs::perms::none);
  CHECK_THAT(said(folder("closed")), contains("the folder cannot be read"));
  fs::permissions(folder("closed"), fs::perms::owner_all);
}
