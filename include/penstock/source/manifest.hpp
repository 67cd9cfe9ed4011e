// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// What shards a dataset has: their names, bytes and numbers of samples, with a fingerprint of it all.
///
/// The fingerprint is a function of each shard's name without its folders, of its size, its number of samples
/// and a checksum of its index: it stays the same when the dataset is copied to another place, and changes
/// when the samples do.
/// A value; copies share their tables. Threads: const after it is made.
template <class = void>
class basic_manifest {
 public:
  struct shard {
    std::string name;
    std::uint64_t bytes = 0;  ///< size of the file
    std::uint64_t samples = 0;
    std::uint64_t payload = 0;  ///< bytes in the members of samples
    std::uint64_t content = 0;  ///< checksum of the index: where each member lies, and all keys
  };
  /// Where a sample is: the number of its shard, and its number in it.
  struct place {
    std::size_t shard = 0;
    std::uint64_t sample = 0;
    std::uint64_t first = 0;  ///< the number of the shard's first sample in the dataset
  };

  basic_manifest() : basic_manifest(std::vector<shard>{}) {}
  explicit basic_manifest(std::vector<shard> shards) {
    std::shared_ptr<tables> made(new tables());
    std::shared_ptr<std::vector<std::uint64_t>> begins(new std::vector<std::uint64_t>());
    penstock::fingerprint mark;
    mark.add("manifest", shards.size());
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const shard& s = shards[i];
      if (s.samples != 0) {
        begins->push_back(made->samples);
        made->filled.push_back(i);
      }
      if (s.samples > most_samples - made->samples) {
        throw error(errc::limit, {"the files hold more than ", most_samples, " samples together"})
            .in_file(s.name);
      }
      made->samples += s.samples;
      made->payload += s.payload;
      made->bytes += s.bytes;
      mark.add(std::string_view(s.name).substr(s.name.rfind('/') + 1), s.bytes, s.samples, s.content);
    }
    if (begins->empty()) begins->push_back(0);
    begins->push_back(made->samples);
    made->fingerprint = mark.value();
    made->starts = std::move(begins);
    made->shards = std::move(shards);
    tables_ = std::move(made);
  }

  [[nodiscard]] std::span<const shard> shards() const noexcept { return tables_->shards; }
  [[nodiscard]] std::uint64_t samples() const noexcept { return tables_->samples; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return tables_->bytes; }
  [[nodiscard]] std::uint64_t payload() const noexcept { return tables_->payload; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return tables_->fingerprint; }
  /// Where the shards that have samples begin, and last the number of samples.
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept {
    return tables_->starts;
  }

  /// The place of sample `index`, which must be less than `samples()`. Logarithmic in the number of shards.
  [[nodiscard]] place locate(std::uint64_t index) const noexcept {
    const auto& starts = *tables_->starts;
    const auto after = std::upper_bound(starts.begin(), starts.end(), index);
    const auto which = static_cast<std::size_t>(after - starts.begin()) - 1;
    return {tables_->filled[which], index - starts[which], starts[which]};
  }

 private:
  // Samples of no bytes take no room: headers alone can announce more than can be counted.
  static constexpr std::uint64_t most_samples = std::uint64_t{1} << 62;

  struct tables {
    std::vector<shard> shards;
    std::vector<std::size_t> filled;  // the shards that have samples
    std::shared_ptr<const std::vector<std::uint64_t>> starts;
    std::uint64_t samples = 0;
    std::uint64_t bytes = 0;
    std::uint64_t payload = 0;
    std::uint64_t fingerprint = 0;
  };
  std::shared_ptr<const tables> tables_;
};
/// The form to use: see `basic_manifest`.
class manifest : public basic_manifest<> {
 public:
  using basic_manifest<>::basic_manifest;
};

}  // namespace penstock::inline v0_1
