// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 12: memory. Flat over 10 million samples; the cost of a worker; the bound that `memory(bytes)` keeps.

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/core/record.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/synthetic.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0, resident = 0, shared = 0;
  if (!(statm >> total >> resident >> shared)) throw std::runtime_error("cannot read /proc/self/statm");
  return (resident - shared) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));  // without mapped files
}
double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

void flat(const bench::options& o, const bench::folder& folder) {
  const bench::row r{
      "12a", "growth of memory from 1 M to 10 M samples of 1 KB from tar, shuffled, 2 workers, MB", 1, true};
  if (!o.wants(r.id)) return;
  const auto names = bench::write_shards(folder, 10, 10'000, 1024, true);
  const std::uint64_t step = o.quick ? 100'000 : 1'000'000;
  auto run = (ps::webdataset(names) | ps::shuffle(ps::seed(7)) | ps::fields<"bin", "cls"> | ps::batch(64) |
              ps::workers(2))
                 .open();
  std::uint64_t samples = 0, next = step, first = 0, highest = 0;
  std::string seen;
  for (auto epoch : run.epochs(10 * step / 100'000)) {
    for (auto&& b : epoch) {
      samples += b.size();
      if (samples < next) continue;
      next += step;
      const std::uint64_t now = resident_bytes();
      if (first == 0) first = now;
      highest = std::max(highest, now);
      char text[32];
      std::snprintf(text, sizeof text, "%s%.1f", seen.empty() ? "" : " ", megabytes(now));
      seen += text;
    }
  }
  const double growth = megabytes(highest - first);
  bench::print_row(r, growth, growth, "MB at each tenth of " + std::to_string(samples) + " samples: " + seen);
}

/// The memory of a run with `count` workers in its steady state, including batches.
std::uint64_t run_takes(const std::vector<std::string>& names, unsigned count) {
  const std::uint64_t before = resident_bytes();
  std::uint64_t highest = 0;
  auto run = (ps::webdataset(names) | ps::shuffle(ps::seed(7)) | ps::fields<"bin", "cls"> | ps::batch(64) |
              ps::prefetch(31) | ps::workers(count))
                 .open();
  for (auto epoch : run.epochs(3))
    for (auto&& b : epoch)
      if (b.step() % 256 == 255) highest = std::max(highest, resident_bytes());
  return highest - std::min(before, highest);
}

/// Calls f in a process of its own, so that memory kept by the allocator does not serve the next
/// measurement.
template <class F>
std::uint64_t in_a_process(F&& f) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) {
    int failed = 1;
    try {
      const std::uint64_t value = f();
      failed = ::write(ends[1], &value, sizeof value) == static_cast<ssize_t>(sizeof value) ? 0 : 1;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    ::_exit(failed);
  }
  ::close(ends[1]);
  std::uint64_t value = 0;
  const bool good = ::read(ends[0], &value, sizeof value) == static_cast<ssize_t>(sizeof value);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  if (!good) throw std::runtime_error("a measurement in a process of its own failed");
  return value;
}

void of_workers(const bench::options& o, const bench::folder& folder) {
  const bench::row r{"12b", "memory that a further worker adds beside its batches, MB", 6, true};
  if (!o.wants(r.id)) return;
  const auto names = bench::write_shards(folder, 10, 10'000, 1024, true);
  const std::uint64_t one = in_a_process([&] { return run_takes(names, 1); });
  const std::uint64_t seventeen = in_a_process([&] { return run_takes(names, 17); });
  const double each = (megabytes(seventeen) - megabytes(one)) / 16;
  bench::print_row(r, each, each,
                   "32 batches in flight both times: 1 worker " + std::to_string(megabytes(one)) +
                       " MB, 17 workers " + std::to_string(megabytes(seventeen)) + " MB");
}

void bounded(const bench::options& o) {
  const bench::row r{"12c", "memory(64 MB), batches of 7 MB, prefetch(32): bytes held, share of the limit", 1,
                     true};
  if (!o.wants(r.id)) return;
  constexpr std::uint64_t limit = 64'000'000;
  const std::uint64_t before = resident_bytes();
  std::uint64_t held = 0, resident = 0;
  {
    auto run =
        (ps::synthetic({.samples = o.quick ? 2'000u : 20'000u, .bytes = 110'000}) | ps::shuffle(ps::seed(7)) |
         ps::batch(64) | ps::prefetch(32) | ps::memory(limit) | ps::workers(2))
            .open();
    for (auto&& b : run) {
      bench::escape(b.values().data());
      held = std::max(held, run.counters().bytes_held);
      resident = std::max(resident, resident_bytes());
    }
  }
  const double share = static_cast<double>(held) / static_cast<double>(limit);
  bench::print_row(r, share, share,
                   "most held " + std::to_string(megabytes(held)) +
                       " MB, most of the process beside what it had " +
                       std::to_string(megabytes(resident - std::min(before, resident))) + " MB");
}

void measure(const bench::options& o) {
  const bench::folder folder(o, "footprint");
  flat(o, folder);
  of_workers(o, folder);
  bounded(o);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
