// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/directory.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#include <penstock/codec/text.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

static_assert(penstock::indexed_source<penstock::directory> && penstock::blob<penstock::detail::folder_blob>);

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

namespace directory_test {

/// Key, label and bytes of a sample.
using row = std::tuple<std::string, std::int64_t, std::string>;

void write(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}
std::vector<row> all_of(const ps::directory& source) {
  std::vector<row> all;
  const auto reader = source.connect();
  ps::directory::reader::worker worker;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& sample) {
      const auto& blob = ps::get<"bytes">(sample);
      std::string bytes(static_cast<std::size_t>(blob.size()), '?');
      blob.read_into(std::as_writable_bytes(std::span(bytes)));
      CHECK(ps::text_of(blob.finish()) == bytes);
      CHECK(ps::text_of(blob.finish()) == bytes);
      CHECK(reader.key(i) == source.path(i));
      all.emplace_back(reader.key(i), ps::get<"label">(sample), bytes);
    });
  return all;
}
std::vector<std::string> names(const ps::directory& source) {
  return {source.classes().begin(), source.classes().end()};
}
codec_test::thrown refusal(const std::filesystem::path& path, ps::directory_options options = {}) {
  return caught([&] { static_cast<void>(ps::directory(path.string(), options)); });
}

}  // namespace directory_test

TEST_CASE("source/directory: files at any depth, sorted by their bytes, labelled by the first folder") {
  using namespace directory_test;
  const penstock_test::temp_dir dir;
  write(dir / "b/2.txt", "b2");
  write(dir / "b/10.txt", "b10");
  write(dir / "a-b/x", "dash");
  write(dir / "a/deep/er/y.bin", "deep");
  write(dir / "a/z", "");
  write(dir / "\xc3\xa4/u", "umlaut");
  write(dir / "Z/q", "capital");
  write(dir / ".hidden/x", "no");
  write(dir / "a/.hidden", "no");
  write(dir / "a/deep/.no/x", "no");
  std::filesystem::create_directory(dir / "empty");
  const ps::directory source(dir.path().string());
  CHECK(all_of(source) == std::vector<row>{{"Z/q", 0, "capital"},
                                           {"a-b/x", 2, "dash"},
                                           {"a/deep/er/y.bin", 1, "deep"},
                                           {"a/z", 1, ""},
                                           {"b/10.txt", 3, "b10"},
                                           {"b/2.txt", 3, "b2"},
                                           {"\xc3\xa4/u", 5, "umlaut"}});
  CHECK(names(source) == std::vector<std::string>{"Z", "a", "a-b", "b", "empty", "\xc3\xa4"});
  CHECK(source.starts() == nullptr);
  CHECK_THAT(source.describe(), contains("7 files, 6 classes, 26 bytes"));
  CHECK(source.connect().bytes_per_sample() == 26 / 7);
  CHECK(all_of(ps::directory(dir.path().string() + "//")) == all_of(source));
  source.connect().will_need(3);
  source.connect().will_need(7);
  CHECK(caught([&] { static_cast<void>(source.connect().key(7)); }).code == ps::errc::argument);
}

TEST_CASE("source/directory: extensions can be chosen, in any case and with or without a dot") {
  using namespace directory_test;
  const penstock_test::temp_dir dir;
  for (const char* const name : {"c/a.JPG", "c/b.jpeg", "c/c.png", "c/jpg", "c/d.jpg.txt", "README.md"})
    write(dir / name, name);
  const auto keys = [&](ps::directory_options options) {
    std::vector<std::string> all;
    for (const auto& [key, label, bytes] : all_of(ps::directory(dir.path().string(), options)))
      all.push_back(key);
    return all;
  };
  CHECK(keys({{"jpg", ".JPEG"}}) == std::vector<std::string>{"c/a.JPG", "c/b.jpeg"});
  CHECK(keys({{"txt"}}) == std::vector<std::string>{"c/d.jpg.txt"});
  CHECK(ps::directory(dir.path().string(), {{"png"}}).classes()[0] == "c");
}

TEST_CASE("source/directory: a folder with only files has no classes, and files beside classes are refused") {
  using namespace directory_test;
  const penstock_test::temp_dir dir;
  write(dir / "y", "2");
  write(dir / "x", "1");
  const ps::directory flat(dir.path().string());
  CHECK(all_of(flat) == std::vector<row>{{"x", -1, "1"}, {"y", -1, "2"}});
  CHECK(flat.classes().empty());
  write(dir / "class/z", "3");
  const auto mixed = refusal(dir.path());
  CHECK(mixed.code == ps::errc::format);
  CHECK_THAT(mixed.line, contains("has no class") && contains("/x]"));
}

