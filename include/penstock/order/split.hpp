// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/detail/fraction.hpp>
#include <penstock/order/detail/places.hpp>
#include <penstock/order/detail/spread_choice.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// The order of `split(fraction, seed)` and of its `rest()`: some of the positions, the same in every epoch,
/// in the order they had.
template <class = void>
class basic_split_order {
 public:
  struct bound {
    std::uint64_t epoch = 0;
    detail::spread_choice choice;
    bool chosen = true;

    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      return {epoch, chosen ? choice.chosen(index) : choice.left(index)};
    }
  };

  basic_split_order(const order_input& in, double fraction, std::uint64_t seed, bool rest) {
    detail::check_finite(in, "split");
    // The smaller part is what is chosen, so that no more than every second position is.
    const std::uint64_t part = detail::floor_of_product(in.size, fraction);
    const bool few = part <= in.size / 2;
    made_ = {0, detail::spread_choice(in.size, few ? part : in.size - part, seed), few != rest};
    size_ = rest ? in.size - part : part;
    starts_ = detail::starts_behind(in.starts, [this](std::uint64_t p) { return kept_before(p); });
    places_ = detail::places_behind(in.places, made_);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] order_input output() const { return {size_, starts_, places_}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const noexcept { return {epoch, made_.choice, made_.chosen}; }
  [[nodiscard]] position_range reach(position_range after) const noexcept {
    return {bind(after.first.epoch)(after.first.index), bind(after.last.epoch)(after.last.index)};
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

  bound made_;
  std::uint64_t size_ = 0;
  std::shared_ptr<const std::vector<std::uint64_t>> starts_;
  std::shared_ptr<const source_places> places_;
};
using split_order = basic_split_order<>;

/// The stage `split(fraction, seed)`, and the one of its `rest()`.
template <class = void>
class basic_split_stage {
 public:
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "split";

  basic_split_stage(double fraction, std::uint64_t seed, bool rest = false)
      : fraction_(detail::checked_fraction(fraction, "split")), seed_(seed), rest_(rest) {}

  /// The positions that this one leaves out.
  [[nodiscard]] basic_split_stage rest() const { return {fraction_, seed_, !rest_}; }

  [[nodiscard]] split_order make(const order_input& in) const { return {in, fraction_, seed_, rest_}; }
  [[nodiscard]] std::string describe() const {
    return detail::text(
        {"split(", detail::fraction_text(fraction_), ", seed ", seed_, rest_ ? ").rest()" : ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, detail::bits_of(fraction_), seed_, rest_);
  }

 private:
  double fraction_;
  std::uint64_t seed_;  // not of the plan's random numbers: a split changes nothing for what is kept
  bool rest_;
};
using split_stage = basic_split_stage<>;

namespace detail {
struct split_fn {
  [[nodiscard]] split_stage operator()(double fraction, std::uint64_t seed) const { return {fraction, seed}; }
};
}  // namespace detail

/// Keeps floor(fraction * n) of the n positions, chosen by the seed: the same ones in every epoch, in the
/// order they had. `split(fraction, seed).rest()` keeps all others and no more.
///
/// Choices are spread out: of any 64 neighbours (of 64 longer stretches, where the smaller part has less than
/// an eighth) either part has its share, give or take one; which ones they are is random. So both parts have
/// something of each shard. Samples that belong together fall apart: see `split_by_key`.
/// In: a fraction between 0 and 1, both left out, as it is written (0.7 of 10 is 7), and a seed; n is counted
/// at this place of the plan, so that a dataset that grows is split anew. Out: positions; shards keep their
/// borders, a `shuffle` behind it may have a window.
/// A sequencer; keeps every guarantee; holds nothing; about 100 ns a position (docs/order.md). Throws
/// `error(errc::argument)` for another fraction, and behind `repeat()` without end. Free for all threads.
///
///     auto train = source | split(0.9, 7) | shuffle(1);
///     auto valid = source | split(0.9, 7).rest();
inline constexpr detail::split_fn split{};

}  // namespace penstock::inline v0_1
