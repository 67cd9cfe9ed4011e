// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: decode<Codec> on a record with several fields of bytes; say which

#include <penstock/codec/integer.hpp>
#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include <string>
#include <vector>

using sample = penstock::record<penstock::field<"a", std::string>, penstock::field<"b", std::string>>;

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(std::vector<sample>{sample("1", "2")}) | penstock::decode<penstock::integer> |
                penstock::batch(2);
#else
  auto loader =
      penstock::from(std::vector<sample>{sample("1", "2")}) |
      penstock::decode<penstock::field<"a", penstock::integer>, penstock::field<"b", penstock::integer>> |
      penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
