// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/penstock.hpp>

#ifdef CONSUMER_HAS_SIMDJSON
#include <penstock/codec/json_field.hpp>
#endif
#ifdef CONSUMER_HAS_LZ4
#include <penstock/codec/lz4.hpp>
#endif

#include <iostream>
#include <string>
#include <vector>

namespace ps = penstock;

long sum_of_other();

/// Half of a program whose files include different components, in different orders: the inline functions they
/// share must be identical.
int main() {
  long sum = 0;
  for (auto&& b : (ps::from(std::vector<int>{1, 2, 3}) | ps::batch(2) | ps::workers(1)).epoch(0))
    for (const int x : b) sum += x;
  const std::vector<std::string> words = {"1", "22", "333"};
  for (auto&& b : (ps::from(words) | ps::decode<ps::integer> | ps::batch(2)).epoch(0))
    for (const auto x : b) sum += x;
#ifdef CONSUMER_HAS_SIMDJSON
  const std::vector<std::string> texts = {R"({"n": 4})", R"({"n": -4})"};
  for (auto&& b : (ps::from(texts) | ps::decode<ps::json_field<"n", int>> | ps::batch(2)).epoch(0))
    for (const int x : b) sum += x;
#endif
#ifdef CONSUMER_HAS_LZ4
  // An empty frame without a checksum, of the lz4 frame format 1.6.
  const std::vector<std::string> empty = {std::string("\x04\x22\x4d\x18\x60\x40\x82\x00\x00\x00\x00", 11)};
  for (auto&& b : (ps::from(empty) | ps::decode<ps::lz4> | ps::batch(1, ps::ragged)).epoch(0))
    sum += 1 - long(b.size());
#endif
  std::cout << "penstock " << ps::version << ": " << sum << " and " << sum_of_other() << '\n';
  return sum == 362 && sum_of_other() == 362 ? 0 : 1;
}
