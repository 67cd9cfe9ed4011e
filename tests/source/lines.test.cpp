// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/lines.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/faults.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#include <penstock/core/random.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/storage/memory_files.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

static_assert(penstock::indexed_source<penstock::line_source<penstock::mapped_file>>);

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

namespace lines_test {

std::string written(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}
template <class Source>
std::vector<std::string> all_of(const Source& source) {
  std::vector<std::string> all;
  const auto reader = source.connect();
  typename Source::reader::worker worker;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker, [&](std::string_view text) { all.emplace_back(text); });
  // and each line alone, as if it were the first
  for (std::uint64_t i = 0; i < source.size(); ++i) {
    typename Source::reader::worker fresh;
    std::string text;
    reader.evaluate({0, i}, fresh, [&](std::string_view found) { text = found; });
    if (text != all[static_cast<std::size_t>(i)]) FAIL("line " << i << " differs when it is read alone");
  }
  return all;
}
/// A storage whose bytes turn out to be lost, like those of a mapped file that was cut off.
struct lost_storage {
  ps::memory_files files;

  struct session : ps::memory_files::session {
    explicit session(ps::memory_files::session good) : ps::memory_files::session(std::move(good)) {}
    void confirm(ps::object_id) const { throw ps::error(ps::errc::io, "lost"); }
  };
  [[nodiscard]] decltype(auto) names() const { return files.names(); }
  [[nodiscard]] session connect() const { return session(files.connect()); }
};

/// The lines as the standard library splits a text; a trailing "\r" is kept.
std::vector<std::string> expected(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string found; std::getline(in, found);) {
    if (!in.eof() && found.ends_with('\r')) found.pop_back();
    all.push_back(found);
  }
  return all;
}

}  // namespace lines_test

TEST_CASE("source/lines: line ends of both kinds, and ends of files") {
  using namespace lines_test;
  using list = std::vector<std::string>;
  const auto of = [](std::string_view text) { return all_of(ps::lines(ps::memory_files().add("x", text))); };
  CHECK(of("a\nbc\n") == list{"a", "bc"});
  CHECK(of("a\nbc") == list{"a", "bc"});
  CHECK(of("a\r\nbc\r\n") == list{"a", "bc"});
  CHECK(of("\n") == list{""});
  CHECK(of("\r\n\r\n") == list{"", ""});
  CHECK(of("\n\na\n\n") == list{"", "", "a", ""});
  CHECK(of("a\rb\n") == list{"a\rb"});
  CHECK(of("a\r\r\nb\r") == list{"a\r", "b\r"});
  CHECK(of(std::string_view("\0\n\xff", 3)) == list{std::string(1, '\0'), "\xff"});
}

TEST_CASE("source/lines: blank lines are no samples in JSON lines, and keys keep the lines' numbers") {
  using namespace lines_test;
  using list = std::vector<std::string>;
  const auto of = [](std::string_view name, ps::lines_options options = {}) {
    return all_of(ps::lines(ps::memory_files().add(name, "\na\n\r\n  b \n \t\n\nc\n   "), options));
  };
  const list all{"", "a", "", "  b ", " \t", "", "c", "   "}, some{"a", "  b ", "c"};
  CHECK(of("x.txt") == all);
  CHECK(of("x.jsonl") == some);
  CHECK(of("x.ndjson") == some);
  CHECK(of("x.json") == some);
  CHECK(of("x.jsonl.gz.penstock-unpacked") == some);
  CHECK(of("jsonl") == all);
  CHECK(of("x.jsonl", {.skip_blank = false}) == all);
  CHECK(of("x.txt", {.skip_blank = true}) == some);
  const auto source = ps::lines(penstock_test::fixture("reports/blank.jsonl").string());
  CHECK(source.size() == 3);
  CHECK_THAT(source.connect().key(0), contains("blank.jsonl:1"));
  CHECK_THAT(source.connect().key(1), contains("blank.jsonl:3"));
  CHECK_THAT(source.connect().key(2), contains("blank.jsonl:5"));
  CHECK_THAT(source.describe(), contains("3 lines, 3 blank ones left out"));
  CHECK_THAT(caught([] { (void)ps::lines(ps::memory_files().add("x.jsonl", "\n  \n")); }).line,
             contains("blank lines alone"));
}

