// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/observe/timeline.hpp>

#include <penstock/device/simulated.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/synthetic.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"
#include "support/json.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace ps = penstock;
using namespace engine_test;
using penstock_test::json;

namespace {

/// A trace, checked against the rules of the Trace Event Format and sorted by kind of event.
struct trace {
  std::vector<json> slices;  // X
  std::map<std::uint64_t, std::string> threads;
  std::uint64_t holds = 0, lost = 0;
  double dropped = 0;

  [[nodiscard]] std::vector<json> named(const std::string& name) const {
    std::vector<json> some;
    std::copy_if(slices.begin(), slices.end(), std::back_inserter(some),
                 [&](const json& e) { return e["name"].text == name; });
    return some;
  }
};

bool whole(const json& v) {
  return v.is == json::kind::number && v.number >= 0 &&
         v.number == static_cast<double>(static_cast<std::uint64_t>(v.number));
}

trace read(const std::string& text) {
  const json all = json::parse(text);
  REQUIRE(all["traceEvents"].is == json::kind::array);
  CHECK(all["displayTimeUnit"].text == "ms");
  trace t;
  t.dropped = all["otherData"]["dropped"].number;
  std::map<std::string, json> open;
  std::map<std::uint64_t, std::vector<std::pair<double, double>>> by_thread;
  for (const json& e : all["traceEvents"].items) {
    const std::string phase = e["ph"].text;
    REQUIRE(e["name"].is == json::kind::text);
    REQUIRE(whole(e["pid"]));
    REQUIRE(whole(e["tid"]));
    REQUIRE(e["pid"].number == static_cast<double>(::getpid()));
    const auto tid = static_cast<std::uint64_t>(e["tid"].number);
    if (phase == "M") {
      if (e["name"].text == "thread_name") t.threads[tid] = e["args"]["name"].text;
      continue;
    }
    REQUIRE(e["ts"].is == json::kind::number);
    if (phase == "X") {
      REQUIRE(e["dur"].number >= 0);
      REQUIRE(e["args"].is == json::kind::object);
      REQUIRE(t.threads.count(tid) == 1);
      by_thread[tid].emplace_back(e["ts"].number, e["ts"].number + e["dur"].number);
      t.slices.push_back(e);
    } else if (phase == "b" || phase == "e") {
      const std::string id = e["cat"].text + e["id"].text;
      REQUIRE((phase == "b") == open.emplace(id, e).second);
      if (phase == "b") continue;
      REQUIRE(open[id]["ts"].number <= e["ts"].number);
      open.erase(id);
      ++t.holds;
    } else {
      REQUIRE(phase == "i");
      REQUIRE(e["s"].text == "t");
      t.lost += static_cast<std::uint64_t>(e["args"]["dropped"].number);
    }
  }
  CHECK(open.empty());
  // Slices of a thread must be disjoint or nested, as viewers require.
  for (auto& [tid, spans] : by_thread) {
    std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    std::vector<double> ends;
    for (const auto& [begin, end] : spans) {
      while (!ends.empty() && ends.back() <= begin + 0.0005) ends.pop_back();
      REQUIRE((ends.empty() || end <= ends.back() + 0.0015));
      ends.push_back(end);
    }
  }
  return t;
}

/// The number of samples in these slices; checks that no position is in two of them.
std::uint64_t samples_in(const std::vector<json>& slices) {
  std::uint64_t sum = 0;
  std::set<std::pair<double, double>> seen;
  for (const json& e : slices) {
    const json& args = e["args"];
    if (!args.has("samples")) continue;
    sum += static_cast<std::uint64_t>(args["samples"].number);
    CHECK(args["first position"].number <= args["last position"].number);
    CHECK(seen.emplace(args["epoch"].number, args["first position"].number).second);
  }
  return sum;
}

const auto napping = ps::synthetic({.samples = 96,
                                    .bytes = 4096,
                                    .cost = std::chrono::microseconds(200),
                                    .wait = ps::synthetic_wait::sleep});
constexpr auto size_of = [](const auto& bytes) { return static_cast<std::uint64_t>(bytes.size()); };

}  // namespace

