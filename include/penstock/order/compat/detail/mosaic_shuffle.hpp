// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/order/compat/detail/numpy_generator.hpp>
#include <penstock/order/compat/mosaic_options.hpp>

namespace penstock::inline v0_1::detail {

/// One epoch's shuffle, by the rules of `streaming/base/shuffle/` of MosaicML Streaming: the sample ids, by
/// position, that its functions return for shards that start at `starts`.
class mosaic_shuffle {
 public:
  using ids = std::vector<std::uint32_t>;

  mosaic_shuffle(const std::vector<std::uint64_t>& starts, std::uint64_t nodes, std::uint64_t seed,
                 std::uint64_t epoch, std::uint64_t block);

  [[nodiscard]] ids make(mosaic_algorithm algorithm);

 private:
  /// A range [first, last) of samples or places.
  struct span {
    std::uint64_t first, last;
    [[nodiscard]] std::uint64_t size() const noexcept { return last - first; }
  };

  [[nodiscard]] std::vector<span> shards() const;

  static std::uint64_t append(ids& all, span one);
  void shuffle_last(ids& all, std::uint64_t count);

  /// The spans of each canonical node; a span that crosses a node's border is cut there.
  [[nodiscard]] std::vector<std::vector<span>> divided(std::vector<span> spans) const;

  [[nodiscard]] ids twice();

  [[nodiscard]] std::uint64_t block_draw() { return draw_.integer(block_ * 3 / 4, block_ * 5 / 4); }

  void in_blocks(const std::vector<std::vector<span>>& parts, ids& all);

  /// Moves each sample of a node by a random distance, then sorts.
  void strew(const std::vector<span>& part, ids& all, std::size_t begin);

  const std::vector<std::uint64_t>& starts_;
  std::uint64_t nodes_, block_;
  numpy_generator fixed_, draw_;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/order/compat/detail/mosaic_shuffle.ipp>
#endif
