// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <optional>
#include <string_view>
#include <vector>

/// The options of `mosaic` and `mosaic_resampled`.
namespace penstock::inline v0_1 {

/// The shuffles of MosaicML Streaming, under its names.
enum class mosaic_algorithm : std::uint8_t {
  py1e,   ///< shuffles the shards, scatters samples around their shard's place; Streaming's default
  py1br,  ///< shuffles the shards, then samples within blocks of about the block size
  py1s,   ///< shuffles the shards, then samples within their shard
  py2s,   ///< like py1s, plus another shuffle before the cut into canonical nodes
  naive,  ///< shuffles all samples
};

/// The name of a shuffle, as in Streaming.
[[nodiscard]] constexpr std::string_view to_string(mosaic_algorithm algorithm) noexcept {
  constexpr std::string_view names[] = {"py1e", "py1br", "py1s", "py2s", "naive"};
  return names[static_cast<std::size_t>(algorithm)];
}

/// The options of `mosaic`, with MosaicML Streaming's names and, where it has one, its defaults.
struct mosaic_options {
  std::uint64_t num_canonical_nodes = 0;  ///< required: nodes, or 64 times as many with py1s and py2s
  std::uint64_t physical_nodes = 1;       ///< machines in Streaming; see `mosaic` for changing them
  std::uint64_t ranks_per_node = 0;       ///< required: the ranks on each machine
  bool shuffle = false;
  mosaic_algorithm shuffle_algo = mosaic_algorithm::py1e;
  std::uint64_t shuffle_seed = 9176;
  std::uint64_t shuffle_block_size = 0;  ///< 0: 4,000,000 / num_canonical_nodes, at least 2^18
  std::uint64_t epoch = 0;               ///< the epoch in Streaming that is epoch 0 here
};

/// A stream of MosaicML Streaming: some of the source's shards, and at most one weight. Either all streams
/// have a `proportion` or none does.
struct mosaic_stream {
  std::uint64_t shards = 0;               ///< how many shards, following those of the streams before it
  std::optional<double> proportion{};     ///< share of the epoch, relative to the other streams
  std::optional<double> repeat{};         ///< how often its samples are taken
  std::optional<std::uint64_t> choose{};  ///< how many samples are taken
};

/// Streaming's `sampling_method`.
enum class mosaic_sampling_method : std::uint8_t {
  balanced,  ///< each epoch draws its own samples; Streaming's default
  fixed,     ///< all epochs use the same samples
};

/// How an epoch of MosaicML Streaming is sampled, with its names and defaults.
struct mosaic_sampling {
  std::uint64_t epoch_size = 0;  ///< samples per epoch; 0: as many as the streams give
  mosaic_sampling_method method = mosaic_sampling_method::balanced;
  std::uint64_t granularity = 1;         ///< how many samples are taken from one shard at a time
  std::vector<mosaic_stream> streams{};  ///< empty: one stream of all shards
};

}  // namespace penstock::inline v0_1
