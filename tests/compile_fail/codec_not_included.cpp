// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the header of a codec is not included; this error names it in declared_codec<...>

#include <penstock/codec/integer.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include <cstddef>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::webdataset("train.tar") |
      penstock::decode<penstock::field<"jpg", penstock::jpeg>, penstock::field<"cls", penstock::integer>>;
#else
  auto loader =
      penstock::webdataset("train.tar") | penstock::decode<penstock::field<"cls", penstock::integer>>;
#endif
  std::size_t samples = 0;
  for (auto&& b : loader | penstock::batch(2)) samples += b.size();
  return samples == 0;
}
