// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/fmt.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("integration/fmt: a plan prints its description") {
  const auto plan = ps::from(first_ints(10)) | ps::shuffle(ps::seed(1)) | ps::batch(4);
  CHECK(fmt::format("{}", plan) == ps::describe(plan));
  CHECK(fmt::format("{}", plan).find("shuffle") != std::string::npos);
  CHECK(fmt::format("<{:.6}>", plan) == "<" + ps::describe(plan).substr(0, 6) + ">");
}

TEST_CASE("integration/fmt: a source is no range, and is not read to be printed") {
  STATIC_REQUIRE_FALSE(fmt::is_range<decltype(ps::from(first_ints(10))), char>::value);
  STATIC_REQUIRE_FALSE(fmt::is_formattable<decltype(ps::from(first_ints(10)))>::value);
}

TEST_CASE("integration/fmt: a state prints the line that can be read back") {
  const auto plan = ps::from(first_ints(100)) | ps::shuffle(ps::seed(1)) | ps::batch(8);
  auto run = plan.open();
  int seen = 0;
  for (auto&& b : run) {
    seen += static_cast<int>(b.size());
    if (seen == 24) break;
  }
  const std::string line = fmt::format("{}", run.state());
  CHECK(line == ps::to_string(run.state()));
  CHECK(line.find("\"step\": \"3\"") != std::string::npos);
  CHECK(ps::state_from_string(line) == run.state());
}

TEST_CASE("integration/fmt: shapes look as numpy prints them, and can be padded") {
  CHECK(fmt::format("{}", ps::extents()) == "()");
  CHECK(fmt::format("{}", ps::extents(7)) == "(7,)");
  CHECK(fmt::format("{}", ps::extents(3, 224, 224)) == "(3, 224, 224)");
  CHECK(fmt::format("[{:>8}]", ps::extents(2, 3)) == "[  (2, 3)]");
  CHECK(fmt::format("[{:*<8}]", ps::extents(2, 3)) == "[(2, 3)**]");
  CHECK(fmt::format("[{:{}}]", ps::extents(2, 3), 7) == "[(2, 3) ]");
}

TEST_CASE("integration/fmt: an error prints its one line, with the known place") {
  const auto wrong = ps::error(ps::errc::format, "seven bytes too many")
                         .in_file("a{}b.tar")
                         .at_offset(512)
                         .add_context({2, 7});
  CHECK(fmt::format("{}", wrong) == wrong.what());
  CHECK(fmt::format("{}", wrong) ==
        "penstock: seven bytes too many [file a{}b.tar, offset 512, position 2:7]");
  CHECK(fmt::format("{}/{:>8}", wrong.code(), ps::errc::io) == "format/      io");
}

TEST_CASE("integration/fmt: names, positions and lists of them") {
  CHECK(fmt::format("{}", ps::guarantee::lockstep) == "lockstep");
  CHECK(fmt::format("{}", ps::position{3, 700}) == "3:700");
  CHECK(fmt::format("{}", ps::bottleneck::cpu) == "CPU-bound");
  CHECK(fmt::format("{}", fmt::join(ps::all_guarantees, " ")) ==
        "indexed deterministic resumable elastic lockstep");
  const std::vector<ps::extents> shapes{ps::extents(1, 2), ps::extents(3)};
  CHECK(fmt::format("{}", shapes) == "[(1, 2), (3,)]");
}

TEST_CASE("integration/fmt: counters print the report, a verdict its name and advice") {
  const auto plan = ps::from(first_ints(100)) | ps::map([](int x) { return x + 1; }) | ps::batch(8);
  auto run = plan.open();
  for (auto&& b : run) CHECK(b.size() != 0);
  const ps::run_counters counters = run.counters();
  CHECK(fmt::format("{}", counters) == ps::report(counters));
  ps::verdict v;
  v.limit = ps::bottleneck::io;
  v.advice = "read less";
  CHECK(fmt::format("{}", v) == "I/O-bound: read less");
}

TEST_CASE("integration/fmt: any output that fmt has, and a wrong option is refused") {
  std::string out;
  fmt::format_to(std::back_inserter(out), "{} at {}", ps::extents(4), ps::position{0, 1});
  CHECK(out == "(4,) at 0:1");
  char small[4];
  CHECK(fmt::format_to_n(small, sizeof small, "{}", ps::extents(10, 10)).size == 8);
  CHECK(std::string(small, 4) == "(10,");
  CHECK_THROWS_AS(fmt::format(fmt::runtime("{:d}"), ps::extents(1)), fmt::format_error);
}
