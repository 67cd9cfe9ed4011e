// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/mixture.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

struct mixture::tables {
  detail::mixing_plan plan;
  std::uint64_t seed;
  std::uint64_t end, blocks, epochs;
  std::vector<std::uint32_t> place_of;  // each source's place in the order of cumulation
  std::vector<detail::divider> by;      // each source's size

  tables(std::vector<std::uint64_t> sizes, const detail::mixing_rule& rule,
         const detail::mixing_options& options)
      : plan(std::move(sizes), rule, options), seed(options.seed) {
    end = plan.endless ? detail::mixing_plan::maximum : plan.samples;
    blocks = std::max<std::uint64_t>(1, end >> plan.block_bits);
    std::uint64_t maximum = plan.samples;
    for (const std::uint64_t advance : plan.advance) maximum = std::max(maximum, advance);
    epochs = detail::mixing_plan::maximum / maximum;
    place_of.resize(plan.order.size());
    for (std::uint32_t k = 0; k < plan.order.size(); ++k) place_of[plan.order[k]] = k;
    for (const std::uint64_t size : plan.sizes) by.emplace_back(size);
  }

  /// The position in the sequence from which blocks are cut.
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

  /// How many of the first p samples come from the first k sources in the order of cumulation.
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

  [[nodiscard]] place directly(position in) const {
    const std::uint64_t number = block_of(in.index), first = begin_of(number), last = end_of(number);
    const std::uint64_t slot = shuffled(in.epoch, number)(in.index - first);
    std::size_t low = 0, high = plan.sizes.size();
    std::uint64_t before = 0;  // slots of the block that belong to sources before `low`
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

PENSTOCK_INLINE mixture::mixture(std::vector<std::uint64_t> sizes, const detail::mixing_rule& rule,
                                 stopping stop, std::uint64_t seed)
    : mixture(std::move(sizes), rule, detail::mixing_options{stop, std::nullopt, seed}) {}

PENSTOCK_INLINE mixture::mixture(std::vector<std::uint64_t> sizes, const detail::mixing_rule& rule,
                                 const detail::mixing_options& options)
    : tables_(new tables(std::move(sizes), rule, options)), size_(tables_->plan.samples) {}

PENSTOCK_INLINE std::size_t mixture::sources() const noexcept { return tables_->plan.sizes.size(); }

PENSTOCK_INLINE std::uint64_t mixture::block() const noexcept {
  return std::uint64_t{1} << tables_->plan.block_bits;
}

PENSTOCK_INLINE bool mixture::endless() const noexcept { return tables_->plan.endless; }

PENSTOCK_INLINE std::uint64_t mixture::epochs() const noexcept { return tables_->epochs; }

PENSTOCK_INLINE std::uint64_t mixture::count(std::uint32_t source, std::uint64_t p) const {
  return tables_->count(tables_->place_of[source], p);
}

PENSTOCK_INLINE std::uint64_t mixture::share(std::uint32_t source, std::uint64_t p) const {
  return tables_->plan.own.at(source, p).floor;
}

PENSTOCK_INLINE mixture::place mixture::at(position p) const {
  check_epoch(p.epoch);
  return tables_->directly(tables_->sequence(p));
}

PENSTOCK_INLINE std::optional<position> mixture::position_of(std::uint32_t source, position sample) const {
  const tables& t = *tables_;
  const std::uint32_t k = t.place_of[source];
  const std::uint64_t size = t.plan.sizes[source], advance = t.plan.advance[source];
  if (sample.index >= size || sample.epoch > (detail::mixing_plan::maximum - 1 - sample.index) / size)
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

PENSTOCK_INLINE std::vector<std::uint64_t> mixture::numbers() const {
  const detail::mixing_plan& plan = tables_->plan;
  std::vector<std::uint64_t> all{tables_->seed, plan.samples, plan.endless, plan.own.unit(), plan.block_bits};
  all.insert(all.end(), plan.sizes.begin(), plan.sizes.end());
  all.insert(all.end(), plan.advance.begin(), plan.advance.end());
  all.insert(all.end(), plan.order.begin(), plan.order.end());
  all.insert(all.end(), plan.own.knots().begin(), plan.own.knots().end());
  all.insert(all.end(), plan.own.values().begin(), plan.own.values().end());
  return all;
}

PENSTOCK_INLINE void mixture::check_epoch(std::uint64_t epoch) const {
  if (epoch >= tables_->epochs) {
    throw error(
        errc::argument,
        {"a mixture of ", size(), " samples per epoch has no epoch ", epoch, "; it is beyond 2^63 samples",
         (size() == detail::mixing_plan::maximum ? "; write samples_per_epoch(n)" : "")})
        .in_stage("mix");
  }
}

PENSTOCK_INLINE mixture::place mixture::elsewhere(position p, cursor& c) const {
  check_epoch(p.epoch);
  const tables& t = *tables_;
  const position in = t.sequence(p);
  const std::uint64_t number = t.block_of(in.index);
  if (c.missed_ != number + in.epoch) {
    c.missed_ = number + in.epoch;
    return t.directly(in);
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
    c.runs_[k] = {in.epoch * t.plan.advance[source] + (next_first - below_first) - c.slots_[k], t.by[source],
                  source};
    below_first = next_first;
    below_last = next_last;
  }
  c.shuffled_ = t.shuffled(in.epoch, number);
  // a block of an endless mixture may extend into other epochs
  const std::uint64_t base = in.index - p.index;
  c.begin_ = std::max(first, base) - base;
  c.shift_ = base - first;
  c.epoch_ = p.epoch;
  c.length_ = std::min(last - base, t.plan.samples) - c.begin_;
  return at_cursor(p.index, c);
}

}  // namespace penstock::inline v0_1
