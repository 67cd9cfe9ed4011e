// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/any_count.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/detail/arithmetic.hpp>
#include <penstock/order/permutation.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// The order of `fold(i, folds, seed)` and of its `rest()`: of each `folds` neighbours one, or all others;
/// the same ones in every epoch, in the order they had.
class fold_order {
 public:
  struct bound {
    std::uint64_t epoch = 0;
    detail::divider by;  // positions kept of each group
    std::uint64_t folds = 1, number = 0, key = 0;
    bool chosen = true;

    /// Which of a group's positions is this fold's.
    [[nodiscard]] std::uint64_t own(std::uint64_t group) const noexcept {
      return permutation(folds, mix64(key ^ group))(number);
    }
    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      if (chosen) return {epoch, index * folds + own(index)};
      const auto [group, among] = by(index);
      return {epoch, group * folds + among + (among >= own(group) ? 1 : 0)};
    }
  };

  fold_order(const order_input& in, std::uint64_t number, std::uint64_t folds, std::uint64_t seed, bool rest);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] order_input output() const { return {size_, starts_, places_}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const noexcept {
    bound made = made_;
    made.epoch = epoch;
    return made;
  }
  [[nodiscard]] position_range reach(position_range after) const noexcept;
  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept;

 private:
  [[nodiscard]] std::uint64_t kept_before(std::uint64_t p) const noexcept;

  bound made_;
  std::uint64_t upstream_;
  std::uint64_t size_ = 0;
  shared<const std::vector<std::uint64_t>> starts_;
  shared<const source_places> places_;
};

/// The stage `fold(i, folds, seed)`, and the one of its `rest()`.
class fold_stage {
 public:
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "fold";

  fold_stage(std::uint64_t number, std::uint64_t folds, std::uint64_t seed, bool rest = false);

  /// The positions that this one leaves out: those of all other folds.
  [[nodiscard]] fold_stage rest() const { return {number_, folds_, seed_, !rest_}; }

  [[nodiscard]] fold_order make(const order_input& in) const { return {in, number_, folds_, seed_, rest_}; }
  [[nodiscard]] std::string describe() const;
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, number_, folds_, seed_, rest_);
  }

 private:
  static constexpr std::uint64_t most_folds = std::uint64_t{1} << 32;

  std::uint64_t number_, folds_, seed_;
  bool rest_;
};

namespace detail {
struct fold_fn {
  [[nodiscard]] fold_stage operator()(any_count number, any_count folds, std::uint64_t seed) const {
    return {number.of("fold"), folds.of("fold"), seed};
  }
};
}  // namespace detail

/// Keeps one of `folds` parts of equal size, for cross-validation: `fold(i, folds, seed)` for i from 0 to
/// folds - 1 are disjoint and have every position once; `.rest()` is all but part i. The same positions in
/// every epoch, in the order they had.
///
/// Of each `folds` neighbours every part has one, and the seed says which; parts differ by one at most.
/// Shards keep their borders. Samples that belong together fall apart.
/// A sequencer; keeps every guarantee; holds nothing; some 3 ns for each of up to 120 folds a position, and
/// 50 ns for more (docs/order.md). Throws `error(errc::argument)` for a fold that is not there, fewer than
/// two or more than 2^32 of them, and behind `repeat()` without end. Free for all threads.
///
///     for (std::uint64_t i = 0; i < 5; ++i) {
///       auto train = source | fold(i, 5, 7).rest() | shuffle(1);
///       auto valid = source | fold(i, 5, 7);
///     }
inline constexpr detail::fold_fn fold{};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/fold.ipp>
#endif
