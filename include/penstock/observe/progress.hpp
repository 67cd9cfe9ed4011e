// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/counters.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace penstock::inline v0_1 {

/// One line of progress: a bar over the batches of an epoch, samples/s, MB/s and the share of time the loop
/// waited for data.
///
/// On a terminal the line is rewritten in place, at most ten times a second; elsewhere one line is written at
/// the end of each epoch.
/// Cost of `tick` between two lines: reading a clock. One thread.
///
///     progress bar("epoch 3", run.steps_per_epoch());
///     bar.begin(run.counters());
///     for (auto&& b : run.epoch(3)) {
///       train(b);
///       bar.tick([&] { return run.counters(); });
///     }
///     bar.finish(run.counters());
template <class = void>
class basic_progress {
  using clock = std::chrono::steady_clock;

 public:
  /// `total`: batches of the epoch, 0 when nobody knows. Writes to `out`.
  basic_progress(std::string label, std::uint64_t total, std::FILE* out = stderr)
      : label_(std::move(label)), total_(total), out_(out), on_terminal_(is_terminal(out)) {}

  /// Rates are counted from here; without it, from the opening of the run.
  void begin(const run_counters& counters) {
    first_ = counters;
    first_.stages.clear();
  }
  /// One batch more. `counters` is a function that gives a `run_counters`; it is called only when a line is
  /// due.
  template <class Counters>
  void tick(Counters&& counters) {
    ++ticks_;
    if (on_terminal_ && clock::now() - last_ >= std::chrono::milliseconds(100)) write(counters(), false);
  }
  /// The last line of the epoch.
  void finish(const run_counters& counters) { write(counters, true); }

  /// The line itself, without the control characters.
  [[nodiscard]] std::string line(const run_counters& counters) const {
    const double seconds = counters.seconds - first_.seconds;
    const auto rate = [seconds](double amount) { return seconds > 0 ? amount / seconds : 0.0; };
    char text[256];
    std::string result = label_ + " ";
    if (total_ != 0) {
      const std::uint64_t done = std::min(ticks_, total_);
      const auto filled = static_cast<std::size_t>(done * width / total_);
      result += "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] ";
      std::snprintf(text, sizeof text, "%llu/%llu  ", static_cast<unsigned long long>(ticks_),
                    static_cast<unsigned long long>(total_));
    } else {
      std::snprintf(text, sizeof text, "%llu  ", static_cast<unsigned long long>(ticks_));
    }
    result += text;
    std::snprintf(text, sizeof text, "%.0f samples/s  %.1f MB/s  stall %.1f %%",
                  rate(static_cast<double>(counters.samples - first_.samples)),
                  rate(static_cast<double>(counters.bytes - first_.bytes)) * 1e-6,
                  100 * rate(counters.stall_seconds - first_.stall_seconds));
    result += text;
    if (const std::uint64_t bad = counters.skipped + counters.replaced - first_.skipped - first_.replaced;
        bad != 0)
      result += "  " + std::to_string(bad) + " bad";
    return result;
  }

 private:
  static constexpr std::size_t width = 24;

  static bool is_terminal(std::FILE* out) {
#if defined(__unix__) || defined(__APPLE__)
    return isatty(fileno(out)) != 0;
#else
    return false;
#endif
  }
  void write(const run_counters& counters, bool last) {
    last_ = clock::now();
    if (on_terminal_)
      std::fprintf(out_, "\r%s\033[K%s", line(counters).c_str(), last ? "\n" : "");
    else if (last)
      std::fprintf(out_, "%s\n", line(counters).c_str());
    std::fflush(out_);
  }

  std::string label_;
  std::uint64_t total_, ticks_ = 0;
  std::FILE* out_;
  bool on_terminal_;
  clock::time_point last_{};
  run_counters first_;
};
/// The form to use: see `basic_progress`.
class progress : public basic_progress<> {
 public:
  using basic_progress<>::basic_progress;
};

}  // namespace penstock::inline v0_1
