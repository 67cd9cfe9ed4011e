// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 20: the gain from fetching ahead with a storage that takes 20 ms per read, and its cost where it
// cannot help. The stall is reported without a bar; both figures depend on the number of processors.

#include "support/cold.hpp"
#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/device/simulated.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

using namespace std::chrono_literals;

/// The share of time, in percent, that an accelerator taking 5 ms per batch waits, without the first 20
/// batches.
template <class Plan>
double stall_of(const Plan& plan, const ps::simulated& accelerator, int batches) {
  auto run = plan.open();
  double began = 0, waited = 0;
  int n = 0;
  for (auto&& b : run) {
    if (n == 20) began = bench::seconds_now(), waited = run.counters().stall_seconds;
    bench::escape(b.device_data());
    accelerator.step();
    if (++n == batches) break;
  }
  return 100 * (run.counters().stall_seconds - waited) / (bench::seconds_now() - began);
}

void far(const bench::options& o, const bench::folder& folder) {
  const bench::row ahead{"20a", "20 ms a read, 110 KB samples, 1 worker, 5 ms per batch of 8: stall, %", 2,
                         true};
  const bench::row alone{"20b", "the same without read-ahead, stall, %", 0};
  if (!o.wants("20a") && !o.wants("20b")) return;
  const auto names = bench::write_shards(folder, 2, 1664, bench::sample_bytes, false);
  const auto with = [&](const bench::row& r, std::uint64_t samples, int batches) {
    if (!o.wants(r.id)) return;
    std::vector<double> stalls;
    for (int i = 0; i < (o.quick ? 1 : 5); ++i) {
      const ps::simulated accelerator({.step = 5ms});
      const ps::simulated_storage storage(ps::file(names), {.latency = 20ms});
      const auto plan = ps::webdataset(storage) | ps::shuffle(ps::seed(7)) | ps::prefetch(samples) |
                        ps::fields<"bin"> | ps::batch(8) | ps::pin_and_copy(accelerator) | ps::workers(1);
      stalls.push_back(stall_of(plan, accelerator, batches));
    }
    bench::print_row(r, bench::quantile(stalls, 0.75), bench::quantile(stalls, 0.5),
                     "prefetch(" + std::to_string(samples) + "), " + std::to_string(stalls.size()) + " runs");
  };
  with(ahead, 256, o.quick ? 60 : 400);
  with(alone, 0, 30);
}

void warm(const bench::options& o, const bench::folder& folder) {
  const bench::row large{"20c", "page cache warm, 110 KB, 1 worker: prefetch(64) / none", 0.95};
  const bench::row small{"20d", "page cache warm, 1 KB, 1 worker: prefetch(256) / none", 0.95};
  const auto one = [&](const bench::row& r, std::size_t bytes, std::uint64_t each, std::uint64_t ahead) {
    if (!o.wants(r.id)) return;
    const bench::folder here(o, "warm_" + r.id);
    const auto names = bench::write_shards(here, 4, each, bytes, false);
    const auto plan =
        ps::webdataset(names) | ps::shuffle(ps::seed(7)) | ps::fields<"bin"> | ps::batch(64) | ps::workers(1);
    const auto asked = ps::webdataset(names) | ps::shuffle(ps::seed(7)) | ps::prefetch(ahead) |
                       ps::fields<"bin"> | ps::batch(64) | ps::workers(1);
    const auto pass = [bytes](const auto& loader) {
      std::uint64_t sum = 0;
      for (auto&& b : loader.epoch(0))
        sum +=
            bench::first_words(reinterpret_cast<const std::byte*>(ps::get<"bin">(b).data()), b.size(), bytes);
      return sum;
    };
    (void)pass(plan);
    bench::compare(
        o, r, [&] { return pass(asked); }, [&] { return pass(plan); }, [] {});
  };
  (void)folder;
  one(large, bench::sample_bytes, 1024, 64);
  one(small, 1024, o.quick ? 2000 : 50'000, 256);
}

void measure(const bench::options& o) {
  if (!o.wants("20a") && !o.wants("20b") && !o.wants("20c") && !o.wants("20d")) return;
  const bench::folder folder(o, "fetch");
  far(o, folder);
  warm(o, folder);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
