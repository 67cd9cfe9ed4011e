// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/concepts.hpp>

#include <algorithm>
#include <array>

namespace penstock::inline v0_1 {

namespace detail {

template <class Order>
concept epoch_changing = requires { requires Order::changes_epoch; };
template <class Order>
concept repeating = requires { requires Order::repeats; };
template <class Order>
concept padding = requires(const typename Order::bound& b, std::uint64_t index) { b.pads(index); };

/// One stage's bound orders, for consecutive epochs.
template <class Bound>
class bound_epochs {
 public:
  [[nodiscard]] position operator()(position at) const {
    return bounds_[detail::to_size(at.epoch - first_)](at.index);
  }
  [[nodiscard]] bool pads(position at) const {
    return bounds_[detail::to_size(at.epoch - first_)].pads(at.index);
  }

  void rebind(const auto& made, std::uint64_t first, std::uint64_t last) {
    const std::uint64_t count = last - first + 1;
    if (count > maximum) {
      throw error(errc::limit, {"a shuffle over ", count,
                                " repeated epochs would bind them all; write shuffle before repeat"});
    }
    if (first == first_ && count == bounds_.size()) return;
    if (first >= first_ && first - first_ < bounds_.size()) {
      bounds_.erase(bounds_.begin(), bounds_.begin() + static_cast<std::ptrdiff_t>(first - first_));
      if (bounds_.size() > count) bounds_.resize(static_cast<std::size_t>(count));
    } else {
      bounds_.clear();
    }
    first_ = first;
    try {
      while (bounds_.size() < count) bounds_.push_back(made.bind(first + bounds_.size()));
    } catch (...) {
      bounds_.clear();  // a partly bound range must not look complete
      throw;
    }
  }

 private:
  static constexpr std::uint64_t maximum = std::uint64_t{1} << 20;

  std::uint64_t first_ = 0;
  std::vector<Bound> bounds_;
};

/// The bound order of a stage after which no stage changes the epoch: only one, in place.
template <class Bound>
class bound_epoch {
 public:
  [[nodiscard]] position operator()(position at) const { return bound_(at.index); }
  [[nodiscard]] bool pads(position at) const { return bound_.pads(at.index); }

  void rebind(const auto& made, std::uint64_t first, std::uint64_t) {
    if (epoch_ == first && there_) return;
    there_ = false;
    bound_ = made.bind(first);
    epoch_ = first;
    there_ = true;
  }

 private:
  std::uint64_t epoch_ = 0;
  bool there_ = false;
  Bound bound_;
};

}  // namespace detail

/// The orders of a plan combined into one: maps a position after the last stage to a position in the source,
/// and back.
///
/// `Orders` are in the plan's order; mapping a position back starts at the last one. Without orders, the
/// chain is the identity. Immutable, cheap to copy, thread-safe. Throws what the stages throw:
/// `error(errc::argument)`.
///
///     const auto chain = make_order_chain({source.size(), source.starts()}, shuffle(seed(7)), take(1000));
///     auto binding = chain.bind(epoch, 0, chain.size());
///     for (std::uint64_t i = 0; i < chain.size(); ++i) load(binding(i).index);
template <order... Orders>
class order_chain {
  static constexpr std::size_t count = sizeof...(Orders);
  using order_pack = light_tuple<Orders...>;

  /// Whether a stage after number I gives it epochs other than the chain's.
  template <std::size_t I>
  static constexpr bool many_epochs() {
    constexpr std::array<bool, count + 1> changing{detail::epoch_changing<Orders>..., false};
    for (std::size_t later = I + 1; later < count; ++later) {
      if (changing[later]) return true;
    }
    return false;
  }

  template <std::size_t I>
  using level = std::conditional_t<many_epochs<I>(),
                                   detail::bound_epochs<typename detail::type_at<I, order_pack>::bound>,
                                   detail::bound_epoch<typename detail::type_at<I, order_pack>::bound>>;

  template <class Numbers>
  struct levels_of;
  template <std::size_t... I>
  struct levels_of<std::index_sequence<I...>> {
    using type = light_tuple<level<I>...>;
  };

 public:
  /// Everything needed to map the indexes of one epoch to source positions. A call allocates nothing and
  /// takes no lock; the binding itself keeps its tables alive. Copyable. The index must be within the bound
  /// range; this is not checked.
  class binding {
   public:
    binding() = default;

    [[nodiscard]] position operator()(std::uint64_t index) const { return through<count>({epoch_, index}); }
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
    /// Whether a stage repeats a sample at this index to fill up the epoch.
    [[nodiscard]] bool pads(std::uint64_t index) const { return pads_before<count>({epoch_, index}); }

   private:
    friend class order_chain;

    template <std::size_t Left>
    [[nodiscard]] position through(position at) const {
      if constexpr (Left == 0) {
        return at;
      } else {
        return through<Left - 1>(detail::at<Left - 1>(levels_)(at));
      }
    }
    template <std::size_t Left>
    [[nodiscard]] bool pads_before(position at) const {
      if constexpr (Left == 0) {
        return false;
      } else {
        const auto& last = detail::at<Left - 1>(levels_);
        if constexpr (detail::padding<detail::type_at<Left - 1, order_pack>>)
          if (last.pads(at)) return true;
        return pads_before<Left - 1>(last(at));
      }
    }

