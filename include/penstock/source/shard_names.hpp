// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/manifest.hpp>

namespace penstock::inline v0_1 {

/// What `shard_names` makes; it shares the manifest with the source.
class shard_name_values {
 public:
  using value_type = std::string_view;

  shard_name_values(penstock::manifest shards, std::uint64_t dataset)
      : shards_(std::move(shards)), dataset_(dataset) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return shards_.samples(); }
  [[nodiscard]] std::string_view operator[](std::uint64_t i) const noexcept {
    return shards_.shards()[shards_.locate(i).shard].name;
  }
  /// The first sample of the next shard.
  [[nodiscard]] std::uint64_t same_until(std::uint64_t i) const noexcept {
    const auto place = shards_.locate(i);
    return place.first + shards_.shards()[place.shard].samples;
  }
  [[nodiscard]] std::uint64_t dataset() const noexcept { return dataset_; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return shards_.fingerprint(); }
  [[nodiscard]] std::string describe() const {
    return detail::text({"the names of ", shards_.shards().size(), " shards"});
  }

 private:
  penstock::manifest shards_;
  std::uint64_t dataset_;
};

/// The name of each sample's shard, as it was given to the source: values for `subset` and `split_by_key`
/// that need no read of the samples. A predicate is called once per shard, so they cost nothing per sample.
///
/// In: a source with a manifest: `webdataset`, `lines` and the token files. A look-up is logarithmic in the
/// number of shards. Threads: any number at once.
///
///     auto loader = source | subset(shard_names(source), [](std::string_view name) {
///       return name.find("/night/") != name.npos;
///     }) | shuffle(seed(7), window(16));
template <class Source>
  requires requires(const Source& s) {
    { s.manifest() } -> std::convertible_to<const manifest&>;
    { s.fingerprint() } -> std::same_as<std::uint64_t>;
  }
[[nodiscard]] shard_name_values shard_names(const Source& source) {
  return {source.manifest(), source.fingerprint()};
}

}  // namespace penstock::inline v0_1
