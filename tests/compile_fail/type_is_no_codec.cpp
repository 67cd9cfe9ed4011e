// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: write integer_as<int> or floating_as<float> for a number in digits

#include <penstock/codec/integer.hpp>
#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include <string>
#include <vector>

using sample = penstock::record<penstock::field<"cls", std::string>>;

int main() {
  const auto samples = penstock::from(std::vector<sample>{sample("1"), sample("2")});
#ifdef PENSTOCK_WRONG
  auto loader = samples | penstock::decode<penstock::field<"cls", int>> | penstock::batch(2);
#else
  auto loader =
      samples | penstock::decode<penstock::field<"cls", penstock::integer_as<int>>> | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : penstock::get<"cls">(b)) sum += x;
  return sum == 0;
}
