// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/named_split.hpp>
#include <penstock/order/detail/places.hpp>
#include <penstock/order/detail/spread_choice.hpp>

namespace penstock::inline v0_1 {

namespace detail {
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
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, detail::bits_of(fraction_), seed_, rest_);
  }

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