    std::uint64_t epoch_ = 0;
    typename levels_of<std::make_index_sequence<count>>::type levels_;
  };

  /// Whether a sample may be at several positions of an epoch.
  static constexpr bool repeats = (detail::repeating<Orders> || ...);
  /// Whether a stage repeats samples to fill up an epoch.
  static constexpr bool pads = (detail::padding<Orders> || ...);
  /// Whether one epoch may contain positions of several epochs of the source.
  static constexpr bool changes_epoch = (detail::epoch_changing<Orders> || ...);

  explicit order_chain(order_input in, order_pack orders) : in_(std::move(in)), orders_(std::move(orders)) {}

  /// The number of positions per epoch after the last stage.
  [[nodiscard]] std::uint64_t size() const { return output_size<count>(); }
  /// The input of the first stage; `output()` is that of a stage after the last one.
  [[nodiscard]] const order_input& input() const noexcept { return in_; }
  [[nodiscard]] order_input output() const {
    if constexpr (count == 0) {
      return in_;
    } else {
      return detail::at<count - 1>(orders_).output();
    }
  }
  /// The number of lanes, from the last stage that sets it; 1 if none does. The cut sorts by lanes.
  [[nodiscard]] std::uint64_t lanes() const {
    std::uint64_t found = 1;
    const auto look = [&found]<class Order>(const Order& stage) {
      if constexpr (lane_setting<Order>) found = stage.lanes();
    };
    orders_.apply([&look](const auto&... stages) { (look(stages), ...); });
    return found;
  }

  /// The source position at `after`. Binds everything for this one call: in loops, use a binding.
  [[nodiscard]] position sample_at(position after) const {
    if (after.index >= size()) {
      throw error(errc::argument, {"index ", after.index, " is not below the epoch's size ", size()})
          .add_context(after);
    }
    return back<count>(after);
  }

  /// The position of a source position; empty if a stage leaves it out.
  [[nodiscard]] std::optional<position> position_of(position source) const {
    if (source.index >= in_.size) return std::nullopt;
    std::optional<position> found = source;
    const auto step = [&found](const auto& stage) {
      if (found) found = stage.position_of(*found);
    };
    orders_.apply([&step](const auto&... stages) { (step(stages), ...); });
    return found;
  }

  /// Binds the indices [first, last) of an epoch.
  [[nodiscard]] binding bind(std::uint64_t epoch, std::uint64_t first, std::uint64_t last) const {
    binding made;
    rebind(made, epoch, first, last);
    return made;
  }

  /// Binds the indexes [first, last) of an epoch into an existing binding. Whatever is still bound is kept,
  /// so that the steady state allocates nothing.
  void rebind(binding& reused, std::uint64_t epoch, std::uint64_t first, std::uint64_t last) const {
    reused.epoch_ = epoch;
    last = std::min(last, size());
    if (first >= last) return;
    rebind_level<count>(reused, {{epoch, first}, {epoch, last - 1}});
  }

 private:
  template <std::size_t Left>
  [[nodiscard]] std::uint64_t output_size() const {
    if constexpr (Left == 0) {
      return in_.size;
    } else {
      return detail::at<Left - 1>(orders_).size();
    }
  }

  template <std::size_t Left>
  [[nodiscard]] position back(position at) const {
    if constexpr (Left == 0) {
      return at;
    } else {
      return back<Left - 1>(detail::at<Left - 1>(orders_).bind(at.epoch)(at.index));
    }
  }

  template <std::size_t Left>
  void rebind_level(binding& reused, position_range after) const {
    if constexpr (Left != 0) {
      const auto& stage = detail::at<Left - 1>(orders_);
      using stage_type = std::remove_cvref_t<decltype(stage)>;
      detail::at<Left - 1>(reused.levels_).rebind(stage, after.first.epoch, after.last.epoch);
      if constexpr (Left != 1) {
        if constexpr (reaching<stage_type>) {
          after = stage.reach(after);
        } else {
          after.first.index = 0;
          after.last.index = output_size<Left - 1>() - 1;
        }
        rebind_level<Left - 1>(reused, after);
      }
    }
  }

  order_input in_;
  order_pack orders_;
};

namespace detail {

template <class... Made>
[[nodiscard]] auto extend_chain(const order_input& first, order_input, light_tuple<Made...> made) {
  return order_chain<Made...>(first, std::move(made));
}

template <class... Made, class Stage, class... Rest>
[[nodiscard]] auto extend_chain(const order_input& first, order_input in, light_tuple<Made...> made,
                                const Stage& stage, const Rest&... rest) {
  auto next = stage.make(std::move(in));
  order_input out = next.output();
  return extend_chain(first, std::move(out), join(std::move(made), make_light_tuple(std::move(next))),
                      rest...);
}

}  // namespace detail

/// Makes the order chain of these stages over a source with this input.
template <order_stage... Stages>
[[nodiscard]] auto make_order_chain(order_input in, const Stages&... stages) {
  return detail::extend_chain(in, in, light_tuple<>{}, stages...);
}

/// The return type of `make_order_chain` for these stages.
template <order_stage... Stages>
using order_chain_of = order_chain<order_of<Stages>...>;

}  // namespace penstock::inline v0_1
