// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program of docs/tasks/masking.md.

#include <penstock/penstock.hpp>
#include <penstock/sequence.hpp>
#include <penstock/source/tokens.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

namespace ps = penstock;

int main(int argc, char** argv) {
  try {
    const std::string pattern = argc > 1 ? argv[1] : "train.bin";
    const auto windows = [&](auto window) {
      return ps::raw_tokens<std::uint16_t>(pattern, window) | ps::shuffle(ps::seed(1234)) |
             ps::shard(ps::world::from_environment());
    };

    // BERT: 15 % of the tokens are chosen; labels are -100 at the others.
    const auto bert =
        windows(ps::token_window<128, 0>{}) |
        ps::map(ps::mask_tokens({.mask_token = 103, .vocabulary = 30'522, .special = {0, 101, 102}})) |
        ps::batch(8, ps::tail::drop);
    std::size_t chosen = 0, seen = 0;
    for (auto&& batch : bert.epoch(0))
      for (const std::int64_t label : get<"labels">(batch).flat()) {
        chosen += label != -100 ? 1 : 0;
        ++seen;
      }
    std::printf("masked: %zu of %zu tokens are predicted\n", chosen, seen);

    // T5: windows as long as makes inputs of 64 tokens.
    const auto lengths = ps::compute_input_and_target_lengths(64);
    const auto t5 = windows(ps::token_windows{.length = lengths.tokens, .targets = 0}) |
                    ps::map(ps::span_corruption()) | ps::batch(8, ps::tail::drop);
    for (auto&& batch : t5.epoch(0)) {
      std::printf("spans: inputs %s, targets %s\n", to_string(get<"inputs">(batch).shape()).c_str(),
                  to_string(get<"targets">(batch).shape()).c_str());
      break;
    }

    // Code models: half of the windows are rearranged, and stay as long as they were.
    const auto code =
        windows(ps::token_window<128, 0>{}) |
        ps::map(ps::fill_in_the_middle(
            {.prefix_token = 50'001, .middle_token = 50'002, .suffix_token = 50'003, .keep_length = true})) |
        ps::batch(8, ps::tail::drop);
    std::size_t rearranged = 0, rows = 0;
    for (auto&& batch : code.epoch(0))
      for (std::size_t row = 0; row < batch.size(); ++row, ++rows)
        rearranged += batch.values()(row, 0) == 50'001 ? 1 : 0;
    std::printf("filled: %zu of %zu windows are rearranged\n", rearranged, rows);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
