// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The method of MLPerf Storage v3.0 and v2.0 over this library's readers and writers: how many simulated
// accelerators can this machine feed with the records of UNet3D, RetinaNet, ResNet-50 or CosmoFlow?
//
//     mlperf_storage --data /scratch/mlperf --workload unet3d --files 200
//     mlperf_storage --data /scratch/mlperf --workload retinanet --files 20000 --object-latency-us 20000
//     mlperf_storage --data /scratch/mlperf --workload cosmoflow --accelerator-type h100 --files 2000
//     mlperf_storage --data /scratch/mlperf --workload checkpoint --checkpoint-mib 4096
//
// These are not MLPerf results: containers are not those of MLPerf, its rules on the size of data sets hold
// only if you give --files that many, and accelerators are threads of one process.
//
// An accelerator waits for a batch, sleeps as long as computing would take, and waits for the others. Its
// utilisation (AU) is the share of time that it computes. The largest number of accelerators whose AU is at
// least 90 % (85 % for RetinaNet, 70 % for CosmoFlow) is searched. Beside it stands the number that a bare
// loop of pread could feed. `--scale` makes records and computing times shorter by one factor. With
// --object-latency-us, each sample is an object of a simulated store, which answers after that time. `--judge
// LOG` judges the steps that --log noted, and runs nothing.

#include "arguments.hpp"
#include "mlperf_checkpoint.hpp"
#include "mlperf_data.hpp"
#include "mlperf_training.hpp"
#include "mlperf_workloads.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/storage/file.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

// Four steps of 2 s of computing that wait 10, 1, 0 and 1 s for data and 0.5 s each at the barrier: 22 s, of
// which 12 belong to the first step and 6 of the other 10 are computing.
constexpr step_times by_hand[] = {{2, 12}, {2, 3}, {2, 2}, {2, 3}};
static_assert(judge(by_hand, 22, 5).utilisation == 60 && judge(by_hand, 22, 5).samples_per_second == 1);

constexpr double mib = 1024 * 1024;

void print(const training_result& r, const scaled_workload& w) {
  const double per_sample = w.record_bytes() / mib;  // nominal, as in DLIO
  std::printf(
      "[METRIC] Number of Simulated Accelerators: %llu\n"
      "[METRIC] Training Accelerator Utilization [AU] (%%): %.4f (%.4f)\n"
      "[METRIC] Training Throughput (samples/second): %.4f (%.4f)\n"
      "[METRIC] Training I/O Throughput (MB/second): %.4f (%.4f)\n"
      "[METRIC] train_au_meet_expectation: %s\n",
      static_cast<unsigned long long>(r.accelerators), r.utilisation.mean, r.utilisation.deviation,
      r.samples_per_second.mean, r.samples_per_second.deviation, r.samples_per_second.mean * per_sample,
      r.samples_per_second.deviation * per_sample, r.utilisation.mean >= w.of.threshold ? "success" : "fail");
  std::fflush(stdout);
}

/// A line for each epoch of each accelerator: their numbers, the time, and compute:processed of each step.
void append(const std::string& path, const std::vector<std::vector<epoch_times>>& times) {
  std::ofstream out(path, std::ios::app);
  out.precision(9);
  for (std::size_t e = 0; e < times.size(); ++e)
    for (std::size_t rank = 0; rank < times[e].size(); ++rank) {
      out << times[e].size() << ' ' << e << ' ' << rank << ' ' << times[e][rank].elapsed;
      for (const step_times& step : times[e][rank].steps) out << ' ' << step.compute << ':' << step.processed;
      out << '\n';
    }
  out.flush();
  if (!out) throw std::runtime_error("cannot write " + path);
}

/// What `append` wrote, by the number of accelerators; times that were noted later come later.
std::vector<std::vector<std::vector<epoch_times>>> noted(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::vector<std::vector<epoch_times>>> runs;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::size_t accelerators = 0, epoch = 0, rank = 0;
    epoch_times one;
    char colon = 0;
    words >> accelerators >> epoch >> rank >> one.elapsed;
    for (step_times step; words >> step.compute >> colon >> step.processed;) one.steps.push_back(step);
    if (!words.eof() || one.steps.size() < least_steps || rank >= accelerators)
      throw std::runtime_error(path + " has a line that --log does not write: '" + line.substr(0, 60) + "'");
    if (epoch == 0 && rank == 0) runs.emplace_back();
    if (runs.empty() || epoch != runs.back().size() - (rank == 0 ? 0 : 1) ||
        (rank != 0 && runs.back().back().size() != rank))
      throw std::runtime_error(path + " lacks the lines before '" + line.substr(0, 60) + "'");
    if (rank == 0) runs.back().emplace_back();
    runs.back().back().push_back(std::move(one));
  }
  if (runs.empty()) throw std::runtime_error("cannot read steps in " + path);
  return runs;
}