TEST_CASE("source/directory: links are followed, but not in circles") {
  using namespace directory_test;
  const penstock_test::temp_dir dir;
  write(dir / "data/a/1.txt", "one");
  write(dir / "elsewhere/2.txt", "two");
  std::filesystem::create_directory_symlink(dir / "elsewhere", dir / "data/b");
  std::filesystem::create_symlink(dir / "data/a/1.txt", dir / "data/b/3.txt");
  std::filesystem::create_directory_symlink("..", dir / "data/a/up");
  std::filesystem::create_directory_symlink(".", dir / "data/a/self");
  std::filesystem::create_directory_symlink(dir / "data", dir / "elsewhere/back");
  const ps::directory source((dir / "data").string());
  CHECK(all_of(source) ==
        std::vector<row>{{"a/1.txt", 0, "one"}, {"b/2.txt", 1, "two"}, {"b/3.txt", 1, "one"}});
  // two folders that hold links to each other
  write(dir / "pair/p/1", "p");
  write(dir / "pair/q/1", "q");
  std::filesystem::create_directory_symlink("../q", dir / "pair/p/q");
  std::filesystem::create_directory_symlink("../p", dir / "pair/q/p");
  CHECK(all_of(ps::directory((dir / "pair").string())) ==
        std::vector<row>{{"p/1", 0, "p"}, {"p/q/1", 0, "q"}, {"q/1", 1, "q"}, {"q/p/1", 1, "p"}});
  // entries that are neither files nor folders are skipped; a dangling link is an error if its name
  // is asked for
  REQUIRE(::mkfifo((dir / "data/a/pipe").c_str(), 0600) == 0);
  CHECK(ps::directory((dir / "data").string()).size() == 3);
  std::filesystem::create_symlink("nowhere", dir / "data/a/gone.txt");
  const auto gone = refusal(dir / "data");
  CHECK(gone.code == ps::errc::io);
  CHECK_THAT(gone.line, contains("a/gone.txt") && contains("cannot be looked at"));
  write(dir / "data/a/4.bin", "four");
  CHECK(ps::directory((dir / "data").string(), {{"bin"}}).size() == 1);
}

TEST_CASE("source/directory: links that multiply are refused before they take all time and memory") {
  using namespace directory_test;
  const penstock_test::temp_dir dir;
  const auto level = [&](int n) { return dir / "data" / ("l" + std::to_string(n)); };
  write(level(40) / "1.txt", "one");
  for (int n = 39; n >= 0; --n) {
    std::filesystem::create_directories(level(n));
    for (const char* const name : {"a", "b"})
      std::filesystem::create_directory_symlink("../l" + std::to_string(n + 1), level(n) / name);
  }
  const auto refused = refusal(dir / "data");
  CHECK(refused.code == ps::errc::limit);
  CHECK_THAT(refused.line, contains("in more than 1000 ways") && contains("data/l"));
  // many links to one folder are no harm
  write(dir / "many/first/1.txt", "one");
  for (int i = 0; i < 300; ++i)
    std::filesystem::create_directory_symlink("first", dir / "many" / ("again" + std::to_string(i)));
  CHECK(ps::directory((dir / "many").string()).size() == 301);
}

TEST_CASE("source/directory: a folder that is missing, not a folder or empty is an error") {
  using namespace directory_test;
  const penstock_test::temp_dir dir;
  const auto missing = refusal(dir / "missing");
  CHECK(missing.code == ps::errc::io);
  CHECK_THAT(missing.line, contains("missing") && contains("cannot be opened"));
  write(dir / "file", "x");
  CHECK_THAT(refusal(dir / "file").line, contains("not a folder"));
  std::filesystem::create_directories(dir / "empty/class");
  const auto empty = refusal(dir / "empty");
  CHECK(empty.code == ps::errc::missing);
  CHECK_THAT(empty.line, contains("no file below this folder;") && contains("empty"));
  CHECK_THAT(refusal(dir / "empty", {{"jpg", "PNG"}}).line, contains("that ends in .jpg or .png"));
  if (::geteuid() == 0) {
    WARN("run by root, who may read every folder: unreadable folders are not tested");
    return;
  }
  std::filesystem::create_directories(dir / "closed/class");
  std::filesystem::permissions(dir / "closed/class", std::filesystem::perms::none);
  const auto closed = refusal(dir / "closed");
  CHECK(closed.code == ps::errc::io);
  CHECK_THAT(closed.line, contains("closed/class") && contains("cannot be opened"));
  std::filesystem::permissions(dir / "closed/class", std::filesystem::perms::owner_all);
}

