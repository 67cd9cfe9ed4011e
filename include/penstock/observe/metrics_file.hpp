// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/observe/metrics.hpp>
#include <penstock/observe/run_monitor.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <span>
#include <string>
#include <thread>

namespace penstock::inline v0_1 {

/// The counters of a run as a line of JSON, with its end: the time in seconds since 1970, the labels, and all
/// metrics of `metrics_text` under their names. A metric with a label of its own is an object, and a
/// histogram is one of `count`, `sum` and `buckets`, an array of how many there were in each.
///
///     std::cout << metrics_lines(run.counters(), {{"run", "train"}});
[[nodiscard]] std::string metrics_lines(const run_counters& counters, const metric_labels& labels = {});
/// A line for each of several runs, all of one time.
[[nodiscard]] std::string metrics_lines(std::span<const labelled_counters> runs);

/// Writes the counters of runs to a file. One that is called `*.prom` becomes a page for the textfile
/// collector of Prometheus' node_exporter: it is replaced as a whole, and everybody may read it. To one
/// called `*.jsonl`, lines of JSON are appended.
///
/// Errors: errc::argument for another name, and as `metrics_text`; errc::io if the file cannot be written,
/// which leaves it as it was.
///
///     write_metrics("penstock.prom", run.counters(), {{"run", "train"}});
void write_metrics(const std::string& path, const run_counters& counters, const metric_labels& labels = {});
void write_metrics(const std::string& path, std::span<const labelled_counters> runs);

struct metrics_writer_options {
  std::chrono::milliseconds every{15'000};
  metric_labels labels = {};
  /// Is told of the first write that fails, in one line; null: nobody is.
  std::FILE* complaints = stderr;
};

/// Writes the counters of a run to a file every 15 seconds, as `write_metrics` does, from a thread of its
/// own, and once more when it is destroyed or finds that the run was.
///
/// Errors: errc::argument for a name, a label or a time that cannot be. A write that fails stops nothing:
/// it is counted, and the next one is tried. Destruction waits for a write in progress.
///
///     const metrics_writer lines(run.monitor(), "run.jsonl", {.every = std::chrono::seconds(5)});
class metrics_writer {
 public:
  metrics_writer(run_monitor of, std::string path, metrics_writer_options options = {});
  metrics_writer(const metrics_writer&) = delete;
  metrics_writer& operator=(const metrics_writer&) = delete;
  ~metrics_writer();

  /// Writes that succeeded, and that failed.
  [[nodiscard]] std::uint64_t written() const noexcept { return written_.load(); }
  [[nodiscard]] std::uint64_t failures() const noexcept { return failures_.load(); }

 private:
  void work() noexcept;
  void write() noexcept;

  run_monitor of_;
  std::string path_;
  metrics_writer_options options_;
  std::atomic<std::uint64_t> written_{0}, failures_{0};
  std::mutex lock_;
  std::condition_variable ends_now_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/metrics_file.ipp>
#endif
