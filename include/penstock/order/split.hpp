// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/named_split.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/detail/arithmetic.hpp>
#include <penstock/order/detail/fraction.hpp>
#include <penstock/order/detail/places.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

namespace detail {

/// A choice of m of n positions, m <= n / 2 and n < 2^63: computes the chosen positions and the remaining
/// ones, both in ascending order, without a table.
///
/// Positions are cut into blocks of 64 cells. A cell is one position or, if m is less than an eighth of n,
/// the smallest power of two at which a block has eight choices on average. Each block gets the floor or ceil
/// of its share, by a running sum whose start is drawn from the key. Floyd's method draws which cells of a
/// block contain a choice; then the position inside the cell is drawn. All positions are equally likely
/// (except in the last cell, which may be shorter).
class spread_choice {
 public:
  constexpr spread_choice() noexcept = default;
  constexpr spread_choice(std::uint64_t n, std::uint64_t m, std::uint64_t key) noexcept
      : n_(n), m_(m), key_(mix64(key ^ 0x73706c6974u)) {
    if (m == 0) return;
    const std::uint64_t density = binary_fraction(m, n);  // m / n, with 64 binary places
    // Until a block has eight choices on average, or there is only one block.
    while (density >> (58 - cell_bits_) < 8 && ((n - 1) >> cell_bits_) >= 64) ++cell_bits_;
    const std::uint32_t block_bits = 6 + cell_bits_;
    whole_ = density >> (64 - block_bits);
    part_ = density << block_bits;
    start_ = mix64(key_ ^ 0x7374617274u);
    blocks_ = ((n - 1) >> block_bits) + 1;
    if (blocks_ == 1) return;
    const std::uint64_t share = density << cell_bits_;  // a block's share, with 58 binary places; at most 32
    to_block_ = binary_fraction(std::uint64_t{1} << 58, std::max(share, (std::uint64_t{1} << 58) + 1));
    over_ = density >= std::uint64_t{1} << 63 ? ~std::uint64_t{0}
                                              : binary_fraction(density >> 1, (~density >> 1) + 1);
  }

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return n_; }

  /// The position of choice i.
  [[nodiscard]] constexpr std::uint64_t chosen(std::uint64_t i) const noexcept {
    std::uint64_t b = blocks_ == 1 ? 0 : std::min(multiply_high(i, to_block_), blocks_ - 1);
    while (before_block(b) > i) --b;
    while (before_block(b + 1) <= i) ++b;
    std::uint64_t cells = cells_of(b);
    for (std::uint64_t skipped = i - before_block(b); skipped != 0; --skipped) cells &= cells - 1;
    return place_in(b, static_cast<std::uint32_t>(std::countr_zero(cells)));
  }

  /// The position of remaining number i.
  [[nodiscard]] constexpr std::uint64_t left(std::uint64_t i) const noexcept {
    if (m_ == 0) return i;
    std::uint64_t b = blocks_ == 1 ? 0 : std::min((i + multiply_high(i, over_)) >> block_bits(), blocks_ - 1);
    while (left_before_block(b) > i) --b;
    while (left_before_block(b + 1) <= i) ++b;
    std::uint64_t at = begin_of(b) + (i - left_before_block(b));
    for (std::uint64_t cells = cells_of(b); cells != 0; cells &= cells - 1) {
      if (place_in(b, static_cast<std::uint32_t>(std::countr_zero(cells))) > at) break;
      ++at;
    }
    return at;
  }

  [[nodiscard]] constexpr bool is_chosen(std::uint64_t at) const noexcept {
    if (m_ == 0) return false;
    const std::uint64_t b = at >> block_bits();
    const auto cell = static_cast<std::uint32_t>((at - begin_of(b)) >> cell_bits_);
    return (cells_of(b) >> cell & 1) != 0 && place_in(b, cell) == at;
  }

  /// How many choices are below a position, which may be n.
  [[nodiscard]] constexpr std::uint64_t chosen_before(std::uint64_t at) const noexcept {
    if (m_ == 0) return 0;
    if (at >= n_) return m_;
    const std::uint64_t b = at >> block_bits();
    const auto cell = static_cast<std::uint32_t>((at - begin_of(b)) >> cell_bits_);
    const std::uint64_t cells = cells_of(b);
    const std::uint64_t below = cells & ((std::uint64_t{1} << cell) - 1);
    const bool own = (cells >> cell & 1) != 0 && place_in(b, cell) < at;
    return before_block(b) + static_cast<std::uint64_t>(std::popcount(below)) + (own ? 1 : 0);
  }

 private:
  [[nodiscard]] constexpr std::uint32_t block_bits() const noexcept { return 6 + cell_bits_; }
  [[nodiscard]] constexpr std::uint64_t begin_of(std::uint64_t b) const noexcept { return b << block_bits(); }

  /// How many choices are in the blocks below b.
  [[nodiscard]] constexpr std::uint64_t before_block(std::uint64_t b) const noexcept {
    if (b >= blocks_) return m_;
    const std::uint64_t low = b * part_;
    return b * whole_ + multiply_high(b, part_) + (low + start_ < low ? 1 : 0);
  }
  [[nodiscard]] constexpr std::uint64_t left_before_block(std::uint64_t b) const noexcept {
    return (b >= blocks_ ? n_ : begin_of(b)) - before_block(b);
  }

