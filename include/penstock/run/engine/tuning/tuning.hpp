// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/message.hpp>
#include <penstock/evaluation/next_samples.hpp>

#include <array>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// A number that does not follow from anything, and the row of `bench/run.sh` that measures the work for
/// which it stands: compare that row before and after changing it.
struct tuned_number {
  std::string_view name;
  std::uint64_t value;
  std::string_view unit, row;

  constexpr operator std::uint64_t() const noexcept { return value; }
};

/// The numbers by which a run divides its work that neither the plan nor the machine gives. None of them
/// affects what it delivers.
struct tuning {
  // What a worker takes at a time.
  static constexpr tuned_number grain{"grain", 32_KiB, "bytes", "4b"};
  static constexpr tuned_number grain_alone{"grain without workers", 64_KiB, "bytes", "26m"};
  static constexpr tuned_number grain_slots{"samples in a grain, at most", 64, "", "4b"};
  static constexpr tuned_number unsized_slots{"samples in a grain if their size is unknown", 8, "", "14d"};
  static constexpr tuned_number plain_grain{"grain of numbers", 64_KiB, "bytes", "3a"};
  static constexpr tuned_number plain_grain_alone{"grain of numbers without workers", 16_KiB, "bytes", "1"};
  static constexpr tuned_number plain_grain_crowded{"grain of numbers if threads share processors", 128_KiB,
                                                    "bytes", "3b"};
  static constexpr tuned_number grain_time{"time of a grain, at most", 1'000'000, "ns", "14d"};
  static constexpr tuned_number looked_up{"samples whose positions are computed together",
                                          next_samples::maximum, "", "4a"};
  // What goes from workers to the consumer.
  static constexpr tuned_number chunk{"chunk", 64_KiB, "bytes", "5"};
  static constexpr tuned_number chunk_slots{"samples in a chunk if their size is unknown", 16, "", "14d"};
  static constexpr tuned_number block_time{"work on a block, at most", 50'000'000, "ns", "14d"};
  static constexpr tuned_number beyond_workers{"blocks in flight beyond workers", 3, "", "4b"};
  static constexpr tuned_number crowded_bytes{"blocks in flight if threads share processors", 2_MiB, "bytes",
                                              "3b"};
  // What is begun before its turn.
  static constexpr tuned_number dear{"times the mean from which a sample is begun early", 4, "", "65a"};
  // How threads wait.
  static constexpr tuned_number spins{"looks before a thread parks", 2000, "", "3a"};
  static constexpr tuned_number yields{"yields of a quick consumer if threads share processors", 16, "",
                                       "3b"};
  static constexpr tuned_number quick{"a consumer is quick that comes back within", 200'000, "ns", "3b"};
  // What is read ahead of a storage with latency.
  static constexpr tuned_number ahead{"samples read ahead, at least", 256, "", "20a"};
  static constexpr tuned_number ahead_bytes{"bytes of small samples read ahead", 32_MiB, "bytes", "23c"};
  static constexpr tuned_number ahead_requests{"requests that make up what is read ahead", 16, "", "23a"};

  // Bounds, far from what the plan or the machine ask for in most runs.
  static constexpr std::uint64_t block_batches = 256;   // batches of a block of numbers
  static constexpr std::uint64_t chunk_rows = 4096;     // samples of a chunk, whatever their size
  static constexpr std::uint64_t ahead_samples = 4096;  // read ahead, where bytes decide how many
  // Where threads share processors: the bytes of a block up to which more are in flight, and how many then.
  static constexpr std::uint64_t crowded_block = 256_KiB, crowded_blocks = 64;
  static constexpr std::uint64_t run_time = 20'000;       // ns between two looks whether to stop, for numbers
  static constexpr std::uint64_t run_samples = 8192;      // samples between them, at most
  static constexpr std::uint64_t timed_grains = 64;       // one of so many has its first sample timed
  static constexpr std::uint64_t learned_time = 1'000;    // ns of a sample from which single ones are timed
  static constexpr std::uint64_t learned_after = 16;      // samples of a worker before it knows their mean
  static constexpr std::uint64_t gathered_rows = 65'536;  // memory that a gathered batch begins with, at most

  static constexpr std::array all{grain,
                                  grain_alone,
                                  grain_slots,
                                  unsized_slots,
                                  plain_grain,
                                  plain_grain_alone,
                                  plain_grain_crowded,
                                  grain_time,
                                  looked_up,
                                  chunk,
                                  chunk_slots,
                                  block_time,
                                  beyond_workers,
                                  crowded_bytes,
                                  dear,
                                  spins,
                                  yields,
                                  quick,
                                  ahead,
                                  ahead_bytes,
                                  ahead_requests};
};

/// One line with all of them.
[[nodiscard]] inline std::string tuning_text() {
  std::string text = "tuning:";
  for (const tuned_number& one : tuning::all)
    detail::append(text, {(&one == tuning::all.data() ? " " : "; "), one.name, " ", one.value,
                          (one.unit.empty() ? "" : " "), one.unit, " (", one.row, ")"});
  return text + "\n";
}

}  // namespace penstock::inline v0_1
