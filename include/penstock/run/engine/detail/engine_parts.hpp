// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/plan.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/device/host.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/engine/workers/ring.hpp>
#include <penstock/run/feed/front.hpp>
#include <penstock/run/feed/serial_front.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

/// The parts of an engine that depend on the plan: delivery, device, front, and whether its elements are
/// numbers.
namespace penstock::inline v0_1 {

namespace detail {

/// How finished blocks reach the consumer by the first stage that says so; null if none does.
template <class Stages>
struct delivery_of {
  static constexpr block_delivery::maker make = nullptr;
};
template <class Stage, class... Rest>
struct delivery_of<pack<Stage, Rest...>> : delivery_of<pack<Rest...>> {};
template <class Stage, class... Rest>
  requires requires { typename Stage::delivery_type; }
struct delivery_of<pack<Stage, Rest...>> {
  static constexpr block_delivery::maker make = block_delivery::make<typename Stage::delivery_type>;
};

template <class Plan, bool Has = plan_parts<Plan>::in::template has<device_tag>>
struct device_of {
  using type = host;
  static type get(const Plan&) { return {}; }
};
template <class Plan>
struct device_of<Plan, true> {
  using in = typename plan_parts<Plan>::in;
  using type = typename detail::type_at<in::template place<device_tag>,
                                        typename plan_parts<Plan>::stages>::device_type;
  static type get(const Plan& p) {
    return detail::at<in::template place<device_tag>>(p.stages()).device_value;
  }
};

/// The front of a plan over an indexed source: empty.
struct no_front {
  no_front(no_front, std::size_t) {}
  no_front() = default;
  void restart(std::span<const std::uint64_t> = {}) const noexcept {}
  void stop() const noexcept {}
};

template <class Plan, bool Forward = plan_parts<Plan>::forward>
struct front_of {
  using type = no_front;
  static no_front make(const Plan&) { return {}; }
};
template <class Plan>
struct front_of<Plan, true> {
  using type =
      serial_front<decltype(make_front(std::declval<const Plan&>())), typename Plan::source_type::element>;
  static auto make(const Plan& p) { return make_front(p); }
};

/// How the evaluator of a plan handles bad samples.
template <class Plan, class Orders>
struct bad_of {
  using parts = plan_parts<Plan>;
  using type =
      std::conditional_t<!parts::tolerant, bad_is_fatal,
                         std::conditional_t<parts::replaces, bad_is_replaced<Orders>, bad_is_skipped>>;
  static constexpr type make([[maybe_unused]] const Orders& orders, [[maybe_unused]] std::uint64_t seed) {
    if constexpr (parts::replaces)
      return {&orders, seed};
    else
      return {};
  }
};

template <class V>
struct all_fixed : std::bool_constant<shape_class_of<V> == shape_class::fixed> {};
template <class... Fields>
struct all_fixed<record<Fields...>>
    : std::bool_constant<(
          (shape_class_of<std::remove_cvref_t<typename Fields::type>> == shape_class::fixed) && ...)> {};

}  // namespace detail

}  // namespace penstock::inline v0_1
