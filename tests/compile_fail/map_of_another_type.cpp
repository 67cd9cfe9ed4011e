// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: it gets Gets and wants Wants, the types that this error names in wrong_type<Gets, Wants>

#include <penstock/codec/npy.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>

namespace ps = penstock;

int main() {
  const auto first = [](ps::tensor_view<const float> x) { return x.data()[0]; };
  const auto other = [](ps::tensor_view<const double> x) { return x.data()[0]; };
  const auto arrays = ps::webdataset("a.tar") | ps::decode<ps::field<"npy", ps::npy<float>>>;
#ifdef PENSTOCK_WRONG
  auto loader = arrays | ps::map<"npy">(other) | ps::batch(2);
#else
  auto loader = arrays | ps::map<"npy">(first) | ps::batch(2);
#endif
  static_cast<void>(first);
  static_cast<void>(other);
  for (auto&& b : loader) static_cast<void>(b.size());
}
