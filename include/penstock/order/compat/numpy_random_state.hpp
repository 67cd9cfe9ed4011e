// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/compat/detail/mersenne_twister.hpp>
#include <penstock/order/compat/detail/numpy_shuffle.hpp>

namespace penstock::inline v0_1::detail {

/// The generator `numpy.random.RandomState(seed)`, as far as its `shuffle` goes.
/// Source: `numpy/random/mtrand.pyx` and `numpy/random/src/mt19937/mt19937.h`.
class numpy_random_state {
 public:
  explicit numpy_random_state(std::uint32_t seed) noexcept : draw_(seed) {}

  [[nodiscard]] std::uint32_t next32() noexcept { return draw_.next(); }
  [[nodiscard]] std::uint64_t next64() noexcept {
    const std::uint64_t high = draw_.next();
    return high << 32 | draw_.next();
  }
  /// `shuffle` of the `count` elements that start at `first`, of an array of one dimension.
  void shuffle(auto first, std::uint64_t count) noexcept { numpy_shuffle(*this, first, count); }

 private:
  mersenne_twister draw_;
};

}  // namespace penstock::inline v0_1::detail
