// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

/// Shared by all benchmark programs: options, alternating pairs of runs, and rows of the table.
namespace bench {

/// The options of every benchmark program.
struct options {
  int pairs = 31;
  int takes = 3;       ///< runs of each side in a pair, in turn, of which the fastest counts
  bool quick = false;  ///< few repetitions and small data: checks that it works, the figures are noise
  std::string only;    ///< "ours" or "reference": that side alone, without a clock, for instruction counts
  std::uint64_t rounds = 1;         ///< with `only`: the number of rounds
  std::string row;                  ///< this row alone
  std::filesystem::path dir = ".";  ///< where data are written
  bool keep = false;                ///< leave the data

  [[nodiscard]] bool wants(std::string_view id) const { return row.empty() || row == id; }
};

[[nodiscard]] inline options read_options(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == argc) {
        std::fprintf(stderr, "%s needs a value\n", argv[i]);
        std::exit(2);
      }
      return argv[++i];
    };
    if (arg == "--quick") {
      o.quick = true;
      o.pairs = 3;
      o.takes = 1;
    } else if (arg == "--pairs") {
      o.pairs = std::max(1, std::atoi(value().c_str()));
    } else if (arg == "--takes") {
      o.takes = std::max(1, std::atoi(value().c_str()));
    } else if (arg == "--only") {
      o.only = value();
    } else if (arg == "--rounds") {
      o.rounds = static_cast<std::uint64_t>(std::max(1, std::atoi(value().c_str())));
    } else if (arg == "--row") {
      o.row = value();
    } else if (arg == "--dir") {
      o.dir = value();
    } else if (arg == "--keep") {
      o.keep = true;
    } else {
      std::fprintf(stderr,
                   "usage: %s [--quick] [--pairs N] [--takes N] [--row ID] [--dir FOLDER] [--keep]\n"
                   "       %s --row ID --only ours|reference --rounds N\n",
                   argv[0], argv[0]);
      std::exit(arg == "--help" ? 0 : 2);
    }
  }
  return o;
}

[[nodiscard]] inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Makes the compiler assume that the memory at `p` is read.
inline void escape(const void* p) { asm volatile("" : : "g"(p) : "memory"); }

/// The value below which a share of the values lies.
[[nodiscard]] inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto place = static_cast<std::size_t>(share * static_cast<double>(values.size()));
  return values[std::min(place, values.size() - 1)];
}

/// One line of the table. report.py reads lines that begin with `row` and a tab.
struct row {
  std::string id, what;
  double bar = 0;        ///< 0: reported, without a bar
  bool at_most = false;  ///< the value must not exceed the bar; otherwise not fall below it
};

inline void print_row(const row& r, double value, double median, const std::string& notes) {
  const char* verdict = r.bar <= 0                                      ? "report"
                        : (r.at_most ? value <= r.bar : value >= r.bar) ? "pass"
                                                                        : "MISS";
  std::printf("row\t%s\t%s\t%s%.3g\t%.3g\t%.3g\t%s\t%s\n", r.id.c_str(), r.what.c_str(),
              r.bar <= 0  ? ""
              : r.at_most ? "<="
                          : ">=",
              r.bar, value, median, verdict, notes.c_str());
  std::fflush(stdout);
}
inline void print_skipped(const row& r, const std::string& why) {
  std::printf("row\t%s\t%s\t\t\t\tskipped\t%s\n", r.id.c_str(), r.what.c_str(), why.c_str());
  std::fflush(stdout);
}

[[nodiscard]] inline std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  return text;
}

/// Whether the checksums of the two sides are compared: not if the reference is another program.
enum class sums { compared, unknown };

/// Runs two sides in turn, `pairs` times, and prints reference time / our time: the lower quartile and the
/// median. A side is a callable that does one round of the work and returns a checksum of its data.
/// `prepare` runs before each side, untimed. Each side of a pair has several takes, in turn, and the fastest
/// counts: whatever else a shared machine does only ever makes a take slower.
template <class Ours, class Reference, class Prepare>
void compare(const options& o, const row& r, Ours&& ours, Reference&& reference, Prepare&& prepare,
             sums check = sums::compared) {
  if (!o.wants(r.id)) return;
  if (!o.only.empty()) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < o.rounds; ++i) sum += o.only == "ours" ? ours() : reference();
    std::printf("%s, %llu rounds: checksum %llx\n", o.only.c_str(), static_cast<unsigned long long>(o.rounds),
                static_cast<unsigned long long>(sum));
    return;
  }
  const auto timed = [&](auto& side, std::uint64_t& sum) {
    prepare();
    const double begin = seconds_now();
    sum = side();
    return seconds_now() - begin;
  };
  std::vector<double> ratios, our_times, their_times;
  for (int pair = -1; pair < o.pairs; ++pair) {
    double our_time = 0, their_time = 0;
    for (int take = 0; take < (pair < 0 ? 1 : o.takes); ++take) {
      std::uint64_t our_sum = 0, their_sum = 0;
      const double mine = timed(ours, our_sum), theirs = timed(reference, their_sum);
      if (check == sums::compared && our_sum != their_sum) {
        std::fprintf(stderr, "row %s: the checksums differ: ours %llx, the reference's %llx\n", r.id.c_str(),
                     static_cast<unsigned long long>(our_sum), static_cast<unsigned long long>(their_sum));
        std::exit(1);
      }
      our_time = take == 0 ? mine : std::min(our_time, mine);
      their_time = take == 0 ? theirs : std::min(their_time, theirs);
    }
    if (pair < 0) continue;  // the first pair warms up
    our_times.push_back(our_time);
    their_times.push_back(their_time);
    ratios.push_back(their_time / our_time);
  }
  print_row(r, quantile(ratios, 0.25), quantile(ratios, 0.5),
            "ours " + milliseconds(quantile(our_times, 0.5)) + ", reference " +
                milliseconds(quantile(their_times, 0.5)) + ", " + std::to_string(o.pairs) + " pairs of " +
                std::to_string(o.takes) + " takes");
}
template <class Ours, class Reference>
void compare(const options& o, const row& r, Ours&& ours, Reference&& reference) {
  compare(o, r, ours, reference, [] {});
}

/// Epochs of a run that stays open: each call takes the next epoch, from an empty ring to the last batch.
template <class Run, class Look>
auto epochs_of(Run& run, Look look) {
  return [&run, look, number = std::uint64_t{0}]() mutable {
    std::uint64_t sum = 0;
    for (auto&& batch : run.epoch(number++)) sum += look(batch);
    return sum;
  };
}

/// Two bare threads, each with half of the work: the sum of `half(0)` and `half(1)`.
template <class Half>
std::uint64_t on_two_threads(Half&& half) {
  std::uint64_t other = 0;
  std::thread second([&] { other = half(1); });
  const std::uint64_t mine = half(0);
  second.join();
  return mine + other;
}

/// The main function of a benchmark program: options, and errors as one line.
template <class Body>
int run_main(int argc, char** argv, Body&& body) {
  const options o = read_options(argc, argv);
  try {
    body(o);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
}

}  // namespace bench
