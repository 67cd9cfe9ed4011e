// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/part.hpp>

#include <concepts>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

namespace detail {
template <class>
inline constexpr bool is_a_seed = false;
}  // namespace detail

/// The number of a seed. It converts from any integer type; a negative number becomes the unsigned one with
/// the same bits. A bool does not compile, and neither does a floating-point number.
class seed_number {
 public:
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  // NOLINT(google-explicit-constructor): arguments convert implicitly
  constexpr seed_number(T number) noexcept : value_(static_cast<std::uint64_t>(number)) {}
  template <std::same_as<bool> T>
  constexpr seed_number(T) noexcept {  // NOLINT(google-explicit-constructor)
    static_assert(detail::is_a_seed<T>,
                  "penstock: a seed is an integer, and this is a bool; write a number, as in seed(7)");
  }
  template <std::floating_point T>
  constexpr seed_number(T) noexcept {  // NOLINT(google-explicit-constructor)
    static_assert(detail::is_a_seed<T>,
                  "penstock: a seed is an integer; write seed(static_cast<std::uint64_t>(x))");
  }

  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0;
};

/// What `seed(7)` makes: an annotation, or the argument of a stage.
struct seed_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "seed";
  std::uint64_t value{};

  void apply(run_options& options, bool /*after_batch*/) const { options.seed = value; }
  [[nodiscard]] constexpr std::uint64_t plan_seed() const noexcept { return value; }
  [[nodiscard]] std::string describe() const { return detail::text({"seed(", value, ")"}); }
};

/// Names a seed: `shuffle(seed(7))` is the seed of that stage, and `| seed(7)` that of the plan: of `shuffle`
/// without a seed, and of stages with random numbers. Without it the plan's seed is that of its first stage
/// of order that shuffles by one (`shuffle`, `weighted`, `class_balanced`, `shuffle_batches`), otherwise 0.
/// A plan inside `mix`, `zip` or `concat` has a seed of its own. `shuffle_buffer(n)` has the seed 0.
[[nodiscard]] constexpr seed_stage seed(seed_number number) noexcept { return {number.value()}; }

/// An argument that is a seed: `seed(7)`. A bare number does not compile, since `shuffle(1000)` is the size
/// of a buffer elsewhere.
class any_seed {
 public:
  // NOLINT(google-explicit-constructor): arguments convert implicitly
  constexpr any_seed(seed_stage named) noexcept : value_(named.value) {}
  template <class T>
    requires std::integral<T> || std::floating_point<T>
  constexpr any_seed(T) noexcept {  // NOLINT(google-explicit-constructor)
    static_assert(
        detail::is_a_seed<T>,
        "penstock: a bare number here would be a seed, and the size of a buffer in WebDataset and tf.data; "
        "write seed(7), as in shuffle(seed(7)) and split(0.9, seed(7)); a buffer of 1000 samples is "
        "shuffle_buffer(1000)");
  }

  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace penstock::inline v0_1
