// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/observe/verdict.hpp>

#include "support/catch.hpp"

#include <string>

namespace ps = penstock;

namespace {

ps::run_counters base() {
  ps::run_counters c;
  c.workers = 2;
  c.seconds = 10;
  c.batches = 100;
  c.samples = 6400;
  c.bytes = 640'000'000;
  c.stages = {{"webdataset", 6400, 4.0}, {"decode<npy>", 6400, 1.0}};
  return c;
}

}  // namespace

TEST_CASE("observe/verdict: no verdict on a run that delivered nothing") {
  CHECK(ps::judge({}).limit == ps::bottleneck::unknown);
  CHECK_THAT(ps::judge({}).advice, penstock_test::contains("nothing was delivered"));
}

TEST_CASE("observe/verdict: a loop that does not wait is its own limit") {
  auto c = base();
  c.stall_seconds = 0.1;
  c.worker_busy_seconds = 5;
  const auto v = ps::judge(c);
  CHECK(v.limit == ps::bottleneck::consumer);
  CHECK(v.stall == Approx(0.01));
  CHECK(v.busy == Approx(0.25));
}

TEST_CASE("observe/verdict: the busiest stage decides between reading and computing") {
  auto c = base();
  c.stall_seconds = 4;
  c.worker_busy_seconds = 19.5;
  c.waiting_for_room = 0.2;
  auto v = ps::judge(c);
  CHECK(v.limit == ps::bottleneck::io);
  CHECK(v.busiest == "webdataset");
  CHECK(v.busiest_share == Approx(0.8));
  c.stages[1].busy_seconds = 12;
  v = ps::judge(c);
  CHECK(v.limit == ps::bottleneck::cpu);
  CHECK_THAT(v.advice, penstock_test::contains("'decode<npy>'"));
  c.workers = 0;
  c.stall_seconds = 0;
  v = ps::judge(c);
  CHECK(v.limit == ps::bottleneck::cpu);
  CHECK_THAT(v.advice, penstock_test::contains("workers(n)"));
}

TEST_CASE("observe/verdict: a loop that waits while workers wait for room has jitter") {
  auto c = base();
  c.stall_seconds = 3;
  c.worker_busy_seconds = 8;
  c.waiting_for_room = 11;
  c.waiting_for_room_in_stall = 3;
  CHECK(ps::judge(c).limit == ps::bottleneck::jitter);
  // as much waiting for room, but while the loop computed or paused
  c.waiting_for_room_in_stall = 0.1;
  CHECK(ps::judge(c).limit == ps::bottleneck::io);
  c.waiting_for_room = 1;
  c.waiting_for_input = 11;
  const auto v = ps::judge(c);
  CHECK(v.limit == ps::bottleneck::io);
  CHECK_THAT(v.advice, penstock_test::contains("serial front"));
}

TEST_CASE(
    "observe/verdict: a sample that takes longer than the batches in flight names the number to raise") {
  auto c = base();
  c.stall_seconds = 3;
  c.worker_busy_seconds = 8;
  c.waiting_for_room = 11;
  c.waiting_for_room_in_stall = 3;
  c.depth = 5;
  c.longest_sample_seconds = 0.15;  // a batch takes both workers 40 ms
  CHECK_THAT(ps::report(c), !penstock_test::contains("longest sample"));
  c.longest_sample_seconds = 0.9;
  const auto v = ps::judge(c);
  CHECK(v.limit == ps::bottleneck::jitter);
  CHECK_THAT(v.advice,
             penstock_test::contains("the longest sample took 900 ms, and the 5 batches in flight take 2 "
                                     "workers 160 ms") &&
                 penstock_test::contains("prefetch(23) after batch"));
}

TEST_CASE("observe/verdict: an interval is judged by itself") {
  auto early = base(), now = base();
  early.stall_seconds = 9;
  now.seconds = 20;
  now.batches = 200;
  now.samples = 12'800;
  now.stall_seconds = 9.05;
  CHECK(ps::judge(now).limit != ps::bottleneck::consumer);
  CHECK(ps::judge(now, early).limit == ps::bottleneck::consumer);
  CHECK_THAT(ps::report(now, early), penstock_test::contains("6400 samples in 10.0 s: 640 samples/s"));
}

