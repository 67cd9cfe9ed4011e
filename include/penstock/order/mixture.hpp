// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/detail/arithmetic.hpp>
#include <penstock/order/detail/mixing_plan.hpp>
#include <penstock/order/permutation.hpp>
#include <penstock/order/weights.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
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
/// share (whole numbers of 128 bits, p up to 2^63). Between two block boundaries (1,024 samples, more where
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
template <class = void>
class basic_mixture {
  struct tables;

 public:
  /// A sample of one source: which source, and its own epoch and index.
  struct place {
    std::uint32_t source = 0;
    position at;
    friend bool operator==(const place&, const place&) = default;
  };

  /// What reading positions in a row keeps: the block of the last one.
  class cursor {
    friend class basic_mixture;
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

  basic_mixture(std::vector<std::uint64_t> sizes, const detail::mixing_rule& rule, stopping stop,
                std::uint64_t seed = 0)
      : basic_mixture(std::move(sizes), rule, detail::mixing_options{stop, std::nullopt, seed}) {}
  basic_mixture(std::vector<std::uint64_t> sizes, const detail::mixing_rule& rule,
                const detail::mixing_options& options = {})
      : tables_(new tables(std::move(sizes), rule, options)) {}

  /// Samples per epoch; 2^63 where it does not end.
  [[nodiscard]] std::uint64_t size() const noexcept { return tables_->plan.samples; }
  [[nodiscard]] std::size_t sources() const noexcept { return tables_->plan.sizes.size(); }
  /// Samples in a block; the last block of an epoch has up to twice as many.
  [[nodiscard]] std::uint64_t block() const noexcept { return std::uint64_t{1} << tables_->plan.block_bits; }
  /// Whether epochs are cut one after another from one sequence; else each begins anew.
  [[nodiscard]] bool endless() const noexcept { return tables_->plan.endless; }
  /// How many epochs there are before a count leaves 63 bits.
  [[nodiscard]] std::uint64_t epochs() const noexcept { return tables_->epochs; }

  /// How many of the first p samples are of a source, p at a block boundary or the end of an epoch; in an
  /// endless mixture, of all epochs. Within one of `share`.
  [[nodiscard]] std::uint64_t count(std::uint32_t source, std::uint64_t p) const {
    return tables_->count(tables_->place_of[source], p);
  }
  /// The exact share of a source in the first p samples, rounded down.
  [[nodiscard]] std::uint64_t share(std::uint32_t source, std::uint64_t p) const {
    return tables_->plan.own.at(source, p).floor;
  }

  /// The sample at a position. `error(errc::argument)` for an epoch beyond 2^63 samples; an index that is not
  /// below `size()` is the caller's mistake and is not checked.
  [[nodiscard]] place at(position p) const {
    check_epoch(p.epoch);
    return tables_->at_once(tables_->sequence(p));
  }
  /// The same for positions that mostly follow each other.
  [[nodiscard]] place at(position p, cursor& c) const {
    if (p.index - c.begin_ >= c.length_ || p.epoch != c.epoch_) [[unlikely]]
      return elsewhere(p, c);
    return at_cursor(p.index, c);
  }

  /// Where a sample of a source stands; nothing where no epoch has it.
  [[nodiscard]] std::optional<position> position_of(std::uint32_t source, position sample) const {
    const tables& t = *tables_;
    const std::uint32_t k = t.place_of[source];
    const std::uint64_t size = t.plan.sizes[source], advance = t.plan.advance[source];
    if (sample.index >= size || sample.epoch > (plan_type::most - 1 - sample.index) / size)
      return std::nullopt;
    std::uint64_t ordinal = sample.epoch * size + sample.index, epoch = 0;
    if (!t.plan.endless) {
      epoch = ordinal / advance;
      ordinal %= advance;
    }
    if (epoch >= t.epochs || ordinal >= t.count(k, t.end)) return std::nullopt;
    std::uint64_t low = 0, high = t.blocks;
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (t.count(k, t.begin_of(middle)) <= ordinal ? low : high) = middle;
    }
    const std::uint64_t first = t.begin_of(low), last = t.end_of(low);
    const std::uint64_t slot =
        t.below(k, last) - t.below(k, first) + ordinal - (t.below(k + 1, first) - t.below(k, first));
    const std::uint64_t p = first + t.shuffled(epoch, low).inverse(slot);
    if (!t.plan.endless) return position{epoch, p};
    const position found{p / t.plan.samples, p % t.plan.samples};
    return found.epoch < t.epochs ? std::optional(found) : std::nullopt;
  }

  /// Adds all that determines the sequence.
  template <class Hash>
  void fingerprint(Hash& h) const {
    const plan_type& plan = tables_->plan;
    h.add("mix", tables_->seed, plan.samples, plan.endless, plan.own.unit(), plan.block_bits);
    for (const std::uint64_t n : plan.sizes) h.add(n);
    for (const std::uint64_t n : plan.advance) h.add(n);
    for (const std::uint32_t n : plan.order) h.add(n);
    for (const std::uint64_t n : plan.own.knots()) h.add(n);
    for (const std::uint64_t n : plan.own.values()) h.add(n);
  }

 private:
  using plan_type = detail::mixing_plan<>;

  /// What all copies share.
  struct tables {
    plan_type plan;
    std::uint64_t seed;
    std::uint64_t end, blocks, epochs;
    std::vector<std::uint32_t> place_of;  // of each source, in the order in which they are cumulated
    std::vector<detail::divider> by;      // each source's size

