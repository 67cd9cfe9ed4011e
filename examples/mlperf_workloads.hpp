// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

// The workloads of MLPerf Storage v2.0, training, and how it judges a run.
// Source: github.com/mlcommons/storage, configs/dlio/workload/*.yaml; github.com/argonne-lcf/dlio_benchmark,
// utils/statscounter.py.

struct workload {
  std::string_view name;
  std::string_view container;  ///< MLPerf's, and what stands for it here
  std::uint64_t samples_per_file;
  double record_bytes, record_stdev;  ///< nominal
  std::uint64_t resized_bytes;        ///< what the reader hands on; 0: as many as a record has
  std::uint64_t batch;
  double a100_seconds, h100_seconds;  ///< of computing for each batch
  unsigned read_threads;
  double threshold;  ///< the least accelerator utilisation, in percent
  bool shuffled;
};

inline constexpr std::array<workload, 3> workloads{{
    {"unet3d", "npz; here npy files", 1, 146600628, 68341808, 2097152, 7, 0.636, 0.323, 4, 90, true},
    {"resnet50", "TFRecord; here tar shards", 1251, 114660.07, 0, 150528, 400, 0.435, 0.224, 8, 90, false},
    {"cosmoflow", "TFRecord; here tar shards", 1, 2828486, 71311, 0, 1, 0.00551, 0.00350, 4, 70, true},
}};

inline const workload& workload_called(const std::string& name) {
  for (const workload& w : workloads)
    if (w.name == name) return w;
  throw std::runtime_error("there is no workload '" + name + "'; give unet3d, resnet50 or cosmoflow");
}

/// What one step of one accelerator took, in seconds: `processed` is from when it began to wait for its batch
/// until it had computed, without the barrier that follows.
struct step_times {
  double compute, processed;
};

struct judgement {
  double utilisation;  ///< AU, in percent
  double samples_per_second;
};

/// Judges an epoch of one accelerator, as DLIO does: the first step does not count, so that starting up does
/// not; waiting for others at the barrier does. That two steps are taken off for the throughput is DLIO's.
constexpr judgement judge(std::span<const step_times> steps, double elapsed, std::uint64_t batch) {
  double computing = 0;
  for (const step_times& step : steps.subspan(1)) computing += step.compute;
  const double counted = elapsed - steps[0].processed;
  return {100 * computing / counted, static_cast<double>((steps.size() - 2) * batch) / counted};
}
/// The fewest steps of an epoch that can be judged.
inline constexpr std::uint64_t least_steps = 3;

struct mean_and_deviation {
  double mean = 0, deviation = 0;
};
inline mean_and_deviation summary(std::span<const double> values) {
  mean_and_deviation s;
  const auto count = static_cast<double>(values.size());
  for (const double v : values) s.mean += v / count;
  for (const double v : values) s.deviation += (v - s.mean) * (v - s.mean) / count;
  s.deviation = std::sqrt(s.deviation);
  return s;
}

/// A workload with records and computing times of `scale` times their size, so that an accelerator demands as
/// many bytes per second as MLPerf's does.
struct scaled_workload {
  const workload& of;
  double scale;
  bool h100;

  [[nodiscard]] double record_bytes() const { return of.record_bytes * scale; }
  [[nodiscard]] double compute_seconds() const { return (h100 ? of.h100_seconds : of.a100_seconds) * scale; }
  /// The side of the square tensor that the reader hands on.
  [[nodiscard]] std::uint64_t resized_side() const {
    const double bytes = of.resized_bytes != 0 ? static_cast<double>(of.resized_bytes) : of.record_bytes;
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::sqrt(bytes * scale)));
  }
  /// Samples per second that keep one accelerator busy.
  [[nodiscard]] double demand() const { return static_cast<double>(of.batch) / compute_seconds(); }
  /// MLPerf's rule for the size of a data set: five times the host's memory, and 500 steps an epoch.
  [[nodiscard]] std::uint64_t required_files(double memory, std::uint64_t accelerators) const {
    const auto per_file = static_cast<double>(of.samples_per_file);
    return static_cast<std::uint64_t>(
        std::ceil(std::max(5 * memory / (record_bytes() * per_file),
                           500.0 * static_cast<double>(of.batch * accelerators) / per_file)));
  }
};
