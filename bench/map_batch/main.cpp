// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 19: a function that touches each value of a batch once, in `map_batch` with one worker, against the
// same work in the consumer's loop. The consumer's other work on a batch takes about as long.

#include "support/harness.hpp"

#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/workers.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ps = penstock;

namespace {

using sample = std::array<float, 256>;

/// A sample that costs little more than its copy.
sample made(std::uint64_t i) {
  sample s;
  for (std::size_t k = 0; k < s.size(); ++k) s[k] = static_cast<float>((i & 63) + k);
  return s;
}

/// The function: each value is read and written once.
void normalise(std::span<const float> from, float* to) {
  for (const float x : from) *to++ = std::log1p(x) * 0.25f - 0.5f;
}

/// The consumer's other work on a batch: as much per value as the function.
std::uint64_t step(std::span<const float> values) {
  std::uint64_t sum = 0;
  for (const float x : values) sum += std::bit_cast<std::uint32_t>(std::log1p(x + 1.0f));
  return sum;
}

void measure(const bench::options& o) {
  const std::uint64_t samples = o.quick ? 1u << 12 : 1u << 14;
  const auto one = [&](const bench::row& r, std::size_t size) {
    if (!o.wants(r.id)) return;
    const auto batches = ps::generated(samples, made) | ps::batch(size) | ps::workers(1);
    auto ours = (batches | ps::map_batch([](auto& columns) {
                   const auto values = columns.values();
                   normalise(values.values(), values.data());
                 })).open();
    auto plain = batches.open();
    std::vector<float> buffer(size * sample().size());
    bench::compare(o, r, bench::epochs_of(ours, [](auto& b) { return step(b.values().values()); }),
                   bench::epochs_of(plain, [&buffer](auto& b) {
                     const std::span<const float> values = b.values().values();
                     normalise(values, buffer.data());
                     return step({buffer.data(), values.size()});
                   }));
  };
  one({"19a", "map_batch of 64 KB in 1 worker / the same in the consumer's loop", 1.7}, 64);
  one({"19b", "the same, batches of 256 KB", 1.7}, 256);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
