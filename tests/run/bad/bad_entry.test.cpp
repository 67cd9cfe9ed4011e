// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/bad/bad_entry.hpp>

#include <penstock/core/random.hpp>
#include <penstock/order/world.hpp>
#include <penstock/run/bad/bad_tally.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace bad_entry_test {

namespace ps = penstock;

namespace {

std::string refused(std::string_view line) {
  try {
    static_cast<void>(ps::bad_entry_from(line));
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::format);
    return e.what();
  }
  return "not refused";
}

/// A line as a run writes it, with a random choice of its fields.
std::string line_of(std::uint64_t seed, std::string name) {
  ps::rng random(seed, 0, 0, 0);
  const auto maybe = [&](std::string text) { return random.below(2) == 0 ? std::string() : text; };
  ps::error what(ps::errc::checksum, "number " + name);
  if (random.below(2) != 0) what.in_stage("stage " + name);
  if (random.below(2) != 0) what.at_offset(random());
  ps::bad_slot slot{0, {random(), random()}, what};
  if (random.below(2) != 0) slot.substitute = ps::position{0, random()};
  const auto place = [&] {
    ps::sample_place made;
    if (random.below(2) != 0) made.source = random();
    made.key = maybe(name);
    made.file = maybe("file of " + name);
    return made;
  };
  const ps::world part{.rank = random(), .size = ~std::uint64_t{0}};
  const ps::sample_place mine = place();
  return ps::ledger_line(slot, part, mine, slot.substitute ? place() : ps::sample_place());
}

}  // namespace

TEST_CASE("run/bad_entry: every line that a run writes is read") {
  ps::error what(ps::errc::format, "no\n\"array\"");
  what.in_stage("decode").in_file("a/b.tar").for_key("x\\y").at_offset(512);
  ps::bad_slot slot{0, {3, 17}, what};
  const ps::sample_place mine{117, "key", "file"}, other{105, "key", "file"};
  const auto skipped = ps::bad_entry_from(ps::ledger_line(slot, {.rank = 2, .size = 4}, mine, other));
  REQUIRE(skipped);
  const ps::bad_entry wanted{.rank = 2,
                             .epoch = 3,
                             .index = 17,
                             .source = 117,
                             .key = "x\\y",
                             .file = "a/b.tar",
                             .offset = 512,
                             .stage = "decode",
                             .code = "format",
                             .reason = "no\n\"array\""};
  CHECK(*skipped == wanted);
  slot.substitute = ps::position{3, 5};
  const auto replaced = ps::bad_entry_from(ps::ledger_line(slot, {.rank = 2, .size = 4}, mine, other));
  REQUIRE(replaced);
  CHECK(replaced->substitute == ps::bad_entry::substitute_place{5, 105, "key", "file"});

  // Arbitrary bytes in names, and any choice of fields; a truncated line is recognised wherever it
  // was cut.
  for (std::uint64_t i = 0; i < 300; ++i) {
    ps::rng random(i, 1, 0, 0);
    std::string name;
    for (std::uint64_t k = random.below(9); k != 0; --k) name += static_cast<char>(random.below(256));
    const std::string line = line_of(i, name);
    INFO(line);
    const auto made = ps::bad_entry_from(line);
    REQUIRE(made);
    CHECK(ps::bad_entry_from(line + " ") == made);
    CHECK(ps::detail::json_quoted(made->reason).find("number ") == 1);
    for (std::size_t cut = 0; cut < line.size(); ++cut)
      CHECK(ps::bad_entry_from(std::string_view(line).substr(0, cut)) == std::nullopt);
  }
}

TEST_CASE("run/bad_entry: any other line is refused with its place") {
  using penstock_test::contains;
  const std::string good =
      R"({"rank": 0, "epoch": 1, "index": 2, "code": "format", "reason": "r", "done": "skipped"})";
  REQUIRE(ps::bad_entry_from(good));
  CHECK_THAT(refused(good + "x"), contains("the end of the line") && contains("offset 87"));
  CHECK_THAT(refused("[1]"), contains("expected '{'") && contains("offset 0"));
  CHECK_THAT(refused(R"({"rang": 0})"), contains("the name \"rank\"") && contains("offset 1"));
  CHECK_THAT(refused(R"({"rank": -1, )"), contains("a number of 64 bits") && contains("offset 9"));
  CHECK_THAT(refused(R"({"rank": 18446744073709551616, )"), contains("a number of 64 bits"));
  CHECK_THAT(refused(R"({"rank": 0, "epoch": 1, "index": 2, "done": "lost"})"),
             contains("\"skipped\" or \"replaced\"") && contains("offset 44"));
  CHECK_THAT(refused(R"({"rank": 0, "epoch": 1, "index": 2, "done": "skipped", "substitute": {"index": 1}})"),
             contains("expected '}'"));
  CHECK_THAT(refused(R"({"rank": 0, "epoch": 1, "index": 2, "key": "\x", "done": "skipped"})"),
             contains("a character"));
  CHECK_THAT(refused(R"({"rank": 0, "epoch": 1, "index": 2, "key": "\u0xyz", "done": "skipped"})"),
             contains("a character"));
  CHECK_THAT(refused(R"({"rank": 0, "epoch": 1, "index": 2, "file": "f", "key": "k", "done": "skipped"})"),
             contains("the name \"done\""));
}

TEST_CASE("run/bad_entry: a file of entries, with truncated lines") {
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "bad.jsonl").string(), one = line_of(1, "one"), two = line_of(2, "two");
  std::ofstream(path, std::ios::binary) << one << '\n'
                                        << two.substr(0, 20) << '\n'
                                        << two << "\n\n"
                                        << one.substr(0, 30);
  const ps::bad_entries found = ps::read_bad_ledger(path);
  CHECK(found.cut == 2);
  REQUIRE(found.all.size() == 2);
  CHECK(found.all[0] == ps::bad_entry_from(one));
  CHECK(found.all[1] == ps::bad_entry_from(two));
  std::ofstream(path, std::ios::binary) << one << "\n{\"edited\"}\n";
  CHECK_THROWS_WITH(ps::read_bad_ledger(path), penstock_test::contains("bad.jsonl") &&
                                                   penstock_test::contains("not a line of a ledger") &&
                                                   penstock_test::contains(std::to_string(one.size() + 2)));
  CHECK_THROWS_WITH(ps::read_bad_ledger((folder / "no").string()), penstock_test::contains("check its name"));
  std::ofstream(path, std::ios::binary) << "";
  CHECK(ps::read_bad_ledger(path).all.empty());
}

}  // namespace bad_entry_test
