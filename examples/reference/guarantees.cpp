// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The type of a pipeline says which promises it keeps: ask it, require one, or print them.

#include <penstock/inspection/describe.hpp>
#include <penstock/inspection/peek.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/require.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace ps = penstock;

int main() {
  const auto source = ps::from(std::vector<int>{5, 6, 7, 8, 9, 10, 11, 12});
  const auto not_by_three = [](int x) { return x % 3 != 0; };

  const auto computed = source | ps::shuffle(ps::seed(7)) | ps::shard(0, 2) | ps::batch(2) |
                        ps::require<ps::guarantee::elastic>;
  static_assert(ps::indexed<decltype(computed)> && ps::lockstep<decltype(computed)>, "nothing is lost");

  const auto buffered = source | ps::shard(0, 2) | ps::shuffle_buffer(4) | ps::batch(2);
  static_assert(!ps::indexed<decltype(buffered)> && !ps::elastic<decltype(buffered)>,
                "each rank mixes its own");
  static_assert(ps::deterministic<decltype(buffered)> && ps::resumable<decltype(buffered)>,
                "but nothing else");

  const auto chosen = source | ps::shard(0, 2) | ps::filter(not_by_three) | ps::batch(2);
  static_assert(!ps::lockstep<decltype(chosen)>, "ranks may have different numbers of batches");
  const auto counted = chosen | ps::steps(3);
  static_assert(ps::lockstep<decltype(counted)>, "steps(n) says how many, on every rank");

  std::string refused;
  try {
    static_cast<void>(chosen.open());  // two ranks that would drift apart: refused before anything is read
  } catch (const std::exception& e) {
    refused = e.what();
  }
  std::size_t batches = 0;
  for (auto&& b : counted) batches += b.size() == 2;
  std::printf("%s\n%s\n%s\n", refused.c_str(), ps::describe(counted).c_str(), ps::peek(source).c_str());
  return batches == 3 && refused.find("write steps(n) after batch") != std::string::npos ? 0 : 1;
}
