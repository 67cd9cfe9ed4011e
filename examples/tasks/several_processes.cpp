// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program of docs/tasks/several_processes.md: one of several processes that train together.

#include <penstock/penstock.hpp>
#include <penstock/source/lines.hpp>

#include <cstdio>
#include <exception>

namespace ps = penstock;

int main(int argc, char** argv) {
  try {
    // torchrun, mpirun, srun and others say in the environment which process this is.
    const ps::world world = ps::world::from_environment();
    const auto loader = ps::lines(argc > 1 ? argv[1] : "numbers.txt") | ps::decode<ps::integer> |
                        ps::shuffle(ps::seed(7)) | ps::shard(world) |
                        ps::global_batch(12, ps::tail::pad);  // every rank has the same number of batches
    static_assert(ps::elastic<decltype(loader)>);             // you may resume on another number of processes

    auto run = loader.open();
    for (auto&& batch : run.epoch(0)) {
      std::printf("rank %d:", static_cast<int>(world.rank));
      for (std::size_t i = 0; i < batch.size(); ++i)
        if (batch.valid()[i]) std::printf(" %d", static_cast<int>(batch.values()[i]));
      std::printf("\n");
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