TEST_CASE("observe/timeline: a real run on workers, every sample once, in valid JSON") {
  const penstock_test::deadline guard("timeline");
  ps::timeline line;
  CHECK(read(line.json()).slices.empty());
  const auto plan = napping | ps::map(size_of) | ps::shard(1, 2) | ps::batch(6) |
                    ps::pin_and_copy(ps::simulated{}) | ps::workers(2) | line;
  {
    auto run = plan.open();
    for (auto epoch : run.epochs(2))
      for (auto&& b : epoch) CHECK(b.size() == 6);
  }
  const trace t = read(line.json());
  CHECK(t.dropped == 0);
  CHECK(t.threads == std::map<std::uint64_t, std::string>{
                         {1, "run 1, consumer"}, {2, "run 1, worker 0"}, {3, "run 1, worker 1"}});
  CHECK(samples_in(t.named("evaluate")) == 96);
  CHECK(t.named("copy").size() == 16);
  CHECK(t.named("wait for copy").size() == 16);
  CHECK(t.holds == 16);
  CHECK(!t.named("wait for batch").empty());
  CHECK(!t.named("wait for room").empty());
  for (const json& e : t.named("wait for batch")) CHECK(e["tid"].number == 1);
  std::set<double> batches;
  for (const json& e : t.named("evaluate")) {
    CHECK(e["tid"].number != 1);
    if (e["args"].has("samples")) batches.insert(e["args"]["batch"].number + 100 * e["args"]["epoch"].number);
  }
  CHECK(batches.size() == 16);
  // The first sample of each grain is shown in detail: the source sleeps.
  const auto reads = t.named("synthetic");
  CHECK(reads.size() == t.named("evaluate").size());
  for (const json& e : reads) CHECK(e["dur"].number >= 200);
  CHECK_THAT(line.json(), penstock_test::contains("penstock, rank 1 of 2: synthetic(96 samples"));
}

TEST_CASE("observe/timeline: each count of a storage has its name") {
  ps::timeline line;
  auto session = line.connect({});
  ps::run_watch watch({ps::any_observer(session)}, 0, true, false, 0);
  watch.counted({.requests = 1,
                 .slow_downs = 2,
                 .retries = 3,
                 .given_up = 4,
                 .throttled = 5,
                 .hedges = 6,
                 .hedges_won = 7},
                true);
  CHECK_THAT(line.json(), penstock_test::contains(
                              "\"args\":{\"requests\":1,\"retries\":3,\"given up\":4,\"second reads\":6,"
                              "\"second reads that won\":7,\"slow downs\":2,\"throttled\":5}"));
}

TEST_CASE("observe/timeline: each count of a cache has its name, where there is a cache") {
  ps::timeline line;
  auto session = line.connect({});
  ps::run_watch watch({ps::any_observer(session)}, 0, true, false, 0);
  const std::string begins = "\"name\":\"cache\",\"ph\":\"C\"";
  watch.counted({.requests = 9, .bytes = 10}, true);
  CHECK_THAT(line.json(), !penstock_test::contains(begins));
  watch.counted(
      {.requests = 9, .hits = 1, .fetched = 2, .refetched = 3, .evicted = 4, .corrupt = 5, .uncached = 6},
      true);
  CHECK_THAT(line.json(),
             penstock_test::contains(begins) &&
                 penstock_test::contains("\"args\":{\"hits\":1,\"fetched\":2,\"fetched again\":3,"
                                         "\"evicted\":4,\"corrupt\":5,\"past the cache\":6}}"));
  // The counts of both are of one moment.
  std::map<std::string, std::vector<double>> times;
  const json all = json::parse(line.json());
  for (const json& e : all["traceEvents"].items)
    if (e["ph"].text == "C") times[e["name"].text].push_back(e["ts"].number);
  REQUIRE(times["storage"].size() == 2);
  REQUIRE(times["cache"].size() == 1);
  CHECK(times["cache"][0] == times["storage"][1]);
}

TEST_CASE("observe/timeline: a cache that only passes reads on has its counts, too") {
  for (const ps::storage_counters& one : {ps::storage_counters{.hits = 1}, ps::storage_counters{.fetched = 1},
                                          ps::storage_counters{.uncached = 1}}) {
    ps::timeline line;
    auto session = line.connect({});
    ps::run_watch({ps::any_observer(session)}, 0, true, false, 0).counted(one, true);
    CHECK_THAT(line.json(), penstock_test::contains("\"name\":\"cache\""));
  }
}

TEST_CASE("observe/timeline: without workers the consumer evaluates") {
  ps::timeline line;
  const auto plan = napping | ps::map(size_of) | ps::batch(8) | ps::workers(0) | line;
  for (auto&& b : plan) CHECK(b.size() == 8);
  const trace t = read(line.json());
  CHECK(t.threads.size() == 1);
  CHECK(samples_in(t.named("evaluate")) == 96);
  CHECK(t.named("wait for batch").empty());
  CHECK(t.holds == 12);
}