/// The largest number from 1 to `maximum` for which `feeds` holds, or 0: doubles, then halves what is left.
template <class F>
std::uint64_t largest(std::uint64_t maximum, F feeds) {
  std::uint64_t good = 0, bad = maximum + 1;
  for (std::uint64_t next = 1; good + 1 < bad;
       next = bad > maximum ? std::min(2 * good, maximum) : good + (bad - good) / 2)
    (feeds(next) ? good : bad) = next;
  return good;
}

/// Calls f with the plan of a workload's samples.
template <class F>
void with_samples(const data_set& data, const scaled_workload& w, std::chrono::microseconds latency, F f) {
  const resize_record resize(w.resized_side());
  if (latency.count() != 0) {
    f(object_samples(data, resize, latency));
    return;
  }
  if (w.of.name == "unet3d") {
    f(ps::directory(data.folder.string()) | ps::decode<ps::field<"bytes", ps::npy<std::uint8_t>>> |
      ps::map<"bytes">(resize) | ps::shuffle(ps::seed(123)));
    return;
  }
  // Read with pread: a record that is mapped and not looked at would not be read at all.
  const auto records = ps::webdataset(ps::file(data.files, {.access = ps::file_access::read})) |
                       ps::decode<ps::field<"npy", ps::npy<std::uint8_t>>> | ps::map<"npy">(resize);
  if (w.of.shuffled)
    f(records | ps::shuffle(ps::seed(123)));
  else
    f(records);
}

void training(arguments& given, const std::string& name) {
  const workload& of = workload_called(name);
  const std::string device = given.text("accelerator-type", std::string(of.accelerators[0].name));
  const scaled_workload w{of, accelerator_called(of, device), given.share("scale", 1)};
  if (const std::string steps = given.text("judge", ""); !steps.empty()) {
    given.done();
    for (const auto& times : noted(steps)) print(judge(times, w.on.batch), w);
    return;
  }
  const std::filesystem::path where = given.text("data");
  const std::chrono::microseconds latency(given.number("object-latency-us", 0, 10'000'000));
  const bool objects = latency.count() != 0;
  const std::uint64_t files = given.number("files", 0), only = given.number("num-accelerators", 0, 4096);
  const std::uint64_t max_wanted = given.number("max-accelerators", 64, 4096);
  const std::string log = given.text("log", "");
  const training_options how{
      .epochs = given.number("epochs", 5, 1000),
      .batch = w.on.batch,
      .compute_seconds = w.compute_seconds(),
      .read_threads = static_cast<unsigned>(given.number("read-threads", w.of.read_threads, 64)),
      .prefetch = given.number("prefetch", 2, 64),
      .cold = given.number("drop-cache", 1, 1) == 1};
  given.done();
  if (objects && name != "unet3d" && name != "retinanet")
    throw std::runtime_error("objects are read by unet3d and retinanet, and not by " + name);
  if (w.scale == 0 || how.epochs == 0) throw std::runtime_error("--scale and --epochs are more than 0");
  if (files == 0) throw std::runtime_error("--files is missing: how many files the data set has");
  if (max_wanted == 0) throw std::runtime_error("--max-accelerators is at least 1");
  const std::uint64_t max_with_steps = files * w.of.samples_per_file / w.on.batch / least_steps;
  if (max_with_steps < std::max<std::uint64_t>(only, 1))
    throw std::runtime_error("an epoch has fewer than 3 steps; give more --files");

  const data_set data = make_data(where, w, files, objects);
  const double bytes_per_sample = static_cast<double>(data.bytes) / static_cast<double>(data.samples);
  std::printf(
      "NOT an MLPerf result. The method of MLPerf Storage, workload %s, accelerator %s, scale %g.\n"
      "container differs from MLPerf's (%s); results are not MLPerf results\n"
      "%llu files, %llu samples, %.1f MB (MiB); %.3g s of computing for each batch of %llu\n",
      name.c_str(), device.c_str(), w.scale, std::string(w.of.container).c_str(),
      static_cast<unsigned long long>(files), static_cast<unsigned long long>(data.samples),
      static_cast<double>(data.bytes) / mib, how.compute_seconds, static_cast<unsigned long long>(how.batch));
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));

  const bare_reading bare = read_bare(data, how.read_threads, how.cold);
  const double least_rate = w.of.threshold / 100 * w.demand() * bytes_per_sample;
  const double limit = bare.bytes_per_second / least_rate;
  std::printf(
      "bare read loop: %.1f MB/second with %u threads, which could feed %.2f accelerators at AU %.0f %%\n",
      bare.bytes_per_second / mib, bare.threads, limit, w.of.threshold);
  std::fflush(stdout);

  with_samples(data, w, latency, [&](const auto& samples) {
    const auto feeds = [&](std::uint64_t accelerators) {
      const auto times = train(samples, data, accelerators, how);
      if (!log.empty()) append(log, times);
      std::uint64_t requests = 0;
      for (const epoch_times& one : times.back()) requests += one.requests;
      if (objects)
        std::printf("objects: %llu requests in all epochs, each after %llu us\n",
                    static_cast<unsigned long long>(requests),
                    static_cast<unsigned long long>(latency.count()));
      const training_result r = judge(times, how.batch);
      print(r, w);
      return r.utilisation.mean >= w.of.threshold;
    };
    std::uint64_t asked = only;
    if (only != 0) {
      feeds(only);
    } else {
      const std::uint64_t maximum = std::min(max_wanted, max_with_steps), found = largest(maximum, feeds);
      std::printf("accelerators at AU >= %.0f %%: %llu%s; bare read loop: %.0f\n", w.of.threshold,
                  static_cast<unsigned long long>(found),
                  found < maximum ? ""
                  : max_with_steps < max_wanted
                      ? " or more (there are no samples for more; give more --files)"
                      : " or more (see --max-accelerators)",
                  std::floor(limit));
      asked = std::max<std::uint64_t>(found, 1);
    }
    const std::uint64_t required = w.required_files(memory, asked);
    if (files < required)
      std::printf(
          "MLPerf would ask for %llu files or more here (five times this host's memory, 500 steps); "
          "there are %llu\n",
          static_cast<unsigned long long>(required), static_cast<unsigned long long>(files));
  });
}