    tables(std::vector<std::uint64_t> sizes, const detail::mixing_rule& rule,
           const detail::mixing_options& options)
        : plan(std::move(sizes), rule, options), seed(options.seed) {
      end = plan.endless ? plan_type::most : plan.samples;
      blocks = std::max<std::uint64_t>(1, end >> plan.block_bits);
      std::uint64_t most = plan.samples;
      for (const std::uint64_t advance : plan.advance) most = std::max(most, advance);
      epochs = plan_type::most / most;
      place_of.resize(plan.order.size());
      for (std::uint32_t k = 0; k < plan.order.size(); ++k) place_of[plan.order[k]] = k;
      for (const std::uint64_t size : plan.sizes) by.emplace_back(size);
    }

    /// The position in the sequence that blocks are cut from.
    [[nodiscard]] position sequence(position p) const noexcept {
      return plan.endless ? position{0, p.epoch * plan.samples + p.index} : p;
    }
    [[nodiscard]] std::uint64_t block_of(std::uint64_t p) const noexcept {
      return std::min(p >> plan.block_bits, blocks - 1);
    }
    [[nodiscard]] std::uint64_t begin_of(std::uint64_t number) const noexcept {
      return number == blocks ? end : number << plan.block_bits;
    }
    [[nodiscard]] std::uint64_t end_of(std::uint64_t number) const noexcept { return begin_of(number + 1); }

    /// How many of the first p samples are of the first k sources in the order of cumulation.
    [[nodiscard]] std::uint64_t below(std::size_t k, std::uint64_t p) const noexcept {
      if (k == 0 || k == plan.sizes.size()) return k == 0 ? 0 : p;
      return plan.cumulated.at(k, p).floor;
    }
    [[nodiscard]] std::uint64_t count(std::size_t k, std::uint64_t p) const noexcept {
      return below(k + 1, p) - below(k, p);
    }
    [[nodiscard]] permutation shuffled(std::uint64_t epoch, std::uint64_t number) const {
      constexpr std::uint64_t stream = 0x6d6978;  // "mix"
      return {end_of(number) - begin_of(number), mix64(mix64(mix64(seed ^ stream) + epoch) + number)};
    }
    [[nodiscard]] place placed(std::uint32_t source, std::uint64_t ordinal) const noexcept {
      const auto [epoch, index] = by[source](ordinal);
      return {source, {epoch, index}};
    }

    [[nodiscard]] place at_once(position in) const {
      const std::uint64_t number = block_of(in.index), first = begin_of(number), last = end_of(number);
      const std::uint64_t slot = shuffled(in.epoch, number)(in.index - first);
      std::size_t low = 0, high = plan.sizes.size();
      std::uint64_t before = 0;  // slots of the block that are of sources before `low`
      while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        const std::uint64_t slots = below(middle, last) - below(middle, first);
        if (slots <= slot) {
          low = middle;
          before = slots;
        } else {
          high = middle;
        }
      }
      const std::uint32_t source = plan.order[low];
      return placed(source, in.epoch * plan.advance[source] + count(low, first) + slot - before);
    }
  };

  void check_epoch(std::uint64_t epoch) const {
    if (epoch >= tables_->epochs) {
      throw error(errc::argument, {"a mixture of ", size(), " samples an epoch has no epoch ", epoch,
                                   "; it is beyond 2^63 samples",
                                   (size() == plan_type::most ? "; write samples_per_epoch(n)" : "")})
          .in_stage("mix");
    }
  }

  [[nodiscard]] static place at_cursor(std::uint64_t from_begin, const cursor& c) noexcept {
    const std::uint64_t slot = c.shuffled_(from_begin + c.shift_);
    const auto& run = c.runs_[detail::last_not_above(c.slots_.data(), c.slots_.size(), slot)];
    const auto [epoch, index] = run.by(run.base + slot);
    return {run.source, {epoch, index}};
  }

  /// A first position of another block is computed by itself; with the second the block is kept. So jumping
  /// about costs O(log sources).
  [[nodiscard, gnu::noinline]] place elsewhere(position p, cursor& c) const {
    check_epoch(p.epoch);
    const tables& t = *tables_;
    const position in = t.sequence(p);
    const std::uint64_t number = t.block_of(in.index);
    if (c.missed_ != number + in.epoch) {
      c.missed_ = number + in.epoch;
      return t.at_once(in);
    }
    const std::size_t count = t.plan.sizes.size();
    const std::uint64_t first = t.begin_of(number), last = t.end_of(number);
    c.length_ = 0;
    c.slots_.resize(count);
    c.runs_.resize(count);
    std::uint64_t below_first = 0, below_last = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint64_t next_first = t.below(k + 1, first), next_last = t.below(k + 1, last);
      const std::uint32_t source = t.plan.order[k];
      c.slots_[k] = below_last - below_first;
      c.runs_[k] = {in.epoch * t.plan.advance[source] + (next_first - below_first) - c.slots_[k],
                    t.by[source], source};
      below_first = next_first;
      below_last = next_last;
    }
    c.shuffled_ = t.shuffled(in.epoch, number);
    // a block of an endless mixture may reach into other epochs
    const std::uint64_t base = in.index - p.index;
    c.begin_ = std::max(first, base) - base;
    c.shift_ = base - first;
    c.epoch_ = p.epoch;
    c.length_ = std::min(last - base, t.plan.samples) - c.begin_;
    return at_cursor(p.index, c);
  }

  std::shared_ptr<const tables> tables_;
};

/// A mixture: see `basic_mixture`.
using mixture = basic_mixture<>;

}  // namespace penstock::inline v0_1
