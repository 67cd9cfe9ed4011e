// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/observe/progress.hpp>

#include <penstock/observe/counters.hpp>
#include <penstock/observe/verdict.hpp>

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
  last.workers = 2;
  std::FILE* out = std::tmpfile();
  REQUIRE(out != nullptr);
  ps::progress bar("epoch 0", 4, out);
  bar.begin(first);
  for (int i = 0; i < 2; ++i) bar.tick([&] { return last; });
  CHECK(bar.line(last) ==
        "epoch 0 [############............] 2/4  0:02, 0:02 left  500 samples/s  2.0 MB/s  stall 25.0%");
  first.warnings = 2;
  last.warnings = 5;
  bar.begin(first);
  CHECK_THAT(bar.line(last), contains("stall 25.0%  3 damaged"));
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
  CHECK(bar.line({}) == "rows 1  0:00  0 samples/s  0.0 MB/s  stall 0.0%");
  std::fclose(out);
}

TEST_CASE("observe/progress: times, a run that is restored within its epoch, and numbers of the user's") {
  ps::run_counters first, last;
  first.seconds = 100;
  last.seconds = 100 + 3723.9;
  ps::progress bar("epoch 1", 100);
  bar.begin(first, 50);  // 50 batches were delivered before
  for (int i = 0; i < 10; ++i) bar.tick([&] { return last; });
  CHECK_THAT(bar.line(last), contains("] 60/100  1:02:03, 4:08:15 left  "));
  bar.show("loss", 0.69314718);
  bar.show("lr", 1e-5);
  bar.show("loss", 0.5);
  CHECK_THAT(bar.line(last), contains("stall 0.0%  loss 0.5  lr 1e-05"));
  last.seconds = 100 + 3 * 86'400 + 61;
  CHECK_THAT(bar.line(last), contains("  3 d 00:01:01, 12 d 00:04:04 left  "));
  for (int i = 0; i < 40; ++i) bar.tick([&] { return last; });
  // nothing is left
  CHECK_THAT(bar.line(last), contains("[########################] 100/100  3 d 00:01:01  "));
}

TEST_CASE("observe/progress: the stall is that of the report, with workers and without") {
  for (const unsigned workers : {0u, 2u}) {
    ps::run_counters first, last;
    first.seconds = 5;
    first.stall_seconds = first.worker_busy_seconds = 5;
    last.seconds = 15;
    last.samples = last.batches = 10;
    last.workers = first.workers = workers;
    last.stall_seconds = workers == 0 ? 5 : 7.5;
    last.worker_busy_seconds = 7.5;
    ps::progress bar("epoch 0", 10);
    bar.begin(first);
    CHECK_THAT(bar.line(last), contains("stall 25.0%"));
    CHECK_THAT(ps::report(last, first),
               contains(workers == 0 ? "stall 25.0%: the consumer makes its batches itself"
                                     : "stall 25.0%: the consumer waited, workers busy"));
    CHECK(ps::judge(last, first).stall == ps::since(last, first).stall());
  }
}
