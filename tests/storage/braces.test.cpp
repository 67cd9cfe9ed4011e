// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/braces.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/external_program.hpp"

#include <penstock/core/error.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace {

using brace_names = std::vector<std::string>;

penstock::errc brace_problem(const std::string& pattern) {
  try {
    (void)penstock::expand_braces(pattern);
  } catch (const penstock::error& e) {
    return e.code();
  }
  return penstock::errc::state;
}

}  // namespace

TEST_CASE("storage/braces: ranges keep their padding, may have steps and may descend") {
  using penstock::expand_braces;
  CHECK(expand_braces("plain.tar") == brace_names{"plain.tar"});
  CHECK(expand_braces("") == brace_names{""});
  CHECK(expand_braces("x-{0..3}.tar") == brace_names{"x-0.tar", "x-1.tar", "x-2.tar", "x-3.tar"});
  CHECK(expand_braces("{08..11}") == brace_names{"08", "09", "10", "11"});
  CHECK(expand_braces("{8..011}") == brace_names{"008", "009", "010", "011"});
  CHECK(expand_braces("{0..10..5}") == brace_names{"0", "5", "10"});
  CHECK(expand_braces("{10..0..-5}") == brace_names{"10", "5", "0"});
  CHECK(expand_braces("{3..1}") == brace_names{"3", "2", "1"});
  CHECK(expand_braces("{-1..1}") == brace_names{"-1", "0", "1"});
  CHECK(expand_braces("{-01..1}") == brace_names{"-01", "000", "001"});
  CHECK(expand_braces("{a..e..2}") == brace_names{"a", "c", "e"});
  CHECK(expand_braces("{c..a}") == brace_names{"c", "b", "a"});
  CHECK(expand_braces("{1..3..0}") == brace_names{"1", "2", "3"});
  CHECK(expand_braces("t-{000000..000127}.tar").size() == 128);
  CHECK(expand_braces("t-{000000..000127}.tar").back() == "t-000127.tar");
}

TEST_CASE("storage/braces: lists, nesting and several groups, the leftmost varying slowest") {
  using penstock::expand_braces;
  CHECK(expand_braces("{a,b}{1,2}") == brace_names{"a1", "a2", "b1", "b2"});
  CHECK(expand_braces("x{a,b{1..2},}y") == brace_names{"xay", "xb1y", "xb2y", "xy"});
  CHECK(expand_braces("{{a,b},c}") == brace_names{"a", "b", "c"});
  CHECK(expand_braces("{x}") == brace_names{"{x}"});
  CHECK(expand_braces("{}") == brace_names{"{}"});
  CHECK(expand_braces("{x{1,2}}") == brace_names{"{x1}", "{x2}"});
  CHECK(expand_braces("\\{1,2\\}") == brace_names{"{1,2}"});
  CHECK(expand_braces("{a\\,b,c}") == brace_names{"a,b", "c"});
  CHECK(expand_braces("a\\b") == brace_names{"a\\b"});
}

TEST_CASE("storage/braces: meaningless braces are an error and cost nothing") {
  using penstock::errc;
  CHECK(brace_problem("a{1,2") == errc::argument);
  CHECK(brace_problem("a}b") == errc::argument);
  CHECK(brace_problem("{0..10000000}") == errc::argument);
  CHECK(brace_problem("{0..9999}{0..9999}") == errc::argument);
  CHECK(brace_problem("{-9223372036854775808..9223372036854775807}") == errc::argument);
  CHECK(brace_problem(std::string(1000, '{') + std::string(1000, '}')) == errc::argument);
  CHECK(penstock::expand_braces("{9223372036854775806..9223372036854775807}").size() == 2);
}

TEST_CASE("storage/braces: an invalid range is an error that shows how ranges are written") {
  for (const char* body : {"0..", "..9", "..", "1..b", "aa..b", "0..9..", "0..9..x", "0..9..2..3",
                           "99999999999999999999..1", "0...9"}) {
    CAPTURE(body);
    const std::string pattern = "x-{" + std::string(body) + "}.tar";
    CHECK_THROWS_WITH(
        penstock::expand_braces(pattern),
        penstock_test::contains("'{" + std::string(body) + "}' is not a range: write {first..last}") &&
            penstock_test::contains("in the name pattern '" + pattern + "'"));
  }
  CHECK(penstock::expand_braces("\\{0..\\}") == brace_names{"{0..}"});
  CHECK(penstock::expand_braces("{../x}") == brace_names{"{../x}"});
}

TEST_CASE("storage/braces: too many names are refused before any is made") {
  using penstock::errc;
  const auto repeated = [](const std::string& piece, int times) {
    std::string pattern;
    for (int i = 0; i < times; ++i) pattern += piece;
    return pattern;
  };
  const auto made = penstock_test::allocations_of([&] {
    CHECK(brace_problem("{0..9999999}{0..9999999}") == errc::argument);
    CHECK(brace_problem("{a,{0..9999999}}{0..9999999}") == errc::argument);
    CHECK(brace_problem(repeated("{,}", 1000)) == errc::argument);
    CHECK(brace_problem("{0..9999999}" + std::string(1000, 'x')) == errc::argument);  // 10 GB of text
    CHECK(brace_problem("{0..9999999}" + repeated("{x}", 1000)) == errc::argument);
    CHECK(brace_problem("{0..9999999}" + repeated("{7..7}", 1000)) == errc::argument);
    CHECK(brace_problem("{" + std::string(1000, '0') + "..9999999}") == errc::argument);
  });
  CHECK(made < 50'000);  // a few bytes each; there would be more than ten million names
  try {
    (void)penstock::expand_braces(std::string(1'000'000, 'x') + "{");
    FAIL("should be refused");
  } catch (const penstock::error& e) {
    CHECK(std::string_view(e.what()).size() < 400);
  }
}

TEST_CASE("storage/braces: names match those of Bash") {
  if (!penstock_test::have_program("bash", "bash --version")) return;
  for (const char* pattern : {"a-{0..12}", "{01..10..3}-{x,y{1,2}}", "{z..w}", "p{,q}{5..3}",
                              "{{1..2},{a..b}}-{003..001}", "{-3..3..2}", "{0001..3}", "{a,b}{c}{d,}"}) {
    std::string ours;
    for (const std::string& name : penstock::expand_braces(pattern)) ours += name + "\n";
    CHECK(penstock_test::run_program("bash -c 'printf \"%s\\n\" " + std::string(pattern) + "'").output ==
          ours);
  }
}