void checkpoint(arguments& given, const std::filesystem::path& where) {
  const std::uint64_t size = given.number("checkpoint-mib", 1024, 1 << 20);
  const std::uint64_t parts = given.number("processes", 8, 1024),
                      rounds = given.number("checkpoints", 10, 1000);
  given.done();
  if (parts == 0 || size < parts || rounds == 0)
    throw std::runtime_error(
        "give at least one MiB for each of --processes, and at least 1 of --checkpoints");
  const std::uint64_t part_bytes = size * 1024 * 1024 / parts;
  const double gib = static_cast<double>(part_bytes * parts) / (1024 * mib);
  std::printf(
      "NOT an MLPerf result. Checkpoints of %.3f GB (GiB) by %llu writers; MLPerf's smallest, Llama3 8B, has "
      "105 by 8 processes.\n"
      "container differs from MLPerf's (PyTorch files; here tar shards); results are not MLPerf results\n",
      gib, static_cast<unsigned long long>(parts));
  std::vector<double> save_time, load_time, save_rate, load_rate;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const checkpoint_times took = save_and_load(where / "checkpoint", part_bytes, parts);
    save_time.push_back(took.save);
    load_time.push_back(took.load);
    save_rate.push_back(gib / took.save);
    load_rate.push_back(gib / took.load);
  }
  std::printf(
      "[METRIC] Checkpoint save duration (seconds): %.4f (%.4f)\n"
      "[METRIC] Checkpoint save I/O Throughput (GB/second): %.4f (%.4f)\n"
      "[METRIC] Checkpoint load duration (seconds): %.4f (%.4f)\n"
      "[METRIC] Checkpoint load I/O Throughput (GB/second): %.4f (%.4f)\n",
      summary(save_time).mean, summary(save_time).deviation, summary(save_rate).mean,
      summary(save_rate).deviation, summary(load_time).mean, summary(load_time).deviation,
      summary(load_rate).mean, summary(load_rate).deviation);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage =
        "mlperf_storage --data DIR --workload unet3d|retinanet|resnet50|cosmoflow --files N [--scale 1] "
        "[--accelerator-type a100|h100|b200|mi355] [--object-latency-us 0] [--num-accelerators N | "
        "--max-accelerators 64] [--epochs 5] "
        "[--read-threads "
        "N] "
        "[--prefetch 2] [--drop-cache 1] [--log FILE]\n"
        "       mlperf_storage --workload W [--accelerator-type A] [--scale 1] --judge FILE\n"
        "       mlperf_storage --data DIR --workload checkpoint [--checkpoint-mib 1024] [--processes 8] "
        "[--checkpoints 10]";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    const std::string name = given.text("workload");
    name == "checkpoint" ? checkpoint(given, given.text("data")) : training(given, name);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mlperf_storage: %s\n", e.what());
    return 1;
  }
}
