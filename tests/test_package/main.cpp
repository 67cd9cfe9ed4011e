// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/penstock.hpp>

#ifdef TEST_ZSTD
#include <penstock/codec/zstd.hpp>
#endif
#ifdef TEST_GZIP
#include <penstock/codec/gzip.hpp>
#endif

#include <cstdio>
#include <string>
#include <vector>

namespace ps = penstock;

int main() {
  std::vector<int> values;
  for (int i = 0; i < 100; ++i) values.push_back(i);
  const auto loader = ps::from(values) | ps::shuffle(ps::seed(7)) | ps::batch(8) | ps::workers(2);
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b) sum += x;
  std::printf("penstock %s: a sum of %d\n", std::string(ps::version).c_str(), sum);
#ifdef PENSTOCK_COMPILED
  std::printf("with compiled: compiled\n");
#endif
#ifdef TEST_ZSTD
  std::printf("with zstd: %s\n", std::string(ps::zstd::codec_name).c_str());
#endif
#ifdef TEST_GZIP
  std::printf("with gzip: %s\n", std::string(ps::gzip::codec_name).c_str());
#endif
  return sum == 4950 ? 0 : 1;
}
