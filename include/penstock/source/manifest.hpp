// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// What shards a dataset has: their names, bytes and numbers of samples, with a fingerprint of it all.
///
/// The fingerprint is a function of each shard's name without its folders, of its size, its number of samples
/// and a checksum of its index: it stays the same when the dataset is copied to another place, and changes
/// when a key, or the place or size of a member, does. Other bytes in members that stay where they were are
/// not seen, since that would cost reading them.
/// A value; copies share their tables. Threads: const after it is made.
class manifest {
 public:
  struct shard {
    std::string name;
    std::uint64_t bytes = 0;  ///< size of the file
    std::uint64_t samples = 0;
    std::uint64_t payload = 0;  ///< bytes in the members of samples
    std::uint64_t content = 0;  ///< checksum of the index: where each member lies, and all keys
    /// When the file was last changed, in nanoseconds since 1970; 0: not known. Not in the fingerprint.
    std::uint64_t stamp = 0;
    /// A tar archive that has no end-of-archive blocks: it may be cut off. Not in the fingerprint.
    bool unended = false;
  };
  /// Where a sample is: the number of its shard, and its number in it.
  struct place {
    std::size_t shard = 0;
    std::uint64_t sample = 0;
    std::uint64_t first = 0;  ///< the number of the shard's first sample in the dataset
  };

  manifest() : manifest(std::vector<shard>{}) {}
  explicit manifest(std::vector<shard> shards);

  [[nodiscard]] std::span<const shard> shards() const noexcept { return tables_->shards; }
  [[nodiscard]] std::uint64_t samples() const noexcept { return tables_->samples; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return tables_->bytes; }
  [[nodiscard]] std::uint64_t payload() const noexcept { return tables_->payload; }
  /// How many shards are tar archives without end-of-archive blocks.
  [[nodiscard]] std::uint64_t unended() const noexcept { return tables_->unended; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return tables_->fingerprint; }
  /// Where the shards that have samples begin, and last the number of samples.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return tables_->starts; }

  /// The place of sample `index`, which must be less than `samples()`. Logarithmic in the number of shards.
  [[nodiscard]] place locate(std::uint64_t index) const noexcept;

 private:
  // Samples of no bytes take no room: headers alone can announce more than can be counted.
  static constexpr std::uint64_t most_samples = std::uint64_t{1} << 62;

  struct tables {
    std::vector<shard> shards;
    std::vector<std::size_t> filled;  // the shards that have samples
    shared<const std::vector<std::uint64_t>> starts;
    std::uint64_t samples = 0;
    std::uint64_t bytes = 0;
    std::uint64_t payload = 0;
    std::uint64_t unended = 0;
    std::uint64_t fingerprint = 0;
  };
  shared<const tables> tables_;
};

/// A manifest as text, to be sent to other processes or kept in a file: `penstock manifest 2` and the number
/// of shards; then a line for each, with its bytes, samples, payload, content, stamp, 1 where it is unended
/// or 0, the length of its name in bytes, and the name.
[[nodiscard]] std::string to_string(const manifest& all);

/// Reads what `to_string` wrote; anything else is `errc::format` with the offset.
[[nodiscard]] manifest manifest_from_string(std::string_view text);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/manifest.ipp>
#endif
