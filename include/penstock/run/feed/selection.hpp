// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/pack.hpp>
#include <penstock/core/part.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Which of a sequence of things pass: what take, skip and shard are where only a count is known. Pure
/// functions of a number.
///
/// `look` is about take and skip, which count for all ranks together; what passes them is dealt to the ranks
/// in turn, wherever among them `shard` stands.
class selection {
 public:
  void skip_first(std::uint64_t n) { bounds_.push_back({true, n}); }
  void take_first(std::uint64_t n) { bounds_.push_back({false, n}); }
  void deal(std::uint64_t rank, std::uint64_t world) {
    rank_ = rank;
    world_ = world;
  }
  /// Deals anew with each global step of so many: where the number of ranks does not divide it.
  void deal_in_steps_of(std::uint64_t global) {
    if (global % world_ != 0) step_ = global;
  }

  enum class verdict { pass, drop, end };
  /// Whether everything passes and is ours.
  [[nodiscard]] bool trivial() const noexcept { return bounds_.empty() && !deals(); }
  [[nodiscard]] bool deals() const noexcept { return world_ != 1; }

  [[nodiscard]] verdict look(std::uint64_t number) const noexcept {
    for (const bound& b : bounds_) {
      if (b.skips) {
        if (number < b.n) return verdict::drop;
        number -= b.n;
      } else if (number >= b.n) {
        return verdict::end;
      }
    }
    return verdict::pass;
  }
  /// How many of the first `count` pass `look`.
  [[nodiscard]] std::uint64_t passing(std::uint64_t count) const noexcept {
    for (const bound& b : bounds_) count = b.skips ? count - std::min(count, b.n) : std::min(count, b.n);
    return count;
  }
  /// How many there must be at least for `count` of them to pass, if so many can.
  [[nodiscard]] std::uint64_t reaching(std::uint64_t count) const noexcept {
    constexpr std::uint64_t most = ~std::uint64_t{0};
    for (const bound& b : bounds_)
      if (b.skips) count = count > most - b.n ? most : count + b.n;
    return count;
  }
  /// Whether the rank at hand gets number `dealt` of those that pass.
  [[nodiscard]] bool ours(std::uint64_t dealt) const noexcept {
    return (step_ == 0 ? dealt : dealt % step_) % world_ == rank_;
  }

 private:
  struct bound {
    bool skips;
    std::uint64_t n;
  };
  std::vector<bound> bounds_;
  std::uint64_t rank_ = 0, world_ = 1;
  std::uint64_t step_ = 0;  // 0: it is a multiple of the world's size
};

namespace detail {

/// The selection that the stages at places [First, Last) of a plan make.
template <std::size_t First, std::size_t Last, class... Stages>
selection select_between(const pack<Stages...>& stages) {
  selection all;
  const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    const auto& stage = at<I>(stages);
    using type = std::remove_cvref_t<decltype(stage)>;
    if constexpr (I >= First && I < Last) {
      if constexpr (part_of_kind<type, shard_tag>)
        all.deal(stage.part.rank, stage.part.size);
      else if constexpr (part_of_kind<type, order_tag> && type::stage_name == std::string_view("skip"))
        all.skip_first(stage.count);
      else if constexpr (part_of_kind<type, order_tag>)
        all.take_first(stage.count);
    }
  };
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    (one(std::integral_constant<std::size_t, Is>{}), ...);
  }(std::index_sequence_for<Stages...>{});
  return all;
}

}  // namespace detail

}  // namespace penstock::inline v0_1
