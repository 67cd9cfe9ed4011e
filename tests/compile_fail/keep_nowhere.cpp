// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: has no place to keep samples at

#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/keep_in_memory.hpp>
#include <penstock/stage/map.hpp>

#include <optional>
#include <string_view>

int main() {
  using view = std::optional<std::string_view>;
  const auto source = penstock::generated(4, [](std::uint64_t) { return view("word"); });
  const auto noisy =
      penstock::map([](const view& x, penstock::rng& random) { return x->size() + random() % 2; });
  const auto length = penstock::map([](const view& x) { return x->size(); });
#ifdef PENSTOCK_WRONG
  auto loader =
      source | noisy | penstock::keep_in_memory(1 << 20, penstock::keep_at::automatic) | penstock::batch(2);
  (void)length;
#else
  auto loader =
      source | length | penstock::keep_in_memory(1 << 20, penstock::keep_at::automatic) | penstock::batch(2);
  (void)noisy;
#endif
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const auto x : b.values()) sum += x;
  return sum == 0;
}
