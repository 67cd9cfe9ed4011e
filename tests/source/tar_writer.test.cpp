// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/tar/tar_format.hpp>
#include <penstock/source/tar_writer.hpp>

#include "support/catch.hpp"
#include "support/external_program.hpp"
#include "support/temp_dir.hpp"

#include <penstock/source/webdataset.hpp>
#include <penstock/storage/memory_files.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using penstock::tar_writer;

/// A writer into memory, for tests of the bytes.
struct into_text {
  std::string* text;
  void operator()(penstock::bytes_view bytes) const { *text += penstock::text_of(bytes); }
};

std::string long_key(std::size_t n) {
  return std::string(n / 2, 'd') + "/" + std::string(n - n / 2 - 1, 'k');
}

void write_mixed(auto& out) {
  out.write("plain", {{"txt", "hello"}, {"cls", "7"}});
  out.write("folder/empty", {{"bin", ""}, {"left.jpg", std::string(512, 'x')}});
  out.write(long_key(120), {{"txt", "in a prefix"}});
  out.write(long_key(400), {{"txt", "in a pax header"}});
  out.write("one/" + std::string(150, 'n'), {{"txt", "name too long for ustar"}});
  out.write("umlaut-\xc3\xa4", {{"txt", "utf-8"}});
}

template <class Call>
std::string writer_problem(Call&& call) {
  try {
    call();
  } catch (const penstock::error& e) {
    CHECK(e.code() == penstock::errc::argument);
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("source/tar_writer: samples are read back as written") {
  std::string bytes;
  tar_writer out(into_text{&bytes});
  write_mixed(out);
  const auto shard = out.close();
  CHECK(shard.bytes == bytes.size());
  CHECK(bytes.size() % 10240 == 0);
  CHECK(shard.samples == 6);
  const penstock::webdataset data(penstock::memory_files().add("s.tar", bytes));
  CHECK(data.size() == 6);
  CHECK(data.manifest().shards()[0].content == shard.content);
  CHECK(data.manifest().shards()[0].payload == shard.payload);
  const auto reader = data.connect();
  CHECK(reader.key(1) == "folder/empty");
  CHECK(reader.key(2) == long_key(120));
  CHECK(reader.key(3) == long_key(400));
  decltype(data.connect())::worker worker;
  reader.evaluate({0, 3}, worker, [](const auto& s) {
    REQUIRE(s.size() == 1);
    CHECK(s.name(0) == "txt");
    CHECK(penstock::text_of(s.member(0).finish()) == "in a pax header");
  });
}

TEST_CASE("source/tar_writer: equal samples give equal bytes") {
  std::string first;
  std::string second;
  tar_writer a(into_text{&first});
  tar_writer b(into_text{&second});
  write_mixed(a);
  write_mixed(b);
  a.close();
  b.close();
  CHECK(first == second);
}

TEST_CASE("source/tar_writer: names of every length are kept, in the header, its prefix or pax") {
  std::string bytes;
  tar_writer out(into_text{&bytes});
  std::vector<std::string> keys;
  for (std::size_t n = 90; n < 300; ++n) {
    keys.push_back(long_key(n));
    keys.push_back(std::string(n, 'k'));
    keys.push_back("d/" + std::string(n, 'k'));
    keys.push_back(std::string(n, 'd') + "/k");
  }
  for (const std::string& key : keys) out.write(key, {{"t", key}});
  out.close();
  const penstock::webdataset data(penstock::memory_files().add("s.tar", bytes));
  const auto reader = data.connect();
  REQUIRE(data.size() == keys.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) wrong += reader.key(i) == keys[i] ? 0 : 1;
  CHECK(wrong == 0);
}

TEST_CASE("source/tar_writer: sizes from 8 GiB on are in a pax header") {
  penstock::buffer header;
  const penstock::tar_writer_options options;
  const penstock::detail::tar_member_facts facts{options.mode, options.mtime, options.owner, options.group};
  penstock::detail::append_tar_headers(header, "a.bin", (std::uint64_t{1} << 33) - 1, facts);
  CHECK(header.size() == 512);
  CHECK(penstock::detail::tar::number_field(header.view(), 124, 12) == (std::uint64_t{1} << 33) - 1);
  header.clear();
  penstock::detail::append_tar_headers(header, "a.bin", std::uint64_t{1} << 33, facts);
  REQUIRE(header.size() == 3 * 512);
  penstock::detail::tar::pax_records records;
  records.read(header.view().subspan(512, 512));
  CHECK(records.size == std::uint64_t{1} << 33);
}

TEST_CASE("source/tar_writer: the file appears when it is complete, or not at all") {
  const penstock_test::temp_dir dir;
  {
    tar_writer out((dir / "s.tar").string());
    out.write("a", {{"txt", "x"}});
    CHECK_FALSE(fs::exists(dir / "s.tar"));
  }
  CHECK(fs::is_empty(dir.path()));
  tar_writer out((dir / "s.tar").string(), {.index = true});
  out.write("a", {{"txt", "x"}});
  out.close();
  CHECK(fs::exists(dir / "s.tar"));
  CHECK(penstock::webdataset(dir / "s.tar", {.index = penstock::index_policy::require}).size() == 1);
  CHECK_THROWS_AS(out.write("b", {{"txt", "x"}}), penstock::error);
  CHECK_THROWS_AS(out.close(), penstock::error);
  CHECK_THROWS_WITH(tar_writer((dir / "none" / "s.tar").string()),
                    penstock_test::contains("cannot create") && penstock_test::contains("No such file"));
}

TEST_CASE(
    "source/tar_writer: names that would be read back differently are refused, and nothing is written") {
  std::string bytes;
  tar_writer out(into_text{&bytes});
  using penstock_test::contains;
  CHECK_THAT(writer_problem([&] { out.write("a.b", {{"txt", "x"}}); }), contains("would not be read back"));
  CHECK_THAT(writer_problem([&] { out.write("", {{"txt", "x"}}); }), contains("would not be read back"));
  CHECK_THAT(writer_problem([&] { out.write("a", {{"x/y", "x"}}); }), contains("would not be read back"));
  CHECK_THAT(writer_problem([&] { out.write("/a", {{"txt", "x"}}); }), contains("absolute"));
  CHECK_THAT(writer_problem([&] { out.write(std::string("a\0b", 3), {{"txt", "x"}}); }), contains("NUL"));
  CHECK_THAT(writer_problem([&] { out.write("__meta__/a", {{"txt", "x"}}); }), contains("skipped"));
  CHECK_THAT(writer_problem([&] { out.write("a", {{"JPG", "x"}}); }), contains("upper-case"));
  CHECK_THAT(writer_problem([&] {
               out.write("a", {{"txt", "x"}, {"txt", "y"}});
             }),
             contains("is given twice"));
  CHECK_THAT(writer_problem([&] { out.write("a", {}); }), contains("at least one member"));
  CHECK(bytes.empty());
  out.write("a", {{"txt", "x"}});
  CHECK_THAT(writer_problem([&] { out.write("a", {{"cls", "x"}}); }), contains("same key"));
  out.write("b", {{"txt", "x"}});
  CHECK(out.close().samples == 2);
}

TEST_CASE("source/tar_writer: GNU tar, Python and WebDataset can read its output") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "s.tar").string();
  tar_writer out(path);
  write_mixed(out);
  out.close();
  const std::vector<std::string> names{"plain.txt",
                                       "plain.cls",
                                       "folder/empty.bin",
                                       "folder/empty.left.jpg",
                                       long_key(120) + ".txt",
                                       long_key(400) + ".txt",
                                       "one/" + std::string(150, 'n') + ".txt",
                                       "umlaut-\xc3\xa4.txt"};
  std::string lines;
  for (const std::string& name : names) lines += name + "\n";
  if (penstock_test::have_program("tar", "tar --version | grep GNU")) {
    CHECK(penstock_test::run_program("tar --quoting-style=literal -tf " + path).output == lines);
    CHECK(penstock_test::run_program("tar -xOf " + path + " plain.txt folder/empty.left.jpg").output ==
          "hello" + std::string(512, 'x'));
  }
  if (penstock_test::have_program("python3", "python3 -c 'import tarfile'")) {
    std::ofstream(dir / "list.py") << "import sys, tarfile\n"
                                      "for m in tarfile.open(sys.argv[1]):\n"
                                      "    assert m.isreg() and m.mode == 0o444 and m.mtime == 0\n"
                                      "    sys.stdout.buffer.write(m.name.encode('utf-8') + b'\\n')\n";
    CHECK(penstock_test::run_program("python3 " + (dir / "list.py").string() + " " + path).output == lines);
  }
  const std::string python = penstock_test::peer_python();
  if (penstock_test::have_program("Python's webdataset", python + " -c 'import webdataset'")) {
    std::ofstream(dir / "wds.py")
        << "import sys, webdataset\n"
           "for s in webdataset.WebDataset(sys.argv[1], shardshuffle=False):\n"
           "    print(s['__key__'].encode('utf-8'), *sorted(k for k in s if k[0] != '_'))\n";
    CHECK_THAT(penstock_test::run_program(python + " " + (dir / "wds.py").string() + " " + path).output,
               penstock_test::contains("b'folder/empty' bin left.jpg\n") &&
                   penstock_test::contains("b'plain' cls txt\n"));
  }
}
