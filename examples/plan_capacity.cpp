// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What a cluster needs so that its accelerators do not wait for data: nodes, processors, network, cache,
// requests to the object store and memory for reading ahead; and what limits first.
//
//     plan_capacity --workload retinanet --accelerators 64 --data /scratch/plan
//     plan_capacity --bytes 110000 --batch 256 --step-ms 120 --samples 14e6 --accelerators 512
//                   --processor-us 900 --requests 0.02 --hit-share 0.6 --node-processors 96 --node-gbit 100
//
// A sample's bytes, requests and processor time come from a run of yours, as `report` prints them, or with
// --data from a short run here: over records of the workload, made there, each an object of a store that
// answers after --latency-ms.
// That run reads and copies samples, and decodes nothing. --requests below 1: samples that lie together
// become one request. The workloads are those of MLPerf Storage, see mlperf_workloads.hpp.

#include "arguments.hpp"
#include "mlperf_data.hpp"
#include "mlperf_training.hpp"
#include "mlperf_workloads.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

namespace ps = penstock;

namespace {

constexpr double mib = 1024 * 1024, gib = 1024 * mib;

/// What one sample takes.
struct sample_cost {
  double bytes = 0, requests = 0, processor_seconds = 0;
};

double processor_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Reads two epochs of the workload's records, of which the second counts.
sample_cost measure(const data_set& data, const scaled_workload& w, std::chrono::microseconds latency) {
  const auto loader = object_samples(data, resize_record(w.resized_side()), latency) |
                      ps::batch(w.on.batch, ps::tail::keep) | ps::workers(1);
  auto run = loader.open();
  ps::run_counters before;
  double began = 0;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    before = run.counters();
    began = processor_time();
    for (auto&& batch : run.epoch(epoch)) (void)batch.size();
  }
  const double used = processor_time() - began;
  const ps::run_counters spent = ps::since(run.counters(), before);
  const auto samples = static_cast<double>(spent.samples);
  return {static_cast<double>(spent.storage.bytes) / samples,
          static_cast<double>(spent.storage.requests) / samples, used / samples};
}

/// The resource that feeds the fewest accelerators.
struct limit {
  std::string name = "none of those given";
  double feeds = 0;  ///< accelerators

  void consider(const char* what, double has, double needed_by_each) {
    if (has <= 0 || needed_by_each <= 0) return;
    std::printf("  %-12s for %.0f\n", what, std::floor(has / needed_by_each + 1e-9));
    if (name.starts_with("none") || has / needed_by_each < feeds) name = what, feeds = has / needed_by_each;
  }
};

