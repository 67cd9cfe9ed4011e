// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A pointwise stage of your own: a function of one value, with memory per worker and random numbers per
// sample.

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <concepts>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace mine {

/// What the compiler says if the stage follows anything but an array.
struct noise_needs_an_array {
  using penstock_mistake = ps::about_element_tag;  // the message also names the type of the element
  static consteval void explain(auto reached) {
    static_assert(ps::never<decltype(reached)>,
                  "noise: the element is no array of float; write map(f) before it");
  }
};

/// Adds noise of up to `amount` to each value of an array.
struct noise_stage {
  using penstock_part = ps::pointwise_tag;                 // what makes a type a stage
  static constexpr std::string_view stage_name = "noise";  // its name in messages
  template <class Element>
  static constexpr bool uses_random = true;  // give it a stream of its own
  using scratch = std::vector<float>;        // one for each worker, kept from sample to sample

  float amount = 0;

  /// In: values. Out: a view of the worker's scratch, which is copied or written on before the next sample.
  template <class Call>
  std::span<const float> apply(std::span<const float> values, const Call& call) const {
    ps::rng draw = call.random();  // keyed by the position: equal on any number of threads and ranks
    call.scratch.assign(values.begin(), values.end());
    for (float& v : call.scratch) v += static_cast<float>(draw.uniform(-amount, amount));
    return call.scratch;
  }

  template <class Context>
  static consteval auto diagnose() {
    if constexpr (std::convertible_to<typename Context::element, std::span<const float>>)
      return ps::mistakes::none{};
    else
      return noise_needs_an_array{};
  }
  [[nodiscard]] std::string describe() const { return "noise(" + std::to_string(amount) + ")"; }
};

constexpr noise_stage noise(float amount) { return {amount}; }

using texts = decltype(ps::from(std::vector<std::string>{}));
static_assert(!ps::can_connect<texts, noise_stage>, "noise of texts does not compile, and says why");

}  // namespace mine

int main() {
  const std::vector<std::vector<float>> samples(1000, std::vector<float>(16, 5.0f));
  const auto noisy = [&](unsigned workers) {
    std::vector<float> all;
    for (auto&& b : (ps::from(samples) | ps::shuffle(ps::seed(7)) | mine::noise(0.5f) | ps::batch(64) |
                     ps::workers(workers))
                        .epoch(0))
      all.insert(all.end(), b.values().flat().begin(), b.values().flat().end());
    return all;
  };
  const std::vector<float> alone = noisy(0), together = noisy(3);
  const auto [low, high] = std::minmax_element(alone.begin(), alone.end());
  const bool works =
      alone.size() == 16'000 && alone == together && *low >= 4.5f && *high <= 5.5f && *low < *high;
  std::puts(works ? "noise: the same on 0 and 3 workers" : "noise: wrong");
  return works ? 0 : 1;
}
