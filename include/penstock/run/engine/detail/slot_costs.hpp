// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/run/engine/tuning/slow_samples.hpp>
#include <penstock/run/engine/tuning/tuning.hpp>
#include <penstock/run/engine/tuning/worker_counts.hpp>
#include <penstock/run/engine/workers/dear_slots.hpp>
#include <penstock/run/feed/placement.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

template <class Stage>
concept longest_first_part = requires { requires Stage::begins_longest_first; };

/// The place of a plan's first `longest_first`, or the number of its stages.
template <class Stages>
inline constexpr std::size_t place_of_longest_first = 0;
template <class... Stages>
inline constexpr std::size_t place_of_longest_first<light_tuple<Stages...>> = [] {
  std::size_t found = sizeof...(Stages), i = 0;
  ((longest_first_part<Stages> && found == sizeof...(Stages) ? (found = i, ++i) : ++i), ...);
  return found;
}();

[[noreturn, gnu::cold]] inline void refuse_costs_in_bytes() {
  throw error(errc::argument,
              "longest_first(by_bytes): this source does not know how many bytes a sample has; write "
              "longest_first, which learns, or longest_first(cost)")
      .in_stage("longest_first");
}

/// What samples are expected to take, of a plan that does not ask.
template <class Plan, bool Any = place_of_longest_first<typename Plan::stages_type> !=
                                 parts_in<typename Plan::stages_type>::count>
class slot_costs {
 public:
  static constexpr bool any = false, learns = false;
  slot_costs(const Plan&, const auto&) noexcept {}
};

/// Finds the samples of a block that take far longer than others, by `longest_first(cost)`. `find` is called
/// by the consumer, `pass_over` and `watch` by workers.
template <class Plan>
class slot_costs<Plan, true> {
  static constexpr std::size_t place = place_of_longest_first<typename Plan::stages_type>;
  using reader_type = typename Plan::source_type::reader;
  using cost_type = decltype(at<place>(std::declval<const Plan&>().stages()).cost);

 public:
  static constexpr bool any = true, learns = requires { requires cost_type::learns; },
                        in_bytes = requires { requires cost_type::in_bytes; };

  slot_costs(const Plan& p, const std::optional<reader_type>& opened)
      : cost_(at<place>(p.stages()).cost), slow_(learns ? p.source().size() : 0) {
    const reader_type& reader = *opened;
    found_.reserve(dear_slot::maximum);
    if constexpr (in_bytes) {
      if (!tells_ranges<reader_type>) refuse_costs_in_bytes();
      if (const std::uint64_t each = bytes_per_sample_of(reader); each != 0)
        sum_ = static_cast<double>(each), count_ = 1;
    } else if constexpr (!learns) {
      const std::uint64_t size = p.source().size();
      cost_.check(cut_input{.dataset = p.source().fingerprint(), .samples = size}, "longest_first");
      for (std::uint64_t i = 0, step = std::max<std::uint64_t>(1, size / 64); i < size; i += step)
        sum_ += cost(reader, {0, i}), ++count_;
    }
  }

  /// The slots of a block that are expected to take far longer than others, in any order. `mean_ns`: what a
  /// sample of this run takes a worker.
  template <class Block, class Chain>
  [[nodiscard]] std::span<dear_slot> find(const Block& b, const reader_type& reader, const Chain& chain,
                                          double mean_ns) {
    found_.clear();
    if (learns && (slow_.empty() || mean_ns <= 0)) return {};
    for (const batch_rows& batch : b.batches)
      for (std::uint64_t row = batch.first; row < batch.first + batch.valid; ++row) {
        const position source = b.binding(b.listed ? b.indices[to_size(row)] : batch.view[row - batch.first]);
        const double expected = cost(reader, source);
        if constexpr (!learns) sum_ += expected, ++count_;
        const double times = expected / (learns ? mean_ns : sum_ / static_cast<double>(count_));
        if (times >= static_cast<double>(tuning::dear) && !is_kept_in(chain, source)) add({row, times});
      }
    return {found_.data(), found_.size()};
  }

