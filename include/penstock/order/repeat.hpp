// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/error.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/detail/arithmetic.hpp>

namespace penstock::inline v0_1 {

/// The order of `repeat`: several epochs of the stages before it, one after another, combined into one
/// epoch.
class repeat_order {
 public:
  static constexpr bool changes_epoch = true;
  /// The size of an order that does not end.
  static constexpr std::uint64_t endless_size = std::uint64_t{1} << 63;

  struct bound {
    std::uint64_t first_epoch = 0;
    detail::divider by;
    [[nodiscard]] constexpr position operator()(std::uint64_t index) const noexcept {
      const auto [quotient, remainder] = by(index);
      return {first_epoch + quotient, remainder};
    }
  };

  /// Endless if `times` is empty, and also if it would exceed 2^63 positions.
  repeat_order(order_input in, std::optional<std::uint64_t> times)
      : inner_(in.size), times_(times.value_or(0)), by_(in.size == 0 ? 1 : in.size) {
    if (inner_ == 0) return;
    endless_ = !times || *times > endless_size / inner_;
    size_ = endless_ ? endless_size : inner_ * times_;
    if (in.starts && !endless_ && (in.starts->size() - 1) <= shards_kept / (times_ == 0 ? 1 : times_)) {
      shared<std::vector<std::uint64_t>> all(new std::vector<std::uint64_t>(1, 0));
      for (std::uint64_t time = 0; time < times_; ++time) {
        for (std::size_t i = 1; i < in.starts->size(); ++i) all->push_back(time * inner_ + (*in.starts)[i]);
      }
      starts_ = std::move(all);
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool endless() const noexcept { return endless_; }
  [[nodiscard]] order_input output() const { return {size_, starts_}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const { return {first_epoch(epoch), by_}; }

  [[nodiscard]] position_range reach(position_range after) const {
    if (size_ == 0) return after;
    return {bind(after.first.epoch)(after.first.index), bind(after.last.epoch)(after.last.index)};
  }

  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (size_ == 0 || upstream.index >= inner_) return std::nullopt;
    if (!endless_)
      return position{upstream.epoch / times_, upstream.epoch % times_ * inner_ + upstream.index};
    if (upstream.epoch > (endless_size - 1 - upstream.index) / inner_) return std::nullopt;
    return position{0, upstream.epoch * inner_ + upstream.index};
  }

 private:
  /// Shard boundaries are repeated too, up to this many; beyond that, the stages after it see one shard.
  static constexpr std::uint64_t shards_kept = std::uint64_t{1} << 20;

  [[nodiscard]] std::uint64_t first_epoch(std::uint64_t epoch) const {
    if (epoch == 0 || size_ == 0) return 0;
    if (endless_) {
      throw error(errc::argument, {"repeat() without end has only epoch 0, not ", epoch,
                                   "; write repeat(k) if you need epochs"})
          .in_stage("repeat");
    }
    if (epoch > (std::numeric_limits<std::uint64_t>::max() - (times_ - 1)) / times_) {
      throw error(errc::argument, {"epoch ", epoch, " of repeat(", times_, ") is beyond 64 bits"})
          .in_stage("repeat");
    }
    return epoch * times_;
  }

  std::uint64_t inner_;
  std::uint64_t times_;
  std::uint64_t size_ = 0;
  detail::divider by_;
  bool endless_ = false;
  shared<const std::vector<std::uint64_t>> starts_;
};

/// The stage `repeat(k)` or `repeat()`.
struct repeat_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "repeat";
  static constexpr bool works_forward = true;
  static constexpr bool goes_round = true;

  [[nodiscard]] repeat_order make(order_input in) const { return repeat_order(std::move(in), times); }
  [[nodiscard]] std::string describe() const {
    return times ? detail::text({"repeat(", *times, ")"}) : std::string("repeat()");
  }
  void fingerprint(auto& h) const {
    h.add(stage_name, times.value_or(std::numeric_limits<std::uint64_t>::max()));
  }

  std::optional<std::uint64_t> times;
};

namespace detail {
struct repeat_fn {
  [[nodiscard]] constexpr repeat_stage operator()() const noexcept { return {std::nullopt}; }
  [[nodiscard]] constexpr repeat_stage operator()(any_count k) const { return {k.of("repeat")}; }
};
}  // namespace detail

/// Combines k epochs into one: `repeat(k)`, or endlessly: `repeat()`.
///
/// A sequencer; keeps every guarantee; costs two multiplications per sample. Index i of epoch e is index i
/// mod n of epoch e * k + i / n before the stage, so a shuffle before it is a new one each time. Batches
/// after it may span the boundary between two of those epochs. `repeat()` has 2^63 positions and a single
/// epoch: asking for another throws `error(errc::argument)`. Shard boundaries are kept for up to 2^20
/// shards in total. Thread-safe.
///
///     auto loader = source | shuffle | repeat(90) | batch(256);   // no short batch between epochs
inline constexpr detail::repeat_fn repeat{};

}  // namespace penstock::inline v0_1
