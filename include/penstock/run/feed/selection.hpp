// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/light_tuple.hpp>
#include <penstock/core/part.hpp>
#include <penstock/order/concepts.hpp>

#include <algorithm>
#include <limits>
#include <vector>

namespace penstock::inline v0_1 {

/// Which elements of a sequence pass: take, skip and shard, where only a count is known. Pure functions of a
/// number.
///
/// `look` covers take and skip, which count over all ranks together; what passes is dealt to the ranks in
/// turn, wherever `shard` stands among them.
class selection {
 public:
  selection() = default;
  explicit selection(item_range kept) : kept_(1, kept) {}

  /// Of the elements that pass, keeps only these.
  void keep(item_range kept) { kept_.push_back(kept); }
  void deal(std::uint64_t rank, std::uint64_t world) noexcept {
    rank_ = rank;
    world_ = world;
  }
  /// Restarts the deal at each global step of so many, if the number of ranks does not divide it.
  void deal_in_steps_of(std::uint64_t global) noexcept {
    if (global % world_ != 0) step_ = global;
  }

  enum class verdict { pass, drop, end };
  /// Whether everything passes and belongs to this rank.
  [[nodiscard]] bool trivial() const noexcept { return kept_.empty() && !deals(); }
  [[nodiscard]] bool deals() const noexcept { return world_ != 1; }

  [[nodiscard]] verdict look(std::uint64_t number) const noexcept {
    for (const item_range& one : kept_) {
      if (number < one.first) return verdict::drop;
      if (number >= one.end) return verdict::end;
      number -= one.first;
    }
    return verdict::pass;
  }
  /// How many of the first `count` elements pass `look`.
  [[nodiscard]] std::uint64_t passing(std::uint64_t count) const noexcept {
    for (const item_range& one : kept_) count = std::min(count, one.end) - std::min(count, one.first);
    return count;
  }
  /// The minimum number of elements from which `count` pass, if so many can.
  [[nodiscard]] std::uint64_t reaching(std::uint64_t count) const noexcept {
    constexpr std::uint64_t maximum = std::numeric_limits<std::uint64_t>::max();
    for (const item_range& one : kept_) count = count > maximum - one.first ? maximum : count + one.first;
    return count;
  }
  /// Whether this rank gets number `dealt` of the elements that pass.
  [[nodiscard]] bool ours(std::uint64_t dealt) const noexcept {
    return world_ == 1 || (step_ == 0 ? dealt : dealt % step_) % world_ == rank_;
  }

  /// What a state records of a single-stage selection whose next element has this number: for `take`, how
  /// many it has passed; for `skip` and `shard`, how many they leave out before the next one.
  [[nodiscard]] std::uint64_t mark_at(std::uint64_t number) const noexcept {
    if (kept_.empty()) return (world_ + rank_ - number % world_) % world_;
    const item_range& kept = kept_.front();
    return kept.first == 0 ? number : kept.first - std::min(number, kept.first);
  }
  /// The inverse of `mark_at`, which is its own.
  [[nodiscard]] std::uint64_t number_at(std::uint64_t mark) const noexcept { return mark_at(mark); }

 private:
  std::vector<item_range> kept_;
  std::uint64_t rank_ = 0, world_ = 1;
  std::uint64_t step_ = 0;  // 0: a multiple of the number of ranks
};

namespace detail {

/// The selection that the stages at places [First, Last) of a plan make.
template <std::size_t First, std::size_t Last, class... Stages>
selection select_between(const light_tuple<Stages...>& stages) {
  selection all;
  std::size_t place = 0;
  const auto one = [&]<class Stage>(const Stage& stage) {
    const bool within = place >= First && place < Last;
    if constexpr (part_of_kind<Stage, shard_tag>) {
      if (within) all.deal(stage.share.rank, stage.share.size);
    } else if constexpr (counting_stage<Stage>) {
      if (within) all.keep(stage.kept());
    }
    ++place;
  };
  stages.apply([&](const Stages&... each) { (one(each), ...); });
  return all;
}

}  // namespace detail

}  // namespace penstock::inline v0_1
