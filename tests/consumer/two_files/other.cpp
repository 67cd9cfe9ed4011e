// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Components before the umbrella; the other file includes others, after it.
#ifdef CONSUMER_HAS_ZSTD
#include <penstock/codec/zstd.hpp>
#endif
#ifdef CONSUMER_HAS_GZIP
#include <penstock/codec/gzip.hpp>
#endif
#include <penstock/penstock.hpp>

#include <string>
#include <vector>

namespace ps = penstock;

long sum_of_other();
long sum_of_other() {
  long sum = 0;
  for (auto&& b : (ps::from(std::vector<int>{1, 2, 3}) | ps::batch(2) | ps::workers(1)).epoch(0))
    for (const int x : b) sum += x;
  const std::vector<std::string> words = {"1", "22", "333"};
  for (auto&& b : (ps::from(words) | ps::decode<ps::integer> | ps::batch(2)).epoch(0))
    for (const auto x : b) sum += x;
#ifdef CONSUMER_HAS_ZSTD
  // An empty frame without a checksum, RFC 8878.
  const std::vector<std::string> empty = {std::string("\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00", 9)};
  for (auto&& b : (ps::from(empty) | ps::decode<ps::zstd> | ps::batch(1, ps::ragged)).epoch(0))
    sum += 1 - long(b.size());
#endif
  return sum;
}
