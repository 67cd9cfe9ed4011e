// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program of docs/tasks/pretraining.md: windows of a long file of tokens.

#include <penstock/penstock.hpp>
#include <penstock/source/tokens.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>

namespace ps = penstock;

int main(int argc, char** argv) {
  try {
    const std::string pattern = argc > 1 ? argv[1] : "train.bin";
    const std::string checkpoint = argc > 2 ? argv[2] : "loader.json";

    // 64 tokens and the one behind them; write token_window<2048> for real training.
    const auto loader = ps::raw_tokens<std::uint16_t>(pattern, ps::token_window<64>{}) |
                        ps::shuffle(ps::seed(1234)) | ps::shard(ps::world::from_environment()) |
                        ps::global_batch(8, ps::tail::drop);

    std::ifstream saved(checkpoint);
    const std::string text{std::istreambuf_iterator<char>(saved), {}};
    auto run = text.empty() ? loader.open() : loader.open(ps::state_from_string(text));

    std::uint64_t first = 0;
    int steps = 0;
    for (auto epoch : run.epochs(1))
      for (auto&& batch : epoch) {
        // (rows, 65) tokens: inputs are columns 0 to 63, targets columns 1 to 64.
        for (std::size_t row = 0; row < batch.size(); ++row) first += batch.values()(row, 0);
        if (++steps == 5 && text.empty()) {  // as if the job was stopped here
          std::ofstream(checkpoint) << to_string(run.state());
          std::printf("stopped after %d steps, sum %llu\n", steps, static_cast<unsigned long long>(first));
          return 0;
        }
      }
    std::printf("finished after %d more steps, sum %llu\n", steps, static_cast<unsigned long long>(first));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
