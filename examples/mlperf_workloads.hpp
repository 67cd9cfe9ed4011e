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

// The training workloads of MLPerf Storage, and how it judges a run. Version 3.0 runs UNet3D on B200, and
// RetinaNet on B200 and MI355, from files or objects; version 2.0 had the others.
// Source: github.com/mlcommons/storage, configs/dlio/workload/*.yaml (unet3d_b200 of commit 0d75b417,
// retinanet_b200 of 11460d00, retinanet_mi355 of 76f45459, the others of version 2.0) and training/README.md
// of 3a1e063d; github.com/argonne-lcf/dlio_benchmark and github.com/mlcommons/DLIO_local_changes (53c2fd3d),
// utils/statscounter.py, which judge alike.

struct accelerator {
  std::string_view name;
  std::uint64_t batch;
  double seconds;  ///< of computing for each batch
};

struct workload {
  std::string_view name;
  std::string_view container;  ///< MLPerf's, and what stands for it here
  std::uint64_t samples_per_file;
  double record_bytes, record_stdev;  ///< nominal
  std::uint64_t resized_bytes;        ///< what the reader hands on; 0: as many as a record has
  unsigned read_threads;
  double threshold;  ///< the least accelerator utilisation, in percent
  bool shuffled;
  std::array<accelerator, 3> accelerators;  ///< the first is the default
};

inline constexpr std::array<workload, 4> workloads{{
    {"unet3d",
     "npz; here npy files, as objects tar shards",
     1,
     146600628,
     68341808,
     2097152,
     4,
     90,
     true,
     {{{"a100", 7, 0.636}, {"h100", 7, 0.323}, {"b200", 7, 0.162}}}},
    {"retinanet",
     "JPEG; here tar shards",
     1,
     322957,
     0,
     0,
     8,
     85,
     true,
     {{{"b200", 24, 0.04755}, {"mi355", 32, 0.0634}}}},
    {"resnet50",
     "TFRecord; here tar shards",
     1251,
     114660.07,
     0,
     150528,
     8,
     90,
     false,
     {{{"a100", 400, 0.435}, {"h100", 400, 0.224}}}},
    {"cosmoflow",
     "TFRecord; here tar shards",
     1,
     2828486,
     71311,
     0,
     4,
     70,
     true,
     {{{"a100", 1, 0.00551}, {"h100", 1, 0.00350}}}},
}};

inline const workload& workload_called(const std::string& name) {
  for (const workload& w : workloads)
    if (w.name == name) return w;
  throw std::runtime_error("there is no workload '" + name +
                           "'; give unet3d, retinanet, resnet50 or cosmoflow");
}

inline const accelerator& accelerator_called(const workload& w, const std::string& name) {
  std::string all;
  for (const accelerator& one : w.accelerators) {
    if (one.batch == 0) continue;
    if (one.name == name) return one;
    all += (all.empty() ? "" : " or ") + std::string(one.name);
  }
  throw std::runtime_error("--accelerator-type of " + std::string(w.name) + " is " + all + ", and not '" +
                           name + "'");
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
  const accelerator& on;
  double scale;

  [[nodiscard]] double record_bytes() const { return of.record_bytes * scale; }
  [[nodiscard]] double compute_seconds() const { return on.seconds * scale; }
  /// The side of the square tensor that the reader hands on.
  [[nodiscard]] std::uint64_t resized_side() const {
    const double bytes = of.resized_bytes != 0 ? static_cast<double>(of.resized_bytes) : of.record_bytes;
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::sqrt(bytes * scale)));
  }
  /// Samples per second that keep one accelerator busy.
  [[nodiscard]] double demand() const { return static_cast<double>(on.batch) / compute_seconds(); }
  /// MLPerf's rule for the size of a data set: five times the host's memory, and 500 steps an epoch.
  [[nodiscard]] std::uint64_t required_files(double memory, std::uint64_t accelerators) const {
    const auto per_file = static_cast<double>(of.samples_per_file);
    return static_cast<std::uint64_t>(
        std::ceil(std::max(5 * memory / (record_bytes() * per_file),
                           500.0 * static_cast<double>(on.batch * accelerators) / per_file)));
  }
};