  /// The cells of a block that contain a choice.
  [[nodiscard]] constexpr std::uint64_t cells_of(std::uint64_t b) const noexcept {
    const std::uint64_t count = before_block(b + 1) - before_block(b);
    const std::uint64_t length = std::min(n_ - begin_of(b), std::uint64_t{64} << cell_bits_);
    const std::uint64_t cells = ((length - 1) >> cell_bits_) + 1;
    const std::uint64_t stream = mix64(key_ + b);
    std::uint64_t mask = 0;
    for (std::uint64_t t = cells - count; t < cells; ++t) {
      const std::uint64_t drawn = std::uint64_t{1} << multiply_high(mix64(stream + t), t + 1);
      mask |= (mask & drawn) == 0 ? drawn : std::uint64_t{1} << t;
    }
    return mask;
  }
  [[nodiscard]] constexpr std::uint64_t place_in(std::uint64_t b, std::uint32_t cell) const noexcept {
    const std::uint64_t begin = begin_of(b) + (std::uint64_t{cell} << cell_bits_);
    if (cell_bits_ == 0) return begin;
    const std::uint64_t length = std::min(n_ - begin, std::uint64_t{1} << cell_bits_);
    return begin + multiply_high(mix64(~key_ + (b << 6 | cell)), length);
  }

  std::uint64_t n_ = 0, m_ = 0, key_ = 0;
  std::uint64_t blocks_ = 1;
  std::uint64_t whole_ = 0, part_ = 0, start_ = 0;  // a block's share, and where the running sum starts
  std::uint64_t to_block_ = 0, over_ = 0;           // for the first guess of a choice's block
  std::uint32_t cell_bits_ = 0;
};

struct split_bound {
  std::uint64_t epoch = 0;
  detail::spread_choice choice;
  bool chosen = true;

  [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
    return {epoch, chosen ? choice.chosen(index) : choice.left(index)};
  }
};
}  // namespace detail

/// The order of `split(fraction, seed(7))` and of its `complement()`: some of the positions, the same in
/// every epoch, in their original order.
class split_order : public detail::kept_order<detail::split_bound> {
 public:
  split_order(const order_input& in, double fraction, std::uint64_t seed, bool rest) {
    detail::check_finite(in, "split");
    // The smaller part is the chosen one, so that at most every second position is chosen.
    const std::uint64_t part = detail::floor_of_product(in.size, fraction);
    const bool few = part <= in.size / 2;
    made_ = {0, detail::spread_choice(in.size, few ? part : in.size - part, seed), few != rest};
    size_ = rest ? in.size - part : part;
    starts_ = detail::starts_behind(in.starts, [this](std::uint64_t p) { return kept_before(p); });
    places_ = detail::places_behind(in.places, made_);
  }

  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (upstream.index >= made_.choice.size() || made_.choice.is_chosen(upstream.index) != made_.chosen)
      return std::nullopt;
    return position{upstream.epoch, kept_before(upstream.index)};
  }

 private:
  [[nodiscard]] std::uint64_t kept_before(std::uint64_t p) const noexcept {
    const std::uint64_t chosen = made_.choice.chosen_before(p);
    return made_.chosen ? chosen : p - chosen;
  }
};

/// The stage `split(fraction, seed(7))`, and that of its `complement()`.
///
/// Keeps floor(fraction * n) of the n positions, chosen by the seed: the same ones in every epoch, in their
/// original order. `split(fraction, seed(7)).complement()` keeps exactly the others.
///
/// Choices are spread evenly: of any 64 neighbours (of any 64 longer stretches if the smaller part is less
/// than an eighth), each part gets its share, give or take one; which ones is random. So both parts contain
/// something of each shard. Samples that belong together may end up on different sides: see `split_by_key`.
/// In: a fraction strictly between 0 and 1, taken as written (0.7 of 10 is 7), and a seed; n is counted at
/// this point of the plan, so a dataset that grows is split anew. Out: positions; shard boundaries are kept,
/// so a `shuffle` after it may have a window.
/// A sequencer; keeps every guarantee; stores nothing; about 100 ns per position (docs/order.md). Throws
/// `error(errc::argument)` for a fraction outside that range, and after an endless `repeat()`. Thread-safe.
///
///     auto train = source | split(0.9, seed(7)) | shuffle(seed(1));
///     auto valid = source | split(0.9, seed(7)).complement();
class split_stage {
 public:
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "split";

  split_stage(double fraction, std::uint64_t seed, bool rest = false)
      : fraction_(detail::checked_fraction(fraction, "split")), seed_(seed), rest_(rest) {}

  /// The positions that this stage leaves out.
  [[nodiscard]] split_stage complement() const { return {fraction_, seed_, !rest_}; }

  [[nodiscard]] split_order make(const order_input& in) const { return {in, fraction_, seed_, rest_}; }
  [[nodiscard]] std::string describe() const {
    return detail::text(
        {"split(", detail::fraction_text(fraction_), ", seed ", seed_, rest_ ? ").complement()" : ")"});
  }
  void fingerprint(auto& h) const { h.add(stage_name, detail::bits_of(fraction_), seed_, rest_); }

 private:
  double fraction_;
  std::uint64_t seed_;  // not the plan's seed: a split does not change the random numbers of what it keeps
  bool rest_;
};

namespace detail {
template <class Fraction>
  requires std::is_arithmetic_v<Fraction>
struct split_stage_of<Fraction> {
  using type = split_stage;
};
}  // namespace detail

}  // namespace penstock::inline v0_1
