// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/pack.hpp>
#include <penstock/evaluation/stage_chain.hpp>

#include <concepts>
#include <cstdint>
#include <tuple>

/// What stages warned of: damage in a sample that they made do with. A scratch that counts it has a member
/// `std::uint64_t warnings`; others cost nothing.
namespace penstock::inline v0_1 {

namespace detail {

template <class S>
concept warning_scratch = requires(S& scratch) {
  { (scratch.warnings) } -> std::same_as<std::uint64_t&>;
};

/// The warnings of a scratch, and of all that it consists of; `warns` is whether it can have any.
template <class S>
struct warnings_in {
  static constexpr bool warns = warning_scratch<S>;
  static std::uint64_t count(const S& scratch) noexcept {
    if constexpr (warns)
      return scratch.warnings;
    else
      return 0;
  }
};
template <class... Ss>
struct warnings_in<pack<Ss...>> {
  static constexpr bool warns = (warnings_in<Ss>::warns || ...);
  static std::uint64_t count(const pack<Ss...>& all) noexcept {
    return all.apply(
        [](const Ss&... one) noexcept { return (std::uint64_t{0} + ... + warnings_in<Ss>::count(one)); });
  }
};
template <class... Ss>
struct warnings_in<std::tuple<Ss...>> {
  static constexpr bool warns = (warnings_in<Ss>::warns || ...);
  static std::uint64_t count(const std::tuple<Ss...>& all) noexcept {
    return std::apply(
        [](const Ss&... one) noexcept { return (std::uint64_t{0} + ... + warnings_in<Ss>::count(one)); },
        all);
  }
};

}  // namespace detail

/// Whether the stages of a worker can warn.
template <class Worker>
[[nodiscard]] constexpr bool can_warn() noexcept {
  if constexpr (detail::innermost_worker<Worker>)
    return false;
  else
    return detail::warnings_in<decltype(Worker::own)>::warns || can_warn<decltype(Worker::up)>();
}

/// How often the stages of a worker have warned so far.
template <class Worker>
[[nodiscard]] std::uint64_t warnings_of([[maybe_unused]] const Worker& w) noexcept {
  if constexpr (!can_warn<Worker>())
    return 0;
  else
    return detail::warnings_in<decltype(Worker::own)>::count(w.own) + warnings_of(w.up);
}

}  // namespace penstock::inline v0_1