TEST_CASE(
    "source/directory: the fingerprint covers paths, sizes and classes, but not the folder's location") {
  using namespace directory_test;
  const penstock_test::temp_dir dir;
  const auto mark = [&](const std::string& name) {
    return ps::directory((dir / name).string()).fingerprint();
  };
  for (const char* const name : {"1", "2", "3", "4", "5"}) {
    write(dir / name / "a/x", "xx");
    write(dir / name / "b/y", "yy");
  }
  CHECK(mark("1") == mark("2"));
  write(dir / "2/a/x", "xxx");
  CHECK(mark("1") != mark("2"));
  write(dir / "3/b/z", "");
  CHECK(mark("1") != mark("3"));
  std::filesystem::create_directory(dir / "4/aa");
  CHECK(mark("1") != mark("4"));
  std::filesystem::rename(dir / "5/a", dir / "5/c");
  CHECK(mark("1") != mark("5"));
}

TEST_CASE("source/directory: a file that has changed or disappeared is an io error that names it") {
  using namespace directory_test;
  const penstock_test::temp_dir dir;
  write(dir / "a/x", "xx");
  write(dir / "a/y", "yy");
  const ps::directory source(dir.path().string());
  write(dir / "a/x", "longer");
  std::filesystem::remove(dir / "a/y");
  ps::directory::reader::worker worker;
  const auto at = [&](std::uint64_t i) {
    return caught([&] {
      source.connect().evaluate(
          {0, i}, worker, [](const auto& sample) { static_cast<void>(ps::get<"bytes">(sample).finish()); });
    });
  };
  CHECK(at(0).code == ps::errc::io);
  CHECK_THAT(at(0).line, contains("had 2 bytes") && contains("has 6 now") && contains("key a/x"));
  CHECK(at(1).code == ps::errc::io);
  CHECK_THAT(at(1).line, contains("cannot be opened") && contains("a/y"));
  const auto behind = caught([&] {
    source.connect().evaluate({0, 0}, worker, [](const auto&) { throw ps::error(ps::errc::format, "no"); });
  });
  CHECK_THAT(behind.line, contains("a/x") && contains("key a/x"));
  const auto wrong = caught([&] {
    source.connect().evaluate({0, 0}, worker, [](const auto& sample) {
      std::byte one{};
      ps::get<"bytes">(sample).read_into({&one, 1});
    });
  });
  CHECK(wrong.code == ps::errc::argument);
}

TEST_CASE("source/directory: samples go through a pipeline, and reading them allocates nothing") {
  using namespace directory_test;
  const penstock_test::temp_dir dir;
  for (int i = 0; i < 40; ++i)
    write(dir / (std::to_string(i % 3)) / std::to_string(i),
          std::string(10, static_cast<char>('a' + i % 26)));
  const ps::directory source(dir.path().string());
  const auto plan = source | ps::decode<ps::field<"bytes", ps::text>> | ps::shuffle(ps::seed(1)) |
                    ps::batch(8, ps::collate<"bytes">(ps::ragged));
  std::int64_t labels = 0;
  std::size_t letters = 0;
  for (auto&& b : (plan | ps::workers(2)).epoch(0)) {
    for (const std::int64_t label : get<"label">(b)) labels += label;
    letters += get<"bytes">(b).values().size();
  }
  CHECK(letters == 400);
  CHECK(labels == 13 + 2 * 13);
  const auto stacked = source | ps::batch(8);
  std::size_t bytes = 0;
  for (auto&& b : (stacked | ps::workers(1)).epoch(0)) bytes += get<"bytes">(b).values().size();
  CHECK(bytes == 400);

  const auto reader = source.connect();
  ps::directory::reader::worker worker;
  std::size_t sum = 0;
  const auto all = [&] {
    for (std::uint64_t i = 0; i < source.size(); ++i)
      reader.evaluate({0, i}, worker,
                      [&](const auto& sample) { sum += ps::get<"bytes">(sample).finish().size(); });
  };
  all();
  CHECK(penstock_test::allocations_of(all) == 0);
  CHECK(sum == 800);
}

TEST_CASE("source/directory: a folder of real files") {
  using namespace directory_test;
  const auto folder = penstock_test::test_data("jpeg");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no jpeg: real files are not read");
    return;
  }
  const ps::directory source(folder->string());
  std::size_t expected = 0;
  codec_test::each_file(*folder, [&](const std::string&, const codec_test::byte_vector&) { ++expected; });
  CHECK(source.size() == expected);
  CHECK(source.classes().size() > 1);
  for (const auto& [key, label, bytes] : all_of(source)) {
    CHECK(key.starts_with(source.classes()[static_cast<std::size_t>(label)] + "/"));
    CHECK(bytes.size() == std::filesystem::file_size(*folder / key));
  }
}
