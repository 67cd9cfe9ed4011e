// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A pointwise stage of your own: a value from a value, with memory per worker and random numbers per sample.

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace mine {

/// Adds noise of up to `amount` to each value of an array.
struct noise_stage {
  using penstock_part = ps::pointwise_tag;                 // what makes a type a stage
  static constexpr std::string_view stage_name = "noise";  // how messages call it
  static constexpr bool random = true;                     // it draws: give it a stream of its own
  using scratch = std::vector<float>;                      // one for each worker, kept from sample to sample

  float amount = 0;

  /// In: values. Out: a view of the worker's scratch; it is copied or written on before the next sample.
  template <class Call>
  std::span<const float> apply(std::span<const float> values, const Call& call) const {
    ps::rng draw = call.random();  // of this sample's position: the same on any number of threads and ranks
    call.scratch.assign(values.begin(), values.end());
    for (float& v : call.scratch) v += static_cast<float>(draw.uniform(-amount, amount));
    return call.scratch;
  }

  [[nodiscard]] std::string describe() const { return "noise(" + std::to_string(amount) + ")"; }
};

constexpr noise_stage noise(float amount) { return {amount}; }

}  // namespace mine

int main() {
  const std::vector<std::vector<float>> samples(1000, std::vector<float>(16, 5.0f));
  const auto noisy = [&](unsigned workers) {
    std::vector<float> all;
    for (auto&& b :
         ps::from(samples) | ps::shuffle(7) | mine::noise(0.5f) | ps::batch(64) | ps::workers(workers))
      all.insert(all.end(), b.begin(), b.end());
    return all;
  };
  const std::vector<float> alone = noisy(0), together = noisy(3);
  const auto [low, high] = std::minmax_element(alone.begin(), alone.end());
  const bool works =
      alone.size() == 16'000 && alone == together && *low >= 4.5f && *high <= 5.5f && *low < *high;
  std::puts(works ? "noise: the same on 0 and 3 workers" : "noise: wrong");
  return works ? 0 : 1;
}
