// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

namespace penstock::inline v0_1 {

/// The shards of a dataset: their names, bytes and numbers of samples, with a fingerprint of them all.
///
/// The fingerprint is a function of each shard's name without its folders, of its size, its number of samples
/// and a checksum of its index: it does not change when the dataset is copied elsewhere, and does change when
/// a key, or the offset or size of a member, does. Different bytes in a member of unchanged offset and size
/// go unnoticed, because noticing them would mean reading everything. Copies share their tables. Threads: any
/// number at once; a manifest is const once made.
class manifest {
 public:
  struct shard {
    std::string name;
    std::uint64_t bytes = 0;  ///< size of the file
    std::uint64_t samples = 0;
    std::uint64_t payload = 0;  ///< bytes in the members of samples
    std::uint64_t content = 0;  ///< checksum of the index: the place of each member, and all keys
    /// When the file was last changed, in nanoseconds since 1970; 0: unknown. Not in the fingerprint.
    std::uint64_t stamp = 0;
    /// A tar archive without end-of-archive blocks: it may be cut off. Not in the fingerprint.
    bool unended = false;
  };
  /// The location of a sample: the number of its shard, and its number within the shard.
  struct place {
    std::size_t shard = 0;
    std::uint64_t sample = 0;
    std::uint64_t first = 0;  ///< the number of the shard's first sample in the dataset
  };

  manifest() : manifest(std::vector<shard>{}) {}
  explicit manifest(std::vector<shard> shards);

  [[nodiscard]] std::span<const shard> shards() const noexcept;
  [[nodiscard]] std::uint64_t samples() const noexcept { return tables_->samples; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return tables_->bytes; }
  [[nodiscard]] std::uint64_t payload() const noexcept { return tables_->payload; }
  /// How many shards are tar archives without end-of-archive blocks.
  [[nodiscard]] std::uint64_t unended() const noexcept { return tables_->unended; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return tables_->fingerprint; }
  /// Where each non-empty shard begins, and last the number of samples.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return tables_->starts; }

  /// The place of sample `index`, which must be less than `samples()`. Logarithmic in the number of shards.
  [[nodiscard]] place locate(std::uint64_t index) const noexcept;

 private:
  // Empty samples take no space, so headers alone can announce more samples than can be counted.
  static constexpr std::uint64_t max_samples = std::uint64_t{1} << 62;

  struct tables {
    std::vector<shard> shards;
    std::vector<std::size_t> filled;  // the shards that have samples
    shared<const std::vector<std::uint64_t>> starts;
    std::uint64_t samples = 0;
    double shards_per_sample = 0;
    std::uint64_t bytes = 0;
    std::uint64_t payload = 0;
    std::uint64_t unended = 0;
    std::uint64_t fingerprint = 0;
  };
  shared<const tables> tables_;
};

/// A manifest as text, to send to other processes or keep in a file: `penstock manifest 2` and the number of
/// shards; then a line for each shard with its bytes, samples, payload, content, stamp, 1 if it is unended
/// and 0 if not, the length of its name in bytes, and the name.
[[nodiscard]] std::string to_string(const manifest& all);

/// Reads text written by `to_string`; anything else throws `errc::format` with the offset.
[[nodiscard]] manifest manifest_from_string(std::string_view text);

namespace detail {
[[nodiscard]] manifest manifest_in(session_view session, storage_facts where);
}  // namespace detail

/// Reads the manifest that is kept in a storage as text: beside the shards in their store, so that opening a
/// dataset sends no request per shard.
///
///     std::ofstream("train.manifest") << to_string(manifest());
///     const manifest known = read_manifest(file("train.manifest"));
///
/// In: a storage of one object. Its shards' names are those that `to_string` was given: a manifest of local
/// files does not fit a server's names.
/// Errors: those of the storage; errc::argument for any other number of objects; errc::format with the name.
template <storage Storage>
[[nodiscard]] manifest read_manifest(const Storage& where) {
  auto session = where.connect();
  return detail::manifest_in(session, facts_of(where));
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/manifest.ipp>
#endif