  /// Has a worker evaluate the rows [first, last) but those that others have begun before their turn, by
  /// `evaluate(first, last)`, which returns how many samples that were; if the run learns, one by one.
  template <class Block, class Evaluate>
  std::uint64_t pass_over(const Block& b, const worker_counts& counts, dear_slots::others& apart,
                          std::uint64_t first, std::uint64_t last, Evaluate evaluate) noexcept {
    std::sort(apart.slots.begin(), apart.slots.begin() + static_cast<std::ptrdiff_t>(apart.count));
    const std::uint64_t usual = learned_mean(counts);
    std::uint64_t samples = 0;
    for (std::size_t i = 0; i <= apart.count; ++i) {
      const std::uint64_t end = i == apart.count ? last : apart.slots[i];
      if (usual == 0) samples += evaluate(first, end);
      for (std::uint64_t begin = usual == 0 ? 0 : now_ns(); usual != 0 && first < end; ++first) {
        const std::uint64_t one = evaluate(first, first + 1), now = now_ns();
        if (one != 0 && now - begin >= usual * tuning::dear) note(b, first, now - begin);
        samples += one;
        begin = now;
      }
      first = end + 1;
    }
    return samples;
  }
  /// Has a worker evaluate a row before its turn; if the run learns, takes note of how long that takes now.
  template <class Block, class Evaluate>
  std::uint64_t watch(const Block& b, const worker_counts& counts, std::uint64_t row,
                      Evaluate evaluate) noexcept {
    const std::uint64_t usual = learned_mean(counts), begin = usual == 0 ? 0 : now_ns(), samples = evaluate();
    if (usual == 0) return samples;
    const std::uint64_t took = now_ns() - begin;
    note(b, row, took >= usual * tuning::dear ? took : 0);
    return samples;
  }

 private:
  /// What a sample takes a worker, if its samples are timed one by one to find those that take far longer;
  /// otherwise 0.
  static std::uint64_t learned_mean([[maybe_unused]] const worker_counts& counts) noexcept {
    if constexpr (!learns) return 0;
    const std::uint64_t samples = counts.samples.load(std::memory_order_relaxed);
    if (samples < tuning::learned_after) return 0;
    const std::uint64_t mean = counts.busy_ns.load(std::memory_order_relaxed) / samples;
    return mean < tuning::learned_time ? 0 : mean;
  }
  template <class Block>
  void note(const Block& b, std::uint64_t row, std::uint64_t ns) noexcept {
    slow_.note(b.binding(b.index(row)).index, ns);
  }
  void add(const dear_slot& one) {
    if (found_.size() < dear_slot::maximum) return found_.push_back(one);
    const auto least = std::min_element(found_.begin(), found_.end(),
                                        [](const auto& a, const auto& b) { return a.times < b.times; });
    if (least->times < one.times) *least = one;
  }
  /// 0 where it is unknown, also because asking for it failed: the order of work does not depend on it.
  [[nodiscard]] double cost([[maybe_unused]] const reader_type& reader, position source) noexcept {
    try {
      if constexpr (learns) {
        return static_cast<double>(slow_.find(source.index));
      } else if constexpr (in_bytes) {
        double bytes = 0;
        if constexpr (tells_ranges<reader_type>)
          ranges_of(reader, source, scout_, [&](auto&, object_id, std::uint64_t, std::uint64_t size) {
            bytes += static_cast<double>(size);
          });
        return bytes;
      } else {
        return static_cast<double>(cost_(source.index));
      }
    } catch (...) {
      return 0;
    }
  }

  cost_type cost_;
  [[no_unique_address]] scout_of<reader_type> scout_{};
  slow_samples slow_;
  double sum_ = 0;  // of costs, for their mean
  std::uint64_t count_ = 0;
  std::vector<dear_slot> found_;
};

}  // namespace penstock::inline v0_1::detail
