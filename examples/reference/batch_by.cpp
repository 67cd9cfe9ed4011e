// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Batches of at most so many tokens: many short texts or a few long ones. The length of each text is computed
// once and kept in a file. Two ranks take these batches in turn; a run that stopped on two ranks resumes on
// one.

#include <penstock/inspection/derive.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch_by.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "made_up_shards.hpp"

namespace ps = penstock;

namespace {

constexpr std::uint64_t limit = 256;

/// Text i, as up to 64 token numbers.
std::vector<std::int32_t> text_of(std::uint64_t i) {
  return std::vector<std::int32_t>(1 + i * i % 64, static_cast<std::int32_t>(i));
}

}  // namespace

int main() {
  const made_up_shards here("batch_by", 1, 1);  // a folder of its own
  const auto texts = ps::generated(2000, text_of);
  const auto length = ps::derive(
      texts, "length", [](const auto& text) { return text.size(); }, ".");

  bool works = true;
  const auto loader = [&](std::uint64_t rank, std::uint64_t world) {
    return texts | ps::shuffle(ps::seed(7)) | ps::shard(rank, world) |
           ps::batch_by(length, limit, ps::ragged);
  };

  std::uint64_t samples = 0, steps = 0;
  std::size_t fewest = 2000, maximum = 0;
  auto run = loader(0, 1).open();
  for (auto&& b : run) {
    const auto values = b.values();
    std::uint64_t tokens = 0;
    for (std::size_t i = 0; i < b.size(); ++i) tokens += values[i].size();
    works = works && tokens <= limit;
    samples += b.size();
    fewest = b.size() < fewest ? b.size() : fewest;
    maximum = b.size() > maximum ? b.size() : maximum;
    ++steps;
  }
  works = works && samples == 2000 && steps == run.steps_per_epoch() && maximum > fewest;

  // Stopped after 10 steps on two ranks, which is after 20 batches on one.
  auto two = loader(1, 2).open();
  for (int step = 0; step < 10; ++step) works = two.next() && works;
  auto one = loader(0, 1).open(two.state());
  std::uint64_t rest = 0;
  for (auto&& b : one.epoch(0)) {
    works = works && b.step() == 20 + rest;
    ++rest;
  }
  works = works && rest == steps - 20;

  if (!works) std::puts("wrong: these are not the batches that were promised");
  if (works)
    std::printf("%llu batches of %zu to %zu texts\n", static_cast<unsigned long long>(steps), fewest,
                maximum);
  return works ? 0 : 1;
}
