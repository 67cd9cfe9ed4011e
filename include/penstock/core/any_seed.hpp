// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <concepts>
#include <cstdint>

namespace penstock::inline v0_1 {

namespace detail {
template <class>
inline constexpr bool is_a_seed = false;
}  // namespace detail

/// An argument that is a seed. It converts from any integer type; a negative number becomes the unsigned one
/// with the same bits. A bool does not compile, because `shuffle(false)` would shuffle, and neither does a
/// floating-point number.
class any_seed {
 public:
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  constexpr any_seed(T seed) noexcept  // NOLINT(google-explicit-constructor): arguments convert implicitly
      : value_(static_cast<std::uint64_t>(seed)) {}
  template <std::same_as<bool> T>
  constexpr any_seed(T) noexcept {  // NOLINT(google-explicit-constructor)
    static_assert(detail::is_a_seed<T>,
                  "penstock: a seed is an integer, and this is a bool: shuffle(false) would shuffle with the "
                  "seed 0; leave the stage out to switch it off, or write a number, as in shuffle(7)");
  }
  template <std::floating_point T>
  constexpr any_seed(T) noexcept {  // NOLINT(google-explicit-constructor)
    static_assert(detail::is_a_seed<T>,
                  "penstock: a seed is an integer; write static_cast<std::uint64_t>(x)");
  }

  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace penstock::inline v0_1
