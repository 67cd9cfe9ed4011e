// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>

#include <concepts>
#include <memory>
#include <type_traits>

namespace penstock::inline v0_1 {

/// A number, or one that changes as a run goes on: a function of `position`, {epoch, step}, as of the lengths
/// of a curriculum. Options take it where they would take a number.
///
/// The function is called when const, from any thread, once for what it decides; it must give the same number
/// for the same position. States and fingerprints do not know what it computes.
///
///     const schedule longer([](position at) { return at.epoch < 2 ? 1024u : 4096u; });
class schedule {
 public:
  constexpr schedule() noexcept = default;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  constexpr schedule(T number) noexcept  // NOLINT(google-explicit-constructor): as a number
      : fixed_(static_cast<std::uint64_t>(number)) {}
  template <std::invocable<position> F>
  schedule(F function)  // NOLINT(google-explicit-constructor)
      : at_([](const void* f, position step) {
          return static_cast<std::uint64_t>((*static_cast<const F*>(f))(step));
        }),
        function_(std::shared_ptr<const F>(new const F(std::move(function)))) {}

  [[nodiscard]] bool changes() const noexcept { return at_ != nullptr; }
  /// The number, if it does not change; otherwise 0.
  [[nodiscard]] std::uint64_t fixed() const noexcept { return fixed_; }
  [[nodiscard]] std::uint64_t operator()(position step) const {
    return at_ == nullptr ? fixed_ : at_(function_.get(), step);
  }

 private:
  std::uint64_t fixed_ = 0;
  std::uint64_t (*at_)(const void*, position) = nullptr;
  std::shared_ptr<const void> function_;
};

}  // namespace penstock::inline v0_1
