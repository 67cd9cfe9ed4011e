// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

#include <concepts>
#include <string_view>

namespace penstock::inline v0_1 {

namespace detail {

/// Throws errc::argument, saying that `stage` was given `-magnitude`.
[[noreturn, gnu::cold]] inline void refuse_negative(std::uint64_t magnitude, std::string_view stage) {
  throw error(errc::argument, {stage, "(-", magnitude, "): the number is negative; give it 0 or more"})
      .in_stage(stage);
}

template <class>
inline constexpr bool is_a_count = false;

}  // namespace detail

/// An argument that is a count, a size or a rank. It converts from any integer type, signed or unsigned.
///
/// A function that takes one calls `of(name)`, which rejects a negative number with an error that quotes
/// the number and the name. Passing anything other than an integer does not compile.
class any_count {
 public:
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  constexpr any_count(T n) noexcept {  // NOLINT(google-explicit-constructor): arguments convert implicitly
    if constexpr (std::signed_integral<T>) {
      negative_ = n < 0;
      value_ = negative_ ? std::uint64_t{0} - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
    } else {
      value_ = n;
    }
  }
  template <std::same_as<bool> T>
  constexpr any_count(T) {  // NOLINT(google-explicit-constructor)
    static_assert(
        detail::is_a_count<T>,
        "penstock: a count, a size or a rank is an integer, and this is a bool; write the number, as "
        "in batch(64), repeat(3) or workers(0)");
  }
  template <std::floating_point T>
  constexpr any_count(T) {  // NOLINT(google-explicit-constructor)
    static_assert(detail::is_a_count<T>,
                  "penstock: a count, a size or a rank is an integer; write static_cast<std::uint64_t>(x)");
  }

  /// The number. Throws errc::argument if it is negative; the error names `stage`.
  [[nodiscard]] constexpr std::uint64_t of(std::string_view stage) const {
    if (negative_) detail::refuse_negative(value_, stage);
    return value_;
  }

 private:
  std::uint64_t value_ = 0;
  bool negative_ = false;
};

}  // namespace penstock::inline v0_1
