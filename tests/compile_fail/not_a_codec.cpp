// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: decode<...> was given a type that is not a codec

#include <penstock/codec/integer.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include <string>
#include <vector>

struct shouting {};

int main() {
#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::from(std::vector<std::string>{"1", "2"}) | penstock::decode<shouting> | penstock::batch(2);
#else
  auto loader = penstock::from(std::vector<std::string>{"1", "2"}) | penstock::decode<penstock::integer> |
                penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
