// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Batches of texts of similar length, so that there is little padding: in each step all ranks have texts of
// the same bucket. A run that stopped on two ranks resumes on three.

#include <penstock/inspection/derive.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/bucket_by.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "made_up_shards.hpp"

namespace ps = penstock;

namespace {

/// Text i, as up to 500 token numbers.
std::vector<std::int32_t> text_of(std::uint64_t i) {
  return std::vector<std::int32_t>(1 + i * i % 500, static_cast<std::int32_t>(i));
}

}  // namespace

int main() {
  const made_up_shards here("bucket_by", 1, 1);  // a folder of its own
  const auto texts = ps::generated(5000, text_of);
  const auto length = ps::derive(
      texts, "length", [](const auto& text) { return text.size(); }, ".");

  const auto loader = [&](std::uint64_t rank, std::uint64_t world) {
    return texts | ps::shuffle(ps::seed(7)) | ps::shard(rank, world) |
           ps::global_bucket_by(length, ps::least_padding(16), {.max_tokens = 16'384},
                                ps::pad_to_multiple<8>) |
           ps::allow_empty;
  };

  bool works = true;
  std::uint64_t tokens = 0, slots = 0, steps = 0;
  auto alone = loader(0, 1).open();
  for (auto&& b : alone.epoch(0)) {
    const auto padded = b.values();
    works = works && padded.values().size() <= 16'384 && padded.shape()[1] % 8 == 0;
    for (const std::uint64_t of_text : padded.lengths()) tokens += of_text;
    slots += padded.values().size();
    ++steps;
  }

  // After 10 steps on two ranks, three go on with step 10.
  auto two = loader(1, 2).open();
  for (int step = 0; step < 10; ++step) works = two.next() && works;
  std::uint64_t rest = 0;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    auto three = loader(rank, 3).open(two.state());
    std::uint64_t step = 10;
    for (auto&& b : three.epoch(0)) {
      works = works && b.step() == step++;
      rest += b.size();
    }
    works = works && step == steps;
  }
  works = works && rest == 5000 - two.state().ordinal;

  std::printf("%s: %.1f %% of the slots are padding\n", works ? "works" : "wrong",
              100 * (1 - static_cast<double>(tokens) / static_cast<double>(slots)));
  return works ? 0 : 1;
}