TEST_CASE("source/lines: blank lines among more lines than one table entry covers") {
  using namespace lines_test;
  ps::rng random(5, 5, 5);
  for (int round = 0; round < 20; ++round) {
    std::string text;
    std::vector<std::string> want;
    std::vector<std::uint64_t> numbers;
    const bool late = round % 2 == 0;  // the first blank line comes when there are entries
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      if (random.chance(0.3) && (!late || i > 9'000)) {
        text += random.chance(0.5) ? "\n" : " \t\r\n";
      } else {
        want.push_back(std::to_string(random.below(100)));
        numbers.push_back(i + 1);
        text += want.back() + "\n";
      }
    }
    const auto source = ps::lines(ps::memory_files().add("x", text), {.skip_blank = true});
    REQUIRE(all_of(source) == want);
    const auto reader = source.connect();
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t index = random.below(source.size());
      REQUIRE(reader.key(index) == "x:" + std::to_string(numbers[static_cast<std::size_t>(index)]));
    }
  }
}

TEST_CASE("source/lines: a list of paths, as unpacked returns it") {
  using namespace lines_test;
  const penstock_test::temp_dir dir;
  const std::string first = written(dir / "a.txt", "one\n"), second = written(dir / "b.txt", "two\n");
  const std::vector<std::string> want{"two", "one"};
  CHECK(all_of(ps::lines(std::vector<std::string>{second, first})) == want);
  CHECK(all_of(ps::lines({second.c_str(), first.c_str()})) == want);
}

TEST_CASE("source/lines: random texts, of fewer and more lines than one table entry covers") {
  using namespace lines_test;
  ps::rng random(1, 2, 3);
  for (int round = 0; round < 60; ++round) {
    ps::memory_files memory;
    std::vector<std::string> want;
    const std::uint64_t kinds = 2 + random.below(20);
    for (int f = 0; f < 3; ++f) {
      std::string text;
      for (std::uint64_t n = random.below(round < 30 ? 20 : 3000); n > 0; --n) {
        const std::uint64_t kind = random.below(kinds);
        text += kind == 0 ? "\n" : kind == 1 ? "\r\n" : std::string(1, static_cast<char>('a' + kind));
      }
      memory.add("f" + std::to_string(f), text);
      const auto some = expected(text);
      want.insert(want.end(), some.begin(), some.end());
    }
    if (want.empty()) continue;
    const auto source = ps::lines(memory);
    REQUIRE(all_of(source) == want);
    const auto reader = source.connect();
    decltype(source)::reader::worker worker;
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t index = random.below(source.size());
      reader.evaluate({0, index}, worker,
                      [&](std::string_view text) { REQUIRE(text == want[static_cast<std::size_t>(index)]); });
      reader.ranges(index, penstock::detail::hint_sink{});
    }
  }
}

