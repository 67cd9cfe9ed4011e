// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/any_seed.hpp>
#include <penstock/order/detail/places.hpp>
#include <penstock/order/permutation.hpp>

namespace penstock::inline v0_1 {

namespace detail {
struct fold_bound {
  std::uint64_t epoch = 0;
  detail::divider by;  // the number of positions kept of each group
  std::uint64_t folds = 1, number = 0, key = 0;
  bool chosen = true;

  /// Which of a group's positions belongs to this fold.
  [[nodiscard]] std::uint64_t own(std::uint64_t group) const noexcept {
    return permutation(folds, mix64(key ^ group))(number);
  }
  [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
    if (chosen) return {epoch, index * folds + own(index)};
    const auto [group, among] = by(index);
    return {epoch, group * folds + among + (among >= own(group) ? 1 : 0)};
  }
};
}  // namespace detail

/// The order of `fold(i, folds, seed(7))` and of its `complement()`: one of every `folds` neighbours, or all
/// the others. The same positions in every epoch, in their original order.
class fold_order : public detail::kept_order<detail::fold_bound> {
 public:
  fold_order(const order_input& in, std::uint64_t number, std::uint64_t folds, std::uint64_t seed, bool rest)
      : upstream_(in.size) {
    detail::check_finite(in, "fold");
    made_ = {0, detail::divider(folds - 1), folds, number, mix64(seed ^ 0x666f6c64u), !rest};
    size_ = kept_before(upstream_);
    starts_ = detail::starts_behind(in.starts, [this](std::uint64_t p) { return kept_before(p); });
    places_ = detail::places_behind(in.places, made_);
  }

  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (upstream.index >= upstream_) return std::nullopt;
    const bool own = made_.own(upstream.index / made_.folds) == upstream.index % made_.folds;
    if (own != made_.chosen) return std::nullopt;
    return position{upstream.epoch, kept_before(upstream.index)};
  }

 private:
  [[nodiscard]] std::uint64_t kept_before(std::uint64_t p) const noexcept {
    const std::uint64_t group = p / made_.folds, among = p % made_.folds;
    const std::uint64_t chosen = group + (among != 0 && made_.own(group) < among ? 1 : 0);
    return made_.chosen ? chosen : p - chosen;
  }

  std::uint64_t upstream_;
};

/// The stage `fold(i, folds, seed(7))`, and that of its `complement()`.
class fold_stage {
 public:
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "fold";

  fold_stage(std::uint64_t number, std::uint64_t folds, std::uint64_t seed, bool rest = false)
      : number_(number), folds_(folds), seed_(seed), rest_(rest) {
    if (folds < 2 || folds > max_folds || number >= folds) {
      throw error(errc::argument, {"there is no fold ", number, " of ", folds,
                                   "; write fold(i, folds, seed(7)) with i below folds, and 2 to 2^32 folds"})
          .in_stage(stage_name);
    }
  }

  /// The positions that this stage leaves out: those of all other folds.
  [[nodiscard]] fold_stage complement() const { return {number_, folds_, seed_, !rest_}; }

  [[nodiscard]] fold_order make(const order_input& in) const { return {in, number_, folds_, seed_, rest_}; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"fold(", number_, " of ", folds_, ", seed ", seed_, rest_ ? ").complement()" : ")"});
  }
  void fingerprint(auto& h) const { h.add(stage_name, number_, folds_, seed_, rest_); }

 private:
  static constexpr std::uint64_t max_folds = std::uint64_t{1} << 32;

  std::uint64_t number_, folds_, seed_;
  bool rest_;
};

/// Keeps one of `folds` parts of equal size, for cross-validation. `fold(i, folds, seed(7))` for i from 0 to
/// folds - 1 are disjoint and together cover every position once; `.complement()` is everything but part i.
/// The same positions in every epoch, in their original order.
///
/// Every part gets one of every `folds` neighbours, chosen by the seed; the sizes of parts differ by at
/// most one. Shard boundaries are kept. Samples that belong together may end up in different parts.
/// A sequencer; keeps every guarantee; stores nothing; a position costs about 3 ns per fold with up to 120
/// folds, and 50 ns with more (docs/order.md). Throws `error(errc::argument)` for a fold that does not
/// exist, for fewer than two or more than 2^32 folds, and after an endless `repeat()`. Thread-safe.
///
///     for (std::uint64_t i = 0; i < 5; ++i) {
///       auto train = source | fold(i, 5, seed(7)).complement() | shuffle(seed(1));
///       auto valid = source | fold(i, 5, seed(7));
///     }
[[nodiscard]] inline fold_stage fold(any_count number, any_count folds, any_seed seed) {
  return {number.of("fold"), folds.of("fold"), seed.value()};
}

}  // namespace penstock::inline v0_1
