// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>

#include <bit>
#include <string_view>

namespace penstock::inline v0_1 {

/// The promises of a pipeline's type. Each stage keeps or loses each of them.
///   indexed        the size is known; any position may be evaluated, from many threads, in any order
///   deterministic  same seed, same sequence, regardless of the number of threads and their timing
///   resumable      a small state restores the exact sequence without replay
///   elastic        the samples of global step s do not depend on how many ranks share the work
///   lockstep       the number of batches per epoch is known without reading data, and equal on all ranks
enum class guarantee : std::uint8_t {
  indexed = 1,
  deterministic = 2,
  resumable = 4,
  elastic = 8,
  lockstep = 16
};

/// The name of a guarantee, spelled as in the enum.
[[nodiscard]] constexpr std::string_view to_string(guarantee g) noexcept {
  return detail::enum_name({"indexed", "deterministic", "resumable", "elastic", "lockstep"},
                           std::countr_zero(static_cast<std::uint8_t>(g)));
}

inline constexpr guarantee all_guarantees[] = {guarantee::indexed, guarantee::deterministic,
                                               guarantee::resumable, guarantee::elastic, guarantee::lockstep};

/// A set of guarantees, such as those that a stage loses.
struct guarantee_set {
  std::uint8_t bits = 0;

  constexpr guarantee_set() = default;
  template <class... Gs>
  constexpr explicit guarantee_set(Gs... gs)
      : bits(static_cast<std::uint8_t>((static_cast<unsigned>(gs) | ... | 0u))) {}

  [[nodiscard]] constexpr bool has(guarantee g) const noexcept {
    return (bits & static_cast<std::uint8_t>(g)) != 0;
  }
  [[nodiscard]] constexpr guarantee_set with(guarantee_set more) const noexcept {
    guarantee_set result;
    result.bits = static_cast<std::uint8_t>(bits | more.bits);
    return result;
  }
  [[nodiscard]] constexpr guarantee_set without(guarantee_set less) const noexcept {
    guarantee_set result;
    result.bits = static_cast<std::uint8_t>(bits & ~less.bits);
    return result;
  }
};

/// The facts about a stage's place in the chain that decide what the stage loses.
struct place {
  bool after_shard = false;
  bool forward = false;
};

}  // namespace penstock::inline v0_1
