// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: bad_samples::replace does not go with pack

#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pack.hpp>

#include <cstdint>
#include <vector>

int main() {
  using text = penstock::record<penstock::field<"tokens", std::vector<int>>, penstock::field<"label", int>>;
  const auto texts = penstock::generated(8, [](std::uint64_t i) { return text(std::vector<int>(i), 1); });
  const auto length = [](std::uint64_t i) { return i; };
#ifdef PENSTOCK_WRONG
  auto loader =
      texts | penstock::bad_samples::replace(3) | penstock::pack<"tokens">(length, 16) | penstock::batch(2);
#else
  auto loader =
      texts | penstock::bad_samples::skip(3) | penstock::pack<"tokens">(length, 16) | penstock::batch(2);
#endif
  auto run = loader.open();
  return run.next() ? 0 : 1;
}