TEST_CASE("observe/timeline: chunks, forward sources and loops without batches") {
  const penstock_test::deadline guard("timeline of chunks");
  ps::timeline line;
  const auto odd = [](std::uint64_t x) { return x % 2 != 0; };
  for (auto&& b : (ps::plan(counting_source(200)) | ps::map(slowly{}) | ps::filter(odd) | ps::batch(7) |
                   ps::workers(3) | line)
                      .epoch(0))
    CHECK(b.size() != 0);
  trace t = read(line.json());
  CHECK(samples_in(t.named("evaluate")) == 200);
  CHECK(t.named("read").size() == t.named("wait for input").size());
  CHECK(t.holds >= 1);
  ps::timeline other;
  std::uint64_t rows = 0;
  for (auto&& x : (ps::plan(counting_source(50)) | ps::map(slowly{}) | other | ps::workers(1)).epoch(0))
    rows += x < 50;
  CHECK(rows == 50);
  t = read(other.json());
  CHECK(samples_in(t.named("evaluate")) == 50);
  CHECK(t.threads.size() == 2);
  ps::timeline gathered;
  for (auto&& b : (napping | ps::filter([](const auto&) { return true; }) | ps::map(size_of) | ps::batch(9) |
                   ps::workers(2) | gathered)
                      .epoch(0))
    CHECK(b.size() != 0);
  t = read(gathered.json());
  CHECK(samples_in(t.named("evaluate")) == 96);
  CHECK(t.holds >= 11);
}

TEST_CASE("observe/timeline: memory is bounded, the latest events are kept and the others counted") {
  ps::timeline line({.events_per_thread = 20, .runs = 2});
  const auto plan = napping | ps::map(size_of) | ps::batch(1) | ps::workers(0) | line;
  for (auto&& b : plan) CHECK(b.size() == 1);
  trace t = read(line.json());
  // A grain of one sample is three events: itself, the source and the map. The batches come on top.
  CHECK(t.slices.size() == 20);
  CHECK(t.holds == 20);
  CHECK(t.dropped == 96 * 3 - 20 + 96 - 20);
  CHECK(t.lost == static_cast<std::uint64_t>(t.dropped));
  CHECK(line.dropped() == static_cast<std::uint64_t>(t.dropped));
  for (const json& e : t.named("evaluate")) CHECK(e["args"]["batch"].number >= 89);
  for (int i = 0; i < 3; ++i)
    for (auto&& b : plan) CHECK(b.size() == 1);
  t = read(line.json());
  CHECK(t.threads.size() == 2);
  CHECK_THAT(t.threads.begin()->second, penstock_test::contains("run 3, "));
}

TEST_CASE("observe/timeline: it may be read while a run works, and a held batch is open until released") {
  const penstock_test::deadline guard("timeline while working");
  ps::timeline line({.events_per_thread = 64});
  auto run = (ps::synthetic({.samples = 4'000, .bytes = 64}) | ps::map(size_of) | ps::batch(4) |
              ps::workers(2) | ps::prefetch(3) | line)
                 .open();
  std::atomic<bool> ended{false};
  std::uint64_t slices = 0;
  std::thread reader([&] {
    for (int i = 0; i < 5 || !ended; ++i) slices += json::parse(line.json())["traceEvents"].items.size();
  });
  auto first = run.next();
  while (run.next()) {
  }
  ended = true;
  reader.join();
  CHECK(slices != 0);
  REQUIRE(first);
  const trace t = read(line.json());
  CHECK(t.holds >= 65);
  CHECK(t.dropped > 0);
}

TEST_CASE("observe/timeline: it does not change a plan's fingerprint, and shows in its description") {
  ps::timeline line;
  const auto plain = napping | ps::map(size_of) | ps::batch(8);
  const auto watched = plain | line;
  CHECK(ps::sequence_fingerprint(plain) == ps::sequence_fingerprint(watched));
  static_assert(ps::observer<ps::timeline>, "a timeline is an observer");
  CHECK(ps::observers_of(plain, 2, false).empty());
  CHECK(ps::observers_of(watched, 2, false).size() == 1);
}

TEST_CASE("observe/timeline: the file appears complete, or an error names it and nothing is left") {
  const penstock_test::temp_dir folder;
  ps::timeline line;
  for (auto&& b : (napping | ps::map(size_of) | ps::batch(8) | ps::workers(1) | line).epoch(0))
    CHECK(b.size() == 8);
  const std::string path = (folder / "trace.json").string();
  line.write(path);
  line.write(path);  // overwrites the existing file
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  CHECK(text == line.json());
  CHECK(samples_in(read(text).named("evaluate")) == 96);
  const std::string nowhere = (folder / "no" / "trace.json").string();
  CHECK_THROWS_WITH(line.write(nowhere),
                    penstock_test::contains("cannot create the timeline (No such file") &&
                        penstock_test::contains(nowhere));
  std::filesystem::create_directory(folder / "taken");
  CHECK_THROWS_AS(line.write((folder / "taken").string()), ps::error);
  std::size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK_THAT(entry.path().string(), !penstock_test::contains(".tmp-"));
    ++entries;
  }
  CHECK(entries == 2);
}

TEST_CASE("observe/timeline: names from anywhere are valid JSON") {
  ps::detail::trace_text out;
  out.process("a\"b\\c\n\xc3\xa9\xff");
  const json found = json::parse(out.finish(0));
  CHECK(found["traceEvents"].items.at(0)["args"]["name"].text == "a\"b\\c\n\xc3\xa9\xef\xbf\xbd");
}
