// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <string>

namespace penstock::inline v0_1 {

/// The part of a split that a `megatron_gpt` reads; Megatron's `Split`.
enum class megatron_part { train, valid, test };

/// What Megatron was told of a dataset, for `megatron_gpt`.
struct megatron_gpt_options {
  /// The number of samples that was asked for, as `train_iters * global_batch_size`; 0: those of one epoch.
  std::uint64_t samples = 0;
  std::uint64_t seed = 1234;  ///< `--seed`, 0 to 2^32 - 1
  /// `--split`, such as "969,30,1"; empty: all, as `--train-data-path` and its like read them.
  std::string split = {};
  megatron_part part = megatron_part::train;
  /// The files of Megatron's cache, up to "-document_index.npy": "cache/0a5f...-GPTDataset-train". They say
  /// what the options above it say, which then are not used.
  std::string cache = {};
};

}  // namespace penstock::inline v0_1
