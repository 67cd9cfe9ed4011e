// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/position.hpp>
#include <penstock/order/detail/mixing_plan.hpp>
#include <penstock/order/permutation.hpp>

namespace penstock::inline v0_1 {

/// Maps a position of a mixture to a sample of a source, and back: the arithmetic behind `mix`.
///
/// In: the sizes of the sources, one of `weights`, `weight_schedule`, `proportions`, `repeats` and `choose`,
/// where an epoch ends, and a seed. Out: for position {e, i}, a source and a position in it, {its own epoch,
/// index}.
///
/// How: the exact integral of the cumulated weights, rounded down, tells how many of the first p samples come
/// from the first k sources; the difference between two neighbours is the count of one source, within one of
/// its exact share (128-bit integers, p up to 2^63). This holds at block boundaries; inside a block, the
/// count is that of a shuffled deck. Between two block boundaries (1,024 samples, more if weights are
/// smaller) each source gives the difference of its counts, a run of its own samples, and a keyed permutation
/// deals the block's slots to them.
///
/// Cost: `at` takes O(log sources) and makes a permutation; with a `cursor`, which keeps the block, it costs
/// about as much as two positions of `shuffle(seed(7))`. `position_of` is a binary search over blocks.
/// Immutable, cheap to copy, thread-safe; a cursor belongs to one thread.
/// Throws `error(errc::argument)`, with one sentence, for weights that are negative, 0 or not a number, for
/// sources without samples, for counts that do not fit, and for epochs beyond 2^63 samples.
///
///     const mixture both({1'000, 50}, weights{0.9, 0.1}, stopping::all_exhausted, 7);
///     for (std::uint64_t i = 0; i < both.size(); ++i) read(both.at({epoch, i}));
class mixture {
 public:
  /// A sample of one source: the source, and its own epoch and index.
  struct place {
    std::uint32_t source = 0;
    position at;
    friend bool operator==(const place&, const place&) = default;
  };

 private:
  struct tables;  // shared by all copies

 public:
  /// A cache for reading consecutive positions: the block of the last one.
  class cursor {
    friend class mixture;
    struct run {
      std::uint64_t base = 0;  // the number of the run's first sample less its first slot
      detail::divider by;
      std::uint32_t source = 0;
    };
    static constexpr std::uint64_t nowhere = ~std::uint64_t{0};

    // the epoch's positions in the block; slot = index + shift
    std::uint64_t epoch_ = 0, begin_ = 0, length_ = 0, shift_ = 0;
    permutation shuffled_;
    std::vector<std::uint64_t> slots_;  // first slot of each source
    std::vector<run> runs_;
    std::uint64_t missed_ = nowhere;
  };

  mixture(std::vector<std::uint64_t> sizes, const detail::mixing_rule& rule, stopping stop,
          std::uint64_t seed = 0);
  mixture(std::vector<std::uint64_t> sizes, const detail::mixing_rule& rule,
          const detail::mixing_options& options = {});

  /// The number of samples per epoch; 2^63 if an epoch does not end.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t sources() const noexcept;
  /// The number of samples in a block; the last block of an epoch has up to twice as many.
  [[nodiscard]] std::uint64_t block() const noexcept;
  /// Whether epochs are cut one after another from one sequence; otherwise each epoch restarts.
  [[nodiscard]] bool endless() const noexcept;
  /// The number of epochs before a count exceeds 63 bits.
  [[nodiscard]] std::uint64_t epochs() const noexcept;

  /// How many of the first p samples come from a source, within one of `share`. In an endless mixture p
  /// counts over all epochs and must be at a block boundary; otherwise it may also be the end of an epoch.
  [[nodiscard]] std::uint64_t count(std::uint32_t source, std::uint64_t p) const;
  /// The exact share of a source in the first p samples, rounded down.
  [[nodiscard]] std::uint64_t share(std::uint32_t source, std::uint64_t p) const;

  /// The sample at a position. Throws `error(errc::argument)` for an epoch beyond 2^63 samples. The index
  /// must be below `size()`; this is not checked.
  [[nodiscard]] place at(position p) const;
  /// The sample at a position, faster for positions that mostly follow each other.
  [[nodiscard]] place at(position p, cursor& c) const {
    if (p.index - c.begin_ >= c.length_ || p.epoch != c.epoch_) [[unlikely]]
      return elsewhere(p, c);
    return at_cursor(p.index, c);
  }

  /// The position of a source's sample; empty if no epoch contains it.
  [[nodiscard]] std::optional<position> position_of(std::uint32_t source, position sample) const;

  /// Adds everything that determines the sequence.
  void fingerprint(auto& h) const {
    h.add("mix");
    for (const std::uint64_t number : numbers()) h.add(number);
  }

 private:
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;
  void check_epoch(std::uint64_t epoch) const;

  [[nodiscard]] static place at_cursor(std::uint64_t from_begin, const cursor& c) noexcept {
    const std::uint64_t slot = c.shuffled_(from_begin + c.shift_);
    const auto& run = c.runs_[detail::last_not_above(c.slots_.data(), c.slots_.size(), slot)];
    const auto [epoch, index] = run.by(run.base + slot);
    return {run.source, {epoch, index}};
  }

  /// The first position in a new block is computed alone; the second one makes the cursor keep the block. So
  /// random access costs O(log sources).
  [[nodiscard]] place elsewhere(position p, cursor& c) const;

  shared<const tables> tables_;
  std::uint64_t size_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/mixture.ipp>
#endif
