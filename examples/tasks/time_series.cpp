// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program of docs/tasks/time_series.md.

#include <penstock/penstock.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/windows.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

namespace ps = penstock;

int main(int argc, char** argv) {
  try {
    const std::string folder = argc > 1 ? argv[1] : ".";
    const auto rows = ps::zip<"episode", "state", "action">(
        ps::npy_rows<std::int64_t>(folder + "/episode.npy"), ps::npy_rows<float>(folder + "/state.npy"),
        ps::npy_rows<float>(folder + "/action.npy"));

    // Forecasting: 12 rows one behind the other, which never cross an episode.
    const auto series =
        ps::windows<"episode">(rows, {.length = 12, .stride = 4}) | ps::shuffle(ps::seed(7)) | ps::batch(8);
    std::size_t windows = 0;
    for (auto&& batch : series.epoch(0)) windows += get<"state">(batch).shape()[0];  // (8, 12, ...)
    std::printf("%zu windows of 12 rows\n", windows);

    // A policy: states 0.1 s ago and now, and 16 actions from now on, at 10 rows per second.
    const auto policy = ps::windows<"episode">(rows, {.rate = 10}, ps::column_at<"state">{-0.1, 0.0},
                                               ps::column_at<"action">(ps::row_offsets::from_to(0, 15))) |
                        ps::shuffle(ps::seed(7)) | ps::batch(8);
    std::size_t steps = 0, padded = 0;
    for (auto&& batch : policy.epoch(0)) {
      steps += get<"episode">(batch).shape()[0];
      for (const bool pad : get<"action_is_pad">(batch).flat()) padded += pad ? 1 : 0;
    }
    std::printf("%zu steps, %zu actions behind the end of an episode\n", steps, padded);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