TEST_CASE("observe/verdict: a source that costs nothing shows whether reading was the limit") {
  auto real = base(), free_source = base();
  real.stall_seconds = 4;
  real.worker_busy_seconds = 19.5;
  free_source.samples = 6500;
  CHECK(ps::judge_against(real, free_source).limit == ps::bottleneck::cpu);
  free_source.samples = 20'000;
  const auto v = ps::judge_against(real, free_source);
  CHECK(v.limit == ps::bottleneck::io);
  CHECK_THAT(v.advice, penstock_test::contains("without reading the loop is 3.1 times as fast:"));
  free_source.samples = 6400 * 36;
  CHECK_THAT(ps::judge_against(real, free_source).advice, penstock_test::contains(" 36 times as fast:"));
  free_source.samples = 6400 * 3 / 2;
  CHECK_THAT(ps::judge_against(real, free_source).advice, penstock_test::contains(" 50.0% faster:"));
  real.stages[1].busy_seconds = 12;
  CHECK(ps::judge_against(real, free_source).limit == ps::bottleneck::io);
}

TEST_CASE("observe/verdict: a report has a line per stage and ends with the verdict") {
  auto c = base();
  c.stall_seconds = 4;
  c.worker_busy_seconds = 19.5;
  c.depth = 5;
  CHECK(ps::report(c) ==
        "6400 samples in 10.0 s: 640 samples/s, 64.0 MB/s, 2 workers, 5 in flight\n"
        "  webdataset                        80.0%     625 us a sample\n"
        "  decode<npy>                       20.0%     156 us a sample\n"
        "stall 40.0%: the consumer waited, workers busy 97.5%\n"
        "I/O-bound: most of the work is reading: try prefetch(n), larger shards on a faster disk, more "
        "workers, or fewer bytes per sample (fields<...>, a codec that packs tighter)\n");
}

TEST_CASE("observe/verdict: a report counts the damaged samples that were used") {
  auto c = base();
  auto before = c;
  c.warnings = 12;
  CHECK_THAT(ps::report(c), penstock_test::contains(
                                "2 workers\ndamaged samples used as far as they could be decoded: 12\n"));
  before.warnings = 12;
  CHECK_THAT(ps::report(c, before), !penstock_test::contains("damaged"));
}

TEST_CASE("observe/verdict: a report says what the storage did, if it counts") {
  ps::run_counters c;
  c.seconds = 1;
  CHECK_THAT(ps::report(c), !penstock_test::contains("storage"));
  c.storage = {.requests = 120, .bytes = 3'000'000};
  CHECK_THAT(ps::report(c), penstock_test::contains("\nstorage: 120 requests, 3.00 MB\n"));
  CHECK_THAT(ps::report(c), !penstock_test::contains("cache:"));
  ps::run_counters near = c;
  near.storage = {};
  near.storage.hits = 12;
  near.storage.fetched = 3;
  near.storage.corrupt = 1;
  CHECK_THAT(ps::report(near),
             penstock_test::contains("\ncache: 12 hits, 3 fetched, 1 that did not match their checksums\n"));
  CHECK_THAT(ps::report(near), !penstock_test::contains("storage:"));
  c.storage = {.requests = 120,
               .bytes = 10,
               .slow_downs = 6,
               .retries = 5,
               .given_up = 4,
               .throttled = 3,
               .hedges = 2,
               .hedges_won = 1};
  CHECK_THAT(ps::report(c), penstock_test::contains("5 tried again, 4 given up, 6 asked for fewer, 3 times "
                                                    "throttled, 2 hedged, 1 of them in time\n"));
}

TEST_CASE("observe/verdict: reports of very short and of slow runs use suitable units") {
  auto c = base();
  c.seconds = 0.000'25;
  c.samples = 64;
  c.bytes = 3;
  c.stages = {{"from", 64, 64 * 3.2e-8}};
  const std::string brief = ps::report(c);
  CHECK_THAT(brief, penstock_test::contains("64 samples in 250 us: 256000 samples/s, 12.0 kB/s"));
  CHECK_THAT(brief, penstock_test::contains("32.0 ns a sample"));
  c.seconds = 90;
  c.bytes = 90'000'000'000;
  c.stages = {{"from", 64, 80}};
  const std::string slow = ps::report(c);
  CHECK_THAT(slow, penstock_test::contains("64 samples in 90.0 s: 0.71 samples/s, 1.00 GB/s"));
  CHECK_THAT(slow, penstock_test::contains("1.25 s a sample"));
  CHECK_THAT(ps::report({}), penstock_test::contains("0 samples in 0 s: 0.00 samples/s, 0 GB/s"));
}
