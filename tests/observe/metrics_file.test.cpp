// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/observe/metrics_file.hpp>

#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/json.hpp"
#include "support/metrics_page.hpp"
#include "support/temp_dir.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace metrics_file_test {

namespace ps = penstock;
using penstock_test::json;
using penstock_test::metrics_page;
using namespace std::chrono_literals;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}
ps::run_counters some() {
  ps::run_counters c;
  c.stages = {{"from", 30, 0.5}, {"a \"stage\"", 30, 1.25}};
  c.samples = 30;
  c.block_waits.add(1'000);
  c.block_waits.add(2'000'000'000);
  return c;
}

}  // namespace

TEST_CASE("observe/metrics_file: a page replaces the one before, and lines of JSON follow one another") {
  const penstock_test::temp_dir folder;
  const std::string page = (folder.path() / "a.prom").string(), lines = (folder.path() / "a.jsonl").string();
  ps::write_metrics(page, ps::run_counters{});
  const ::mode_t before = ::umask(077);
  ps::write_metrics(page, some(), {{"run", "train"}});
  ::umask(before);
  const metrics_page read(text_of(page));
  CHECK(read.value("penstock_samples_delivered_total", {{"run", "train"}}) == 30);
  struct stat status {};
  REQUIRE(::stat(page.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0644);
  CHECK(files_in(folder.path()) == 1);

  ps::write_metrics(lines, some(), {{"run", "\"1\"\n"}});
  ps::write_metrics(lines, std::vector<ps::labelled_counters>{{some()}, {some(), {{"run", "b"}}}});
  const std::string all = text_of(lines);
  CHECK(std::count(all.begin(), all.end(), '\n') == 3);
  const json line = json::parse(all.substr(0, all.find('\n')));
  CHECK(line["labels"]["run"].text == "\"1\"\n");
  CHECK(std::abs(line["time"].number - static_cast<double>(std::time(nullptr))) < 3600);
  CHECK(line["penstock_samples_delivered_total"].number == 30);
  CHECK(line["penstock_stage_busy_seconds_total"]["a \"stage\""].number == 1.25);
  const json& waits = line["penstock_next_duration_seconds"];
  CHECK(waits["count"].number == 2);
  CHECK(waits["sum"].number == 2.000001);
  REQUIRE(waits["buckets"].items.size() == ps::duration_counts::buckets);
  CHECK(waits["buckets"].items[ps::duration_counts::bucket_of(2'000'000'000)].number == 1);
  CHECK(json::parse(ps::metrics_lines(ps::run_counters{}))["penstock_stage_busy_seconds_total"]
            .members.empty());
}

TEST_CASE("observe/metrics_file: what cannot be written is an error, and leaves the file as it was") {
  const penstock_test::temp_dir folder;
  const auto refusal_of = [](const std::string& path) -> std::string {
    try {
      ps::write_metrics(path, some());
    } catch (const ps::error& e) {
      return e.what();
    }
    return "none";
  };
  CHECK_THAT(refusal_of((folder.path() / "a.txt").string()), penstock_test::contains("*.prom"));
  for (const char* name : {"no/a.prom", "no/a.jsonl"})
    CHECK_THAT(refusal_of((folder.path() / name).string()), penstock_test::contains("No such file"));
  std::filesystem::create_directory(folder.path() / "b.prom");
  CHECK_THAT(refusal_of((folder.path() / "b.prom").string()), penstock_test::contains("directory"));
  CHECK(files_in(folder.path()) == 1);
  std::filesystem::create_symlink("/dev/full", folder.path() / "full.jsonl");
  CHECK_THAT(refusal_of((folder.path() / "full.jsonl").string()), penstock_test::contains("No space left"));
}

TEST_CASE("observe/metrics_file: a writer writes in the background, and its failures stop nothing") {
  const penstock_test::deadline limit("a thread that writes metrics");
  const penstock_test::temp_dir folder;
  const auto plan = ps::generated(64, [](std::uint64_t i) { return i; }) | ps::batch(4);
  auto first = std::make_optional(plan.open());
  const std::string one = (folder.path() / "a.prom").string(), many = (folder.path() / "a.jsonl").string();
  {
    const ps::metrics_writer often(first->monitor(), many, {.every = 1ms, .labels = {{"run", "x"}}});
    const ps::metrics_writer rarely(first->monitor(), one, {.every = 1h});
    while (often.written() < 3) std::this_thread::sleep_for(1ms);
    CHECK(rarely.written() == 0);
    while (first->next()) {
    }
    first.reset();
  }
  CHECK(metrics_page(text_of(one)).value("penstock_batches_delivered_total") == 16);
  const std::string all = text_of(many);
  const std::size_t last = all.rfind('\n', all.size() - 2);
  CHECK(json::parse(all.substr(last + 1))["penstock_batches_delivered_total"].number == 16);

  std::FILE* const told = std::tmpfile();
  auto second = plan.open();
  {
    auto& run = second;
    const std::string prom_file = (folder.path() / "b.prom").string();
    const std::string jsonl_file = (folder.path() / "b.jsonl").string();
    const auto train = [](const auto& b) { CHECK(b.size() == 4); };
    {
      const ps::metrics_writer page(run.monitor(), prom_file, {.labels = {{"run", "train"}}});
      const ps::metrics_writer lines(run.monitor(), jsonl_file, {.every = 5s});
      for (auto&& b : run.epoch(0)) train(b);
    }
    CHECK(metrics_page(text_of(prom_file)).value("penstock_epoch", {{"run", "train"}}) == 0);
    CHECK(json::parse(text_of(jsonl_file))["penstock_step"].number == 16);
  }
  {
    const ps::metrics_writer nowhere(second.monitor(), (folder.path() / "no" / "a.prom").string(),
                                     {.every = 1ms, .complaints = told});
    while (nowhere.failures() < 3) std::this_thread::sleep_for(1ms);
  }
  const long end = std::ftell(told);
  std::rewind(told);
  std::string line(static_cast<std::size_t>(end), ' ');
  CHECK(std::fread(line.data(), 1, line.size(), told) == line.size());
  std::fclose(told);
  CHECK(std::count(line.begin(), line.end(), '\n') == 1);
  CHECK_THAT(line, penstock_test::contains("no/a.prom"));
  CHECK_THROWS_WITH(ps::metrics_writer(second.monitor(), one, {.every = 0ms}),
                    penstock_test::contains("every 1 ms to every day"));
  CHECK_THROWS_WITH(ps::metrics_writer(second.monitor(), one, {.labels = {{"le", "x"}}}),
                    penstock_test::contains("another name"));
}

}  // namespace metrics_file_test
