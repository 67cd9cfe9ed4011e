// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: load<"path"> takes a record whose field of that name is a text

#include <penstock/codec/text.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/load.hpp>
#include <penstock/storage/file.hpp>

#include <string>
#include <vector>

namespace ps = penstock;
using sample = ps::record<ps::field<"id", int>, ps::field<"image", std::string>>;

int main() {
  const std::vector<sample> samples;
  auto source = ps::from(samples);
#ifdef PENSTOCK_WRONG
  auto loader = source | ps::load<"id">(ps::file("data"), ps::text{});
#else
  auto loader = source | ps::load<"image">(ps::file("data"), ps::text{});
#endif
  int sum = 0;
  for (auto&& row : loader.epoch(0)) sum += static_cast<int>(ps::get<"image">(row).size());
  return sum;
}
