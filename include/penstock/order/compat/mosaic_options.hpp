// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// What `mosaic` and `mosaic_resampled` are told.
namespace penstock::inline v0_1 {

/// The shuffles of MosaicML Streaming, by its names.
enum class mosaic_algorithm : std::uint8_t {
  py1e,   ///< shards in another order, samples strewn around their shard's place; Streaming's default
  py1br,  ///< shards in another order, samples within blocks of about the block size
  py1s,   ///< shards in another order, samples within their shard
  py2s,   ///< as py1s, and shuffled once more before canonical nodes are cut
  naive,  ///< all samples
};

/// The name of a shuffle, as Streaming writes it.
[[nodiscard]] constexpr std::string_view to_string(mosaic_algorithm algorithm) noexcept {
  constexpr std::string_view names[] = {"py1e", "py1br", "py1s", "py2s", "naive"};
  return names[static_cast<std::size_t>(algorithm)];
}

/// Options of `mosaic`, with the names and defaults of MosaicML Streaming where it has one.
struct mosaic_options {
  std::uint64_t num_canonical_nodes = 0;  ///< must be given: nodes, or 64 times as many with py1s and py2s
  std::uint64_t physical_nodes = 1;       ///< machines of the run in Streaming; see `mosaic` for a change
  std::uint64_t ranks_per_node = 0;       ///< must be given: ranks on each of them
  bool shuffle = false;
  mosaic_algorithm shuffle_algo = mosaic_algorithm::py1e;
  std::uint64_t shuffle_seed = 9176;
  std::uint64_t shuffle_block_size = 0;  ///< 0: 4,000,000 / num_canonical_nodes, at least 2^18
  std::uint64_t epoch = 0;               ///< Streaming's epoch that is epoch 0 here
};

/// A stream of MosaicML Streaming: some of the source's shards, and at most one of its weights. All streams
/// have a `proportion`, or none has.
struct mosaic_stream {
  std::uint64_t shards = 0;               ///< how many, behind those of the streams before it
  std::optional<double> proportion{};     ///< of the epoch, in relation to those of the others
  std::optional<double> repeat{};         ///< how often its samples are taken
  std::optional<std::uint64_t> choose{};  ///< how many samples are taken
};

/// Streaming's `sampling_method`.
enum class mosaic_sampling_method : std::uint8_t {
  balanced,  ///< every epoch has samples of its own; Streaming's default
  fixed,     ///< all epochs have the same
};

/// What an epoch of MosaicML Streaming takes, with its names and defaults.
struct mosaic_sampling {
  std::uint64_t epoch_size = 0;  ///< samples of an epoch; 0: as many as the streams say
  mosaic_sampling_method method = mosaic_sampling_method::balanced;
  std::uint64_t granularity = 1;         ///< samples that are taken of one shard at a time
  std::vector<mosaic_stream> streams{};  ///< none: one, of all shards
};

}  // namespace penstock::inline v0_1
