// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a run shows of reads over a storage with latency that nobody fetched ahead.

#include <penstock/observe/timeline.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/webdataset_stream.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/watchdog.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>
#include <penstock/storage/throttled.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/temp_dir.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using penstock_test::contains;
using penstock_test::deadline;

namespace far_reads_shown_test {

/// A shard of two samples.
ps::memory_files shard() {
  std::vector<std::byte> bytes;
  ps::tar_writer out([&](ps::bytes_view more) { bytes.insert(bytes.end(), more.begin(), more.end()); });
  for (const char* key : {"a", "b"}) out.write(key, {{"txt", std::string("text of ") + key}});
  out.close();
  return ps::memory_files().add("a.tar", bytes);
}
/// What `f` writes to standard error.
template <class F>
std::string errors_of(const std::filesystem::path& file, F&& f) {
  std::fflush(stderr);
  const int kept = ::dup(STDERR_FILENO);
  const int other = ::open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  ::dup2(other, STDERR_FILENO);
  ::close(other);
  f();
  std::fflush(stderr);
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  std::ifstream lines(file);
  return {std::istreambuf_iterator<char>(lines), {}};
}
/// The lines of the watchdog while a plan's run goes on.
template <class Plan>
std::string lines_of(const Plan& plan) {
  const penstock_test::temp_dir dir;
  std::size_t samples = 0;
  const std::string lines = errors_of(dir / "errors", [&] {
    for (auto&& b : (plan | ps::workers(1) | ps::watchdog(40ms)).epoch(0)) samples += b.size();
  });
  CHECK(samples == 2);
  return lines;
}
/// A storage of which each read lasts many times as long as the watchdog waits.
auto slow() { return ps::retrying(ps::simulated_storage(shard(), {.latency = 400ms})); }
void shows_first_attempt(const std::string& lines) {
  CHECK_THAT(lines, contains("the oldest request, for a.tar at offset "));
  CHECK_THAT(lines, !contains("attempt"));
}
constexpr auto batches = [](const auto& source) {
  return source | ps::fields<"txt"> | ps::batch(1, ps::ragged);
};

TEST_CASE("run/far_reads_shown: the watchdog names the read of a worker, at its first attempt") {
  const deadline limit("a worker's read");
  shows_first_attempt(lines_of(batches(ps::webdataset(slow()) | ps::prefetch(0))));
}

TEST_CASE("run/far_reads_shown: the watchdog names the piece that a stream waits for") {
  const deadline limit("a stream's piece");
  shows_first_attempt(lines_of(batches(ps::webdataset_stream(slow()))));
}

TEST_CASE("run/far_reads_shown: the watchdog looks into joined sources, too") {
  const deadline limit("joined reads");
  const auto far = ps::webdataset(slow()) | ps::take(1);
  shows_first_attempt(lines_of(batches(ps::concat(far, far) | ps::prefetch(0))));
  shows_first_attempt(lines_of(batches(ps::concat(std::vector{far, far}) | ps::prefetch(0))));
}

/// A storage that fails twice, and all that deals with it.
auto harmful() {
  const ps::simulated_storage far(
      shard(), {.latency = 1ms, .faults = {{.object = 0, .begin = 0, .end = 1 << 20, .times = 2}}});
  return ps::retrying(ps::throttled(ps::hedged(far)), {.initial_backoff = 1ms, .max_backoff = 1ms});
}
/// What a timeline has of a run, and what the run counted.
template <class Plan>
std::pair<std::string, ps::storage_counters> shown_of(const Plan& plan) {
  const ps::timeline trace;
  std::size_t samples = 0;
  auto run = (plan | ps::workers(1) | trace).open();
  for (auto&& b : run.epoch(0)) samples += b.size();
  CHECK(samples == 2);
  return {trace.json(), run.counters().storage};
}

TEST_CASE(
    "run/far_reads_shown: a timeline has the storage's counts, of streams and of reads by workers, too") {
  const deadline limit("counts");
  const auto [stream, counted] = shown_of(batches(ps::webdataset_stream(harmful())));
  CHECK(counted.retries == 2);
  CHECK_THAT(stream, contains("\"name\":\"storage\",\"ph\":\"C\""));
  CHECK_THAT(stream, contains("\"requests\":" + std::to_string(counted.requests) +
                              ",\"retries\":2,\"given up\":0,\"second reads\":0,"));
  const auto [by_workers, also] = shown_of(batches(ps::webdataset(harmful()) | ps::prefetch(0)));
  CHECK(also.requests > 0);
  CHECK_THAT(by_workers, contains("\"requests\":" + std::to_string(also.requests) + ",\"retries\":"));
  CHECK_THAT(shown_of(batches(ps::webdataset(harmful()) | ps::prefetch(8))).first,
             contains("\"name\":\"storage\",\"ph\":\"C\""));
}

}  // namespace far_reads_shown_test
