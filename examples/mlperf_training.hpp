// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlperf_data.hpp"
#include "mlperf_workloads.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

// Simulated accelerators that train: each is a thread with a loader of its own, as MLPerf's are processes.

/// The tensor that MLPerf's readers hand on in the place of every record. It is constant.
class resized_tensor {
 public:
  using unfinished = void;
  using value_type = std::uint8_t;

  explicit resized_tensor(const std::vector<std::uint8_t>& values, std::uint64_t side)
      : values_(&values), shape_(side, side) {}
  [[nodiscard]] const penstock::extents& shape() const { return shape_; }
  void write_to(std::uint8_t* into) const { std::memcpy(into, values_->data(), values_->size()); }
  [[nodiscard]] penstock::tensor_view<const std::uint8_t> finish() const { return {values_->data(), shape_}; }

 private:
  const std::vector<std::uint8_t>* values_;
  penstock::extents shape_;
};

/// Hands on the constant tensor for a record, which `map` has loaded whole when it calls.
class resize_record {
 public:
  explicit resize_record(std::uint64_t side)
      : side_(side),
        values_(std::make_shared<const std::vector<std::uint8_t>>(side * side, std::uint8_t{1})) {}

  resized_tensor operator()(penstock::tensor_view<const std::uint8_t>) const {
    return resized_tensor(*values_, side_);
  }

 private:
  std::uint64_t side_;
  std::shared_ptr<const std::vector<std::uint8_t>> values_;
};

/// The samples of a data set, in a shuffled order, each in an object of a store that answers after `latency`.
/// 64 reads may be in flight, as in DLIO.
inline auto object_samples(const data_set& data, const resize_record& resize,
                           std::chrono::microseconds latency) {
  namespace ps = penstock;
  return ps::webdataset(ps::simulated_storage(ps::file(data.files, {.access = ps::file_access::read}),
                                              {.latency = latency, .max_in_flight = 64})) |
         ps::decode<ps::field<"npy", ps::npy<std::uint8_t>>> | ps::map<"npy">(resize) |
         ps::shuffle(ps::seed(123));
}

struct training_options {
  std::uint64_t epochs, batch;
  double compute_seconds;
  unsigned read_threads;
  std::uint64_t prefetch;
  bool cold;
};

/// What an accelerator did in an epoch.
struct epoch_times {
  std::vector<step_times> steps;
  double elapsed = 0;
  std::uint64_t requests = 0;  ///< to the storage, since the run was opened
};

/// Returns the times by epoch and accelerator. The plan has neither shards nor batches yet.
template <class Samples>
std::vector<std::vector<epoch_times>> train(const Samples& samples, const data_set& data,
                                            std::uint64_t accelerators, const training_options& how) {
  namespace ps = penstock;
  using clock = std::chrono::steady_clock;
  std::vector<std::vector<epoch_times>> times(how.epochs, std::vector<epoch_times>(accelerators));
  std::vector<std::exception_ptr> failures(accelerators);
  std::atomic<bool> stopped{false};
  std::barrier<> everyone(static_cast<std::ptrdiff_t>(accelerators));

  const auto accelerator = [&](std::uint64_t rank) {
    // Readers give way to the accelerators, which have a loop to run and next to nothing to compute.
    const auto loader = samples | ps::shard(rank, accelerators) | ps::batch(how.batch, ps::tail::drop) |
                        ps::workers(how.read_threads, {.nice = 10}) |
                        ps::prefetch(how.prefetch + 1);  // and the one it holds
    auto run = loader.open();  // one for all epochs, so that only the first one waits for fresh memory
    for (std::uint64_t e = 0; e < how.epochs && !stopped; ++e) {
      if (rank == 0 && how.cold) data.drop_from_cache();
      everyone.arrive_and_wait();
      epoch_times& mine = times[e][rank];
      const auto start = clock::now();
      auto began = start;
      for (auto&& batch : run.epoch(e)) {  // nothing is read ahead over the epoch's end
        if (batch.size() != how.batch) throw std::runtime_error("a batch is not whole");
        const auto loaded = clock::now();
        std::this_thread::sleep_for(std::chrono::duration<double>(how.compute_seconds));
        const auto computed = clock::now();
        mine.steps.push_back({std::chrono::duration<double>(computed - loaded).count(),
                              std::chrono::duration<double>(computed - began).count()});
        everyone.arrive_and_wait();  // where real ones would sum up their gradients
        if (stopped) return;
        began = clock::now();
      }
      everyone.arrive_and_wait();
      mine.elapsed = std::chrono::duration<double>(clock::now() - start).count();
      mine.requests = run.counters().storage.requests;
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::uint64_t rank = 0; rank < accelerators; ++rank)
        threads.emplace_back([&, rank] {
          try {
            accelerator(rank);
          } catch (...) {
            failures[rank] = std::current_exception();
            stopped = true;
          }
          everyone.arrive_and_drop();  // so that nobody waits for one that has ended
        });
    } catch (...) {
      stopped = true;
      for (std::size_t rank = threads.size(); rank < accelerators; ++rank) everyone.arrive_and_drop();
      throw;
    }
  }
  for (const std::exception_ptr& e : failures)
    if (e) std::rethrow_exception(e);
  return times;
}

/// The figures of a run: means over the epochs, where each is the mean of all accelerators' utilisations and
/// the sum of their throughputs.
struct training_result {
  std::uint64_t accelerators;
  mean_and_deviation utilisation, samples_per_second;
};

inline training_result judge(const std::vector<std::vector<epoch_times>>& times, std::uint64_t batch) {
  std::vector<double> utilisation, rate;
  for (const auto& epoch : times) {
    utilisation.push_back(0);
    rate.push_back(0);
    for (const epoch_times& one : epoch) {
      const judgement j = judge(one.steps, one.elapsed, batch);
      utilisation.back() += j.utilisation / static_cast<double>(epoch.size());
      rate.back() += j.samples_per_second;
    }
  }
  return {times.front().size(), summary(utilisation), summary(rate)};
}