TEST_CASE("source/lines: files by a pattern are one dataset, and lines are views of the mapping") {
  using namespace lines_test;
  const penstock_test::temp_dir dir;
  written(dir / "0.txt", "zero\none\n");
  written(dir / "1.txt", "");
  written(dir / "2.txt", "two\r\nthree");
  const auto source = ps::lines((dir / "{0..2}.txt").string());
  CHECK(all_of(source) == std::vector<std::string>{"zero", "one", "two", "three"});
  CHECK(*source.starts() == std::vector<std::uint64_t>{0, 2, 4});
  CHECK_THAT(source.describe(), contains("3 files, 19 bytes): 4 lines"));
  CHECK_THAT(source.connect().key(3), contains("2.txt:2"));
  CHECK(source.connect().bytes_per_sample() == 4);
  source.connect().ranges(99, penstock::detail::hint_sink{});
  const auto reader = source.connect();
  decltype(source)::reader::worker worker;
  const char* first = nullptr;
  reader.evaluate({0, 2}, worker, [&](std::string_view text) { first = text.data(); });
  reader.evaluate({0, 3}, worker, [&](std::string_view text) { CHECK(text.data() == first + 5); });
  CHECK(caught([&] { reader.evaluate({0, 4}, worker, [](std::string_view) {}); }).code == ps::errc::argument);
}

