// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No loader: threads that each copy every n-th batch out of a mapped file into a block of their own, again
// and again, and hand it to nobody. What no loader can pass that copies each sample once. The arguments and
// the output are those of libtorch.cpp.

#include "peers/npy_rows.hpp"
#include "peers/usage.hpp"
#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/base/cold_copy.hpp>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

struct task {
  double least_seconds;
  std::size_t samples, batch, threads, bytes;
  const std::byte* rows;
};

/// The share of one thread in an epoch; `block` has room for a batch.
std::uint64_t copy_share(const task& t, std::size_t thread, std::vector<std::byte>& block) {
  penstock::detail::cold_copy copy;
  std::uint64_t words = 0;
  for (std::size_t first = thread * t.batch; first < t.samples; first += t.threads * t.batch) {
    const std::size_t count = std::min(t.batch, t.samples - first);
    for (std::size_t i = 0; i < count; ++i)
      copy({block.data() + i * t.bytes, t.bytes}, t.rows + (first + i) * t.bytes);
    words += bench::first_words(block.data(), count, t.bytes);
  }
  return words;
}

void measure(const task& t) {
  const double opening = bench::seconds_now();
  std::vector<std::uint64_t> words(t.threads);
  std::uint64_t check = 0, epochs = 0;
  double first = 0, begin = 0, seconds = 0, cpu = 0;
  bool more = true, wrong = false;
  // One thread at a time, between two epochs; the first one only warms up.
  const auto between = [&]() noexcept {
    const std::uint64_t found = std::accumulate(words.begin(), words.end(), std::uint64_t{0});
    if (begin == 0) {
      check = found;
      first = bench::seconds_now() - opening;
      cpu = bench::cpu_seconds();
      begin = bench::seconds_now();
      return;
    }
    ++epochs;
    seconds = bench::seconds_now() - begin;
    wrong = wrong || found != check;
    more = seconds < t.least_seconds;
  };
  std::barrier together(static_cast<std::ptrdiff_t>(t.threads), between);
  const auto work = [&](std::size_t thread) {
    std::vector<std::byte> block(t.batch * t.bytes);
    while (more) {
      words[thread] = copy_share(t, thread, block);
      together.arrive_and_wait();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t thread = 1; thread < t.threads; ++thread) others.emplace_back(work, thread);
    work(0);
  }
  cpu = bench::cpu_seconds() - cpu;
  if (wrong) throw std::runtime_error("an epoch has other samples");
  const bench::megabytes used = bench::memory();
  bench::print_result(epochs * t.samples, seconds, cpu, first, used, check);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: %s WORK LEAST_SECONDS SAMPLES BATCH THREADS FILE\n", argv[0]);
    return 2;
  }
  try {
    const auto number = [&](int i) { return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)); };
    const bench::npy_rows file(argv[6], number(3));
    measure({std::atof(argv[2]), file.samples(), number(4), std::max<std::size_t>(1, number(5)), file.bytes(),
             file.data()});
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
}
