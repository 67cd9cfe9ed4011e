// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/plan.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/device/host.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/engine/workers/ring.hpp>
#include <penstock/run/feed/front.hpp>

#include <span>
#include <type_traits>

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
struct delivery_of<light_tuple<Stage, Rest...>> : delivery_of<light_tuple<Rest...>> {};
template <class Stage, class... Rest>
  requires requires { typename Stage::delivery_type; }
struct delivery_of<light_tuple<Stage, Rest...>> {
  static constexpr block_delivery::maker make = block_delivery::make<typename Stage::delivery_type>;
};

/// The device that a plan names, or the host.
template <class Plan>
auto device_of([[maybe_unused]] const Plan& p) {
  using in = typename plan_parts<Plan>::in;
  if constexpr (in::template has<device_tag>)
    return at<in::template place<device_tag>>(p.stages()).device_value;
  else
    return host{};
}

/// The front of a plan over an indexed source: empty.
struct no_front {
  void restart(std::span<const std::uint64_t> = {}) const noexcept {}
  void stop() const noexcept {}
};

template <class Plan>
auto front_for([[maybe_unused]] const Plan& p, [[maybe_unused]] std::size_t blocks) {
  if constexpr (plan_parts<Plan>::forward)
    return serial_front<decltype(make_front(p)), typename Plan::source_type::element>(make_front(p), blocks);
  else
    return no_front{};
}

/// How the evaluator of a plan handles bad samples.
template <class Plan, class Orders>
constexpr auto bad_for([[maybe_unused]] const Orders& orders, [[maybe_unused]] std::uint64_t seed) {
  using parts = plan_parts<Plan>;
  if constexpr (parts::replaces)
    return bad_is_replaced<Orders>{&orders, seed};
  else
    return std::conditional_t<parts::tolerant, bad_is_skipped, bad_is_fatal>{};
}

template <class V>
struct all_fixed : std::bool_constant<shape_class_of<V> == shape_class::fixed> {};
template <class... Fields>
struct all_fixed<record<Fields...>>
    : std::bool_constant<(
          (shape_class_of<std::remove_cvref_t<typename Fields::type>> == shape_class::fixed) && ...)> {};

}  // namespace detail

}  // namespace penstock::inline v0_1