TEST_CASE("source/lines: the table is small, and reading allocates nothing") {
  using namespace lines_test;
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i) + "\n";
  const ps::detail::line_table table(text);
  CHECK(table.count == 10'000);
  CHECK(table.group == 64);
  CHECK(table.begins.capacity() == 157);
  // long lines have an entry each, so that none is skipped to reach another
  const ps::detail::line_table sparse([] {
    std::string long_lines;
    for (int i = 0; i < 400; ++i) long_lines += std::string(5000, 'x') + "\n";
    return long_lines;
  }());
  CHECK(sparse.group == 1);
  CHECK(sparse.begins.capacity() == 400);
  const auto source = ps::lines(ps::memory_files().add("x", text));
  const auto reader = source.connect();
  decltype(source)::reader::worker worker;
  std::size_t sum = 0;
  CHECK(penstock_test::allocations_of([&] {
          for (std::uint64_t i = 0; i < source.size(); ++i)
            reader.evaluate({0, i * 7919 % source.size()}, worker,
                            [&](std::string_view found) { sum += found.size(); });
        }) == 0);
  CHECK(sum == text.size() - 10'000);
}

TEST_CASE("source/lines: lines go through a pipeline on any number of workers") {
  using namespace lines_test;
  std::string text;
  for (int i = 0; i < 500; ++i) text += std::to_string(i) + (i % 3 == 0 ? "\r\n" : "\n");
  const auto numbers = ps::lines(ps::memory_files().add("x", text)) |
                       ps::map([](std::string_view found) { return std::stoi(std::string(found)); });
  CHECK(penstock_test::values_of(numbers | ps::batch(50), 3) == penstock_test::first_ints(500));
  auto shuffled = penstock_test::values_of(numbers | ps::shuffle(ps::seed(3)) | ps::batch(50), 3);
  CHECK(shuffled != penstock_test::first_ints(500));
  std::sort(shuffled.begin(), shuffled.end());
  CHECK(shuffled == penstock_test::first_ints(500));
}

TEST_CASE("source/lines: a file that cannot be read or has changed is an error that names it") {
  using namespace lines_test;
  const penstock_test::temp_dir dir;
  const std::string empty = written(dir / "empty.txt", "");
  const auto none = caught([&] { static_cast<void>(ps::lines(empty)); });
  CHECK(none.code == ps::errc::argument);
  CHECK_THAT(none.line, contains("empty.txt") && contains("no line"));
  const auto missing = caught([&] { static_cast<void>(ps::lines((dir / "no.txt").string())); });
  CHECK(missing.code == ps::errc::io);
  CHECK_THAT(missing.line, contains("no.txt"));

  const std::string path = written(dir / "x.txt", "one\ntwo\n");
  const auto source = ps::lines(path);
  const std::uint64_t mark = source.fingerprint();
  decltype(source)::reader::worker worker;
  const auto behind = caught([&] {
    source.connect().evaluate({0, 1}, worker,
                              [](std::string_view) { throw ps::error(ps::errc::format, "no"); });
  });
  CHECK_THAT(behind.line, contains("x.txt") && contains("x.txt:2") && contains("offset 4"));
  const auto codec = caught([&] {
    source.connect().evaluate({0, 1}, worker,
                              [](std::string_view) { throw ps::error(ps::errc::format, "no").at_offset(2); });
  });
  CHECK_THAT(codec.line, contains("no, at byte 2 of the line") && contains("offset 4"));
  written(dir / "x.txt", "one\nthree\n");
  const auto changed = caught([&] { source.connect().evaluate({0, 0}, worker, [](std::string_view) {}); });
  CHECK(changed.code == ps::errc::io);
  CHECK_THAT(changed.line, contains("x.txt") && contains("was changed"));
  CHECK(ps::lines(path).fingerprint() != mark);
}

TEST_CASE("source/lines: a compressed file is an error that says how to read it") {
  using namespace lines_test;
  const penstock_test::temp_dir dir;
  const auto refused = [&](std::string_view begin) {
    const std::string path = written(dir / "x.txt", std::string(begin) + "and\nmore\n");
    return caught([&] { static_cast<void>(ps::lines(path)); });
  };
  const auto gzip = refused("\x1f\x8b\x08");
  CHECK(gzip.code == ps::errc::format);
  CHECK_THAT(gzip.line, contains("x.txt") && contains("compressed with gzip") &&
                            contains("lines(mapped_file(unpacked<unpack_gzip>(...)))"));
  CHECK_THAT(refused("\x28\xb5\x2f\xfd").line, contains("unpack_zstd"));
  CHECK_THAT(refused("BZh91AY&SY").line, contains("unpack_bzip2"));
  CHECK_THAT(refused("LZIP\1").line, contains("lzip, for which there is no unpacker"));
  for (const std::string_view text : {"BZhang wrote ", "LZIP is a program ", "BZh"}) {
    const auto source = ps::lines(written(dir / "y.txt", std::string(text) + "and\nmore\n"));
    CHECK(all_of(source) == std::vector<std::string>{std::string(text) + "and", "more"});
  }
}

TEST_CASE("source/lines: a file that is cut off while its lines are read is an error") {
  if (!penstock_test::faults_have_addresses()) return;
  using namespace lines_test;
  const penstock_test::temp_dir dir;
  std::string content;
  for (int i = 0; i < 20'000; ++i) content += "a line of twenty-six bytes\n";
  const auto path = written(dir / "x.txt", content);
  const auto source = ps::lines(path);
  const auto reader = source.connect();
  decltype(source.connect())::worker worker;
  const auto cut = caught([&] {
    reader.evaluate({0, 15'000}, worker, [&](std::string_view line) {
      std::filesystem::resize_file(path, 100);
      // would kill the process without a guard
      CHECK(*static_cast<const volatile char*>(line.data()) == '\0');
    });
  });
  CHECK(cut.code == ps::errc::io);
  CHECK_THAT(cut.line, contains("x.txt") && contains("cut off or changed") && contains("offset"));
}

TEST_CASE("source/lines: a file that is cut off while the plan is made is an error") {
  using namespace lines_test;
  const lost_storage lost{ps::memory_files().add("x.txt", codec_test::to_vector(std::string_view("a\nb\n")))};
  const auto cut = caught([&] { static_cast<void>(ps::lines(lost)); });
  CHECK(cut.code == ps::errc::io);
  CHECK_THAT(cut.line, contains("lost"));
}

TEST_CASE("source/lines: real texts") {
  using namespace lines_test;
  const auto folder = penstock_test::test_data("tokens");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no tokens: real texts are not read");
    return;
  }
  std::size_t read = 0;
  for (const char* const name : {"text/input.txt", "text/enwik8_first100.txt", "jsonl/arxiv.jsonl"}) {
    const std::filesystem::path path = *folder / name;
    if (!std::filesystem::exists(path)) continue;
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    CAPTURE(name);
    CHECK(all_of(ps::lines(path.string())) == expected(text.str()));
    ++read;
  }
  CHECK(read > 0);
}
