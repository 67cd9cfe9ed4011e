// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Stops anywhere and resumes there, also on another number of ranks: the samples of a global step do not
// depend on the number of ranks.

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace ps = penstock;
using steps = std::vector<std::vector<std::uint64_t>>;  // the samples of each global step, sorted

/// Rank `rank` of `world` with its part of global steps of 120 samples.
auto loader_of(std::uint64_t rank, std::uint64_t world, unsigned workers) {
  return ps::generated(1000, [](std::uint64_t i) { return i; }) | ps::shuffle(ps::seed(7)) |
         ps::shard(rank, world) | ps::batch(120 / world) | ps::workers(workers);
}

/// Runs `count` global steps on `world` ranks, from a state or from the beginning. Returns the state of rank
/// 0.
std::string run_steps(std::uint64_t world, std::size_t count, const std::string& from, steps& all) {
  std::string state;
  const std::size_t before = all.size();
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    const auto loader = loader_of(rank, world, static_cast<unsigned>(rank % 3));
    auto run = from.empty() ? loader.open() : loader.open(ps::state_from_string(from));
    std::size_t step = before;
    for (auto epoch : run.epochs(3))
      for (auto&& b : epoch) {
        if (step == before + count) break;
        if (all.size() == step) all.emplace_back();
        all[step].insert(all[step].end(), b.begin(), b.end());
        if (++step == before + count && rank == 0) state = to_string(run.state());
      }
  }
  for (auto& samples : all) std::sort(samples.begin(), samples.end());
  return state;
}

int main() {
  try {
    steps alone, shared;
    run_steps(1, 24, "", alone);                                 // 9 steps in an epoch: into the third one
    const std::string first = run_steps(4, 5, "", shared);       // four ranks, stopped after step 5,
    const std::string second = run_steps(2, 10, first, shared);  // two ranks resumed, into the next epoch,
    run_steps(3, 9, second, shared);                             // and three ranks did the rest
    std::puts(first.c_str());
    std::puts(alone == shared ? "the same samples in every step" : "different samples");
    return alone.size() == 24 && alone == shared ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
