// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 25: a batch as a tensor of DLPack, taken back by its deleter: time and allocations.

#include "support/harness.hpp"

#include <penstock/integration/from_dlpack.hpp>
#include <penstock/integration/to_dlpack.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace {
std::uint64_t allocations = 0;
}

// The counting version for the whole program; the others call it.
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ps = penstock;

namespace {

using sample = std::array<float, 256>;

/// Nanoseconds, and allocations, of a call of `f`.
template <class F>
void report(const bench::options& o, const bench::row& time, const bench::row& count, F&& f) {
  if (!o.wants(time.id) && !o.wants(count.id)) return;
  constexpr int calls = 10'000;
  std::vector<double> nanoseconds;
  std::uint64_t made = 0;
  for (int round = -1; round < o.pairs; ++round) {
    const std::uint64_t before = allocations;
    const double begin = bench::seconds_now();
    for (int i = 0; i < calls; ++i) f();
    const double seconds = bench::seconds_now() - begin;
    made = allocations - before;
    if (round >= 0) nanoseconds.push_back(1e9 * seconds / calls);
  }
  const double each = static_cast<double>(made) / calls;
  if (o.wants(time.id))
    bench::print_row(time, bench::quantile(nanoseconds, 0.75), bench::quantile(nanoseconds, 0.5),
                     std::to_string(o.pairs) + " rounds of 10,000, upper quartile");
  if (o.wants(count.id)) bench::print_row(count, each, each, "operator new");
}

void measure(const bench::options& o) {
  auto run = (ps::generated(64, [](std::uint64_t) { return sample{}; }) | ps::batch(64)).open();
  auto batch = run.next();
  report(o, {"25a", "a batch as a tensor of DLPack, and its deleter, ns", 1000, true},
         {"25b", "the same, allocations", 1, true}, [&] {
           auto* const tensor = ps::to_dlpack(*batch).release();
           bench::escape(tensor);
           tensor->deleter(tensor);
         });
  report(o, {"25c", "the same, and from_dlpack in between, ns", 1000, true},
         {"25d", "the same, allocations", 0, false}, [&] {
           const auto array = ps::from_dlpack<float>(ps::to_dlpack(*batch));
           bench::escape(array.view().data());
         });
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
