// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a codec needs bytes and gets a value that is already decoded; remove one decode, or use map(f)

#include <penstock/codec/bpe.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include <cstddef>
#include <string>
#include <vector>

int main() {
  const std::vector<std::string> texts{"a dog"};
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(texts) | penstock::decode<penstock::bpe> | penstock::decode<penstock::bpe>;
#else
  auto loader = penstock::from(texts) | penstock::decode<penstock::bpe>;
#endif
  std::size_t samples = 0;
  for (auto&& b : loader | penstock::batch(1, penstock::ragged)) samples += b.size();
  return samples == 0;
}
