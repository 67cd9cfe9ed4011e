// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the members of this sample are not decoded yet

#include <penstock/codec/integer.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>

#include <cstdint>

int main() {
  const auto twice = [](const auto& sample) { return 2 * penstock::get<"cls">(sample); };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::webdataset("train.tar") | penstock::map(twice) | penstock::batch(2);
#else
  auto loader = penstock::webdataset("train.tar") |
                penstock::decode<penstock::field<"cls", penstock::integer>> | penstock::map(twice) |
                penstock::batch(2);
#endif
  std::uint64_t sum = 0;
  for (auto&& b : loader) sum += b.size();
  return sum == 0;
}
