// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/message.hpp>
#include <penstock/order/compat/mosaic_options.hpp>

#include <span>

namespace penstock::inline v0_1::detail {

class numpy_generator;

/// The samples of an epoch, shard by shard, and the start of each run that is shuffled like a shard.
struct mosaic_drawn {
  std::vector<std::uint32_t> samples;
  std::vector<std::uint64_t> starts{0};
};

/// Implements Streaming's `Stream.apply_weights`, `get_sampling` and `resample_streams`.
class mosaic_draw {
 public:
  mosaic_draw(shared<const std::vector<std::uint64_t>> starts, const mosaic_sampling& sampling, bool shuffle,
              std::uint64_t seed);

  /// The number of samples in an epoch.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  [[nodiscard]] mosaic_drawn of(std::uint64_t epoch) const;

  /// How many samples an epoch takes from each shard of a stream.
  [[nodiscard]] std::vector<std::uint64_t> counts_of(std::size_t stream, std::uint64_t epoch) const;

 private:
  static constexpr std::uint64_t maximum = std::uint64_t{1} << 32;

  [[noreturn]] static void refuse(std::initializer_list<piece> why);

  [[noreturn]] static void too_many();

  [[nodiscard]] std::uint64_t shard_size(std::uint64_t shard) const;
  [[nodiscard]] std::uint64_t samples_of(std::size_t stream) const;

  /// Takes `count` samples of a shard: all of them as often as they fit, then some once more.
  void take(mosaic_drawn& drawn, std::uint64_t shard, std::uint64_t count, numpy_generator& random) const;

  /// Determines how many samples each stream gives.
  void weigh(const std::vector<mosaic_stream>& streams, std::uint64_t epoch_size);

  /// Divides an epoch in proportion; the samples lost to rounding go to randomly drawn streams.
  void share(const std::vector<mosaic_stream>& streams, std::uint64_t epoch_size);

  /// Adds the way numpy does: in eight partial sums, and in halves above 128 values. Another order of
  /// additions could round to a different sample.
  [[nodiscard]] static double sum(std::span<const double> values);

  shared<const std::vector<std::uint64_t>> starts_;
  std::uint64_t granularity_;
  bool balanced_, shuffle_;
  std::uint64_t seed_, size_ = 0;
  std::vector<std::uint64_t> first_{0}, choose_;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/order/compat/detail/mosaic_draw.ipp>
#endif
