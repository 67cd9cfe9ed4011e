// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/observe/progress.hpp>

#include <penstock/observe/counters.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdio>
#include <string>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("observe/progress: the line shows progress, rate and waiting time") {
  ps::run_counters first, last;
  first.seconds = 1;
  last.seconds = 3;
  last.samples = 1000;
  last.bytes = 4'000'000;
  last.stall_seconds = 0.5;
  std::FILE* out = std::tmpfile();
  REQUIRE(out != nullptr);
  ps::progress bar("epoch 0", 4, out);
  bar.begin(first);
  for (int i = 0; i < 2; ++i) bar.tick([&] { return last; });
  CHECK(bar.line(last) == "epoch 0 [############............] 2/4  500 samples/s  2.0 MB/s  stall 25.0 %");
  first.warnings = 2;
  last.warnings = 5;
  bar.begin(first);
  CHECK_THAT(bar.line(last), contains("stall 25.0 %  3 damaged"));
  first.warnings = last.warnings = 0;
  bar.begin(first);
  bar.finish(last);
  std::rewind(out);
  char text[256] = {};
  REQUIRE(std::fgets(text, sizeof text, out) != nullptr);
  CHECK(std::string(text) == bar.line(last) + "\n");  // no terminal: one plain line
  std::fclose(out);
}

TEST_CASE("observe/progress: no bar without a total") {
  std::FILE* out = std::tmpfile();
  REQUIRE(out != nullptr);
  ps::progress bar("rows", 0, out);
  bar.tick([] { return ps::run_counters{}; });
  CHECK(bar.line({}) == "rows 1  0 samples/s  0.0 MB/s  stall 0.0 %");
  std::fclose(out);
}
