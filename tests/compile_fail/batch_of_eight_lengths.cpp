// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: batch adds a dimension in front of an array, and this one already has eight

#include <penstock/core/tensor.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>

#include <cstdint>

template <std::uint64_t... Lengths>
struct zeros {
  using unfinished = void;
  using value_type = int;
  static constexpr penstock::extents static_shape{Lengths...};
  [[nodiscard]] penstock::extents shape() const { return static_shape; }
  void write_to(int* into) const {
    for (std::uint64_t i = 0; i < static_shape.elements(); ++i) into[i] = 0;
  }
};

int main() {
#ifdef PENSTOCK_WRONG
  using sample = zeros<1, 1, 1, 1, 1, 1, 2, 3>;
#else
  using sample = zeros<1, 1, 1, 1, 1, 2, 3>;
#endif
  auto loader = penstock::generated(4, [](std::uint64_t) { return sample{}; }) | penstock::batch(2);
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