void plan(arguments& given) {
  const std::string preset = given.text("workload", ""), data = given.text("data", "");
  const double latency = given.real("latency-ms", 20) * 1e-3;
  sample_cost each;
  double batch = 0, step = 0;
  std::optional<scaled_workload> w;
  if (!preset.empty()) {
    const workload& of = workload_called(preset);
    const accelerator& on =
        accelerator_called(of, given.text("accelerator-type", std::string(of.accelerators[0].name)));
    w.emplace(scaled_workload{of, on, given.share("scale", 1)});
    each = {w->record_bytes(), 1 / static_cast<double>(of.samples_per_file), 0};
    batch = static_cast<double>(on.batch), step = w->compute_seconds();
  }
  if (!data.empty()) {
    const std::uint64_t files = given.number("files", 96);
    if (!w || w->of.samples_per_file != 1 || files == 0)
      throw std::runtime_error(
          "--data needs --workload unet3d, retinanet or cosmoflow, and --files of at least 1");
    each = measure(make_data(data, *w, files, true), *w,
                   std::chrono::microseconds(static_cast<std::int64_t>(latency * 1e6)));
    std::printf("measured: %.0f bytes, %.4g requests and %.4g us of a processor a sample\n", each.bytes,
                each.requests, each.processor_seconds * 1e6);
  }
  each.bytes = given.real("bytes", each.bytes);
  batch = given.real("batch", batch), step = given.real("step-ms", step * 1e3) * 1e-3;
  each.requests = given.real("requests", each.requests);
  // in parts
  if (each.bytes > 16 * mib) each.requests = std::max(each.requests, std::ceil(each.bytes / (16 * mib)));
  each.processor_seconds = given.real("processor-us", each.processor_seconds * 1e6) * 1e-6;
  const double decoded = given.real("decoded-bytes", each.bytes);
  const auto accelerators = static_cast<double>(given.number("accelerators", 0, 1 << 24));
  const auto per_node = static_cast<double>(given.number("node-accelerators", 8, 1024));
  const double node_processors = given.real("node-processors", 0),
               node_network = given.real("node-gbit", 0) * 1e9 / 8;
  const double node_memory = given.real("node-gib", 0) * gib;
  const double store_requests = given.real("store-requests", 0),
               store_network = given.real("store-gbit", 0) * 1e9 / 8;
  const double hits = given.share("hit-share", 0), ahead = given.real("prefetch", 2, 1024) + 1;
  double samples = given.real("samples", 0);
  given.done();
  if (accelerators == 0 || per_node == 0)
    throw std::runtime_error("--accelerators and --node-accelerators are at least 1");
  if (each.bytes <= 0 || batch <= 0 || step <= 0)
    throw std::runtime_error("give --workload, or --bytes of a sample, --batch and --step-ms");

  // What one accelerator asks for in a second, and what of it comes from the store.
  const double rate = batch / step, fetched = rate * each.bytes * (1 - hits);
  const double requests = rate * each.requests * (1 - hits), busy = rate * each.processor_seconds;
  double nodes = std::ceil(accelerators / per_node);
  const bool by_rule = samples == 0 && w;
  if (by_rule)
    samples =
        static_cast<double>(w->required_files(nodes * node_memory, static_cast<std::uint64_t>(accelerators)) *
                            w->of.samples_per_file);
  std::printf("target: %.0f accelerators with batches of %.0f in %.4g ms: %.6g samples/s, %.4g GB/s\n",
              accelerators, batch, step * 1e3, accelerators * rate, accelerators * rate * each.bytes * 1e-9);
  if (w)
    std::printf(
        "  MLPerf Storage asks %s on %s for a utilisation of %.0f %%: then %.0f %% of all rates are enough\n",
        std::string(w->of.name).c_str(), std::string(w->on.name).c_str(), w->of.threshold, w->of.threshold);
  if (samples > 0)
    std::printf("epoch: %.0f samples of %.4g GB in all, %.4g s%s\n", samples, samples * each.bytes * 1e-9,
                samples / (accelerators * rate), by_rule ? "; MLPerf's least" : "");

  // Little's law: what is in flight is the rate times the latency. Penstock keeps 1.25 times what it fetches.
  const double in_flight = requests * latency, prefetch = std::ceil(1.25 * fetched * latency / mib);
  const double memory = prefetch * mib + ahead * batch * decoded;
  std::printf("enough for so many accelerators, with %.0f nodes of %.0f:\n", nodes, per_node);
  limit first;
  first.consider("accelerators", nodes * per_node, 1);
  first.consider("processors", nodes * node_processors, busy);
  first.consider("network", nodes * node_network, fetched);
  first.consider("memory", nodes * node_memory, memory);
  const limit of_nodes = first;  // these grow with the nodes
  first.consider("store rate", store_requests, requests);
  first.consider("store link", store_network, fetched);
  std::printf("limits first: %s, for %.0f of %.0f accelerators\n", first.name.c_str(),
              std::floor(first.feeds + 1e-9), accelerators);

  nodes = std::ceil(nodes * std::max(1.0, accelerators / of_nodes.feeds) - 1e-9);
  const double here = accelerators / nodes;  // accelerators a node, on average
  std::printf("nodes: %.0f\n", nodes);
  if (each.processor_seconds > 0)
    std::printf("processors: %.4g a node for loading, %.0f workers for each accelerator\n", here * busy,
                std::max(1.0, std::ceil(busy)));
  std::printf("network: %.4g GB/s a node, %.4g GB/s in all\n", here * fetched * 1e-9,
              accelerators * fetched * 1e-9);
  if (hits > 0 && samples > 0)
    std::printf("cache: %.4g GB that all nodes share, or as much in each, for %.4g %% hits\n",
                hits * samples * each.bytes * 1e-9, 100 * hits);
  std::printf("object store: %.6g requests/s, %.4g GB/s\n", accelerators * requests,
              accelerators * fetched * 1e-9);
  std::printf("in flight: %.4g requests for each accelerator, %.4g in all, at %.4g ms\n", in_flight,
              accelerators * in_flight, latency * 1e3);
  std::printf(
      "read ahead: prefetch(%.0f_MiB) before batch for each accelerator; with %.0f batches %.4g GiB a node\n",
      std::max(1.0, prefetch), ahead, here * memory / gib);
  if (first.feeds < accelerators && first.feeds < of_nodes.feeds)
    std::printf(
        "short: %s feeds %.0f %% of the accelerators; cache more, read fewer bytes or in larger requests\n",
        first.name.c_str(), std::floor(100 * first.feeds / accelerators));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage =
        "plan_capacity --accelerators N {--workload unet3d|retinanet|resnet50|cosmoflow [--accelerator-type "
        "A] "
        "[--scale 1] [--data DIR [--files 96]] | --bytes B --batch N --step-ms T} [--samples N] "
        "[--processor-us T] "
        "[--requests R] [--decoded-bytes B] [--hit-share 0] [--latency-ms 20] [--prefetch 2] "
        "[--node-accelerators 8] "
        "[--node-processors N] [--node-gbit G] [--node-gib G] [--store-requests N] [--store-gbit G]";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    plan(given);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "plan_capacity: %s\n", e.what());
    return 1;
  }
}
