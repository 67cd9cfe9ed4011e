// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/position.hpp>
#include <penstock/order/detail/arithmetic.hpp>
#include <penstock/order/detail/mixing_rule.hpp>
#include <penstock/order/permutation.hpp>
#include <penstock/order/weights.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace penstock::inline v0_1 {

/// Which sample of which source stands at a position of a mixture, and back: what `mix` computes with.
///
/// In: the sizes of the sources, one of `weights`, `weight_schedule`, `proportions`, `repeats` and `choose`,
/// where an epoch ends, a seed. Out: for position {e, i} a source and a position of it, {its own epoch,
/// index}.
///
/// How: the exact integral of the cumulated weights, rounded down, says how many of the first p samples the
/// first k sources give; the difference of two neighbours is the count of one source, within one of its exact
/// share (whole numbers of 128 bits, p up to 2^63). It holds at block boundaries; inside a block the count is
/// that of a shuffled deck. Between two block boundaries (1,024 samples, more where
/// weights are smaller) each source gives the difference of its counts, a run of its own samples, and a keyed
/// permutation deals the block's slots to them.
///
/// Cost: `at` takes O(log sources) and makes a permutation; with a `cursor`, which keeps the block, about two
/// positions of `shuffle(seed)`. `position_of` is a binary search over blocks.
/// Immutable, cheap to copy, free for all threads; a cursor belongs to one.
/// Throws `error(errc::argument)`: one sentence for weights that are negative, 0 or no number, sources
/// without samples, counts that do not fit, epochs beyond 2^63 samples.
///
///     const mixture both({1'000, 50}, weights{0.9, 0.1}, stopping::all_exhausted, seed);
///     for (std::uint64_t i = 0; i < both.size(); ++i) read(both.at({epoch, i}));
class mixture {
  struct tables;  // what all copies share

 public:
  /// A sample of one source: which source, and its own epoch and index.
  struct place {
    std::uint32_t source = 0;
    position at;
    friend bool operator==(const place&, const place&) = default;
  };

  /// What reading positions in a row keeps: the block of the last one.
  class cursor {
    friend class mixture;
    struct run {
      std::uint64_t base = 0;  // the number of the run's first sample less its first slot
      detail::divider by;
      std::uint32_t source = 0;
    };
    static constexpr std::uint64_t nowhere = ~std::uint64_t{0};

    // positions of an epoch that lie in the block, and what added to their index gives the slot
    std::uint64_t epoch_ = 0, begin_ = 0, length_ = 0, shift_ = 0;
    permutation shuffled_;
    std::vector<std::uint64_t> slots_;  // where each source's begin
    std::vector<run> runs_;
    std::uint64_t missed_ = nowhere;
  };

  mixture(std::vector<std::uint64_t> sizes, const detail::mixing_rule& rule, stopping stop,
          std::uint64_t seed = 0);
  mixture(std::vector<std::uint64_t> sizes, const detail::mixing_rule& rule,
          const detail::mixing_options& options = {});

  /// Samples per epoch; 2^63 where it does not end.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t sources() const noexcept;
  /// Samples in a block; the last block of an epoch has up to twice as many.
  [[nodiscard]] std::uint64_t block() const noexcept;
  /// Whether epochs are cut one after another from one sequence; else each begins anew.
  [[nodiscard]] bool endless() const noexcept;
  /// How many epochs there are before a count leaves 63 bits.
  [[nodiscard]] std::uint64_t epochs() const noexcept;

  /// How many of the first p samples are of a source, p at a block boundary or the end of an epoch; in an
  /// endless mixture, of all epochs, and p at a block boundary. Within one of `share`.
  [[nodiscard]] std::uint64_t count(std::uint32_t source, std::uint64_t p) const;
  /// The exact share of a source in the first p samples, rounded down.
  [[nodiscard]] std::uint64_t share(std::uint32_t source, std::uint64_t p) const;

  /// The sample at a position. `error(errc::argument)` for an epoch beyond 2^63 samples; an index that is not
  /// below `size()` is the caller's mistake and is not checked.
  [[nodiscard]] place at(position p) const;
  /// The same for positions that mostly follow each other.
  [[nodiscard]] place at(position p, cursor& c) const {
    if (p.index - c.begin_ >= c.length_ || p.epoch != c.epoch_) [[unlikely]]
      return elsewhere(p, c);
    return at_cursor(p.index, c);
  }

  /// Where a sample of a source stands; nothing where no epoch has it.
  [[nodiscard]] std::optional<position> position_of(std::uint32_t source, position sample) const;

  /// Adds all that determines the sequence.
  template <class Hash>
  void fingerprint(Hash& h) const {
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

  /// A first position of another block is computed by itself; with the second the block is kept. So jumping
  /// about costs O(log sources).
  [[nodiscard]] place elsewhere(position p, cursor& c) const;

  shared<const tables> tables_;
  std::uint64_t size_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/mixture.ipp>
#endif
