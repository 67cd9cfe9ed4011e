// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/stage/deal_by.hpp>

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pack.hpp>

#include "support/catch.hpp"
#include "support/packed_texts.hpp"

#include <algorithm>

namespace deal_by_test {

namespace ps = penstock;
using namespace packed_texts;

TEST_CASE("deal_by gives ranks equal work, and every rank rows to the end") {
  const auto base = texts(1000) | ps::shuffle(ps::seed(8));
  const auto packed = ps::pack<"tokens">(&length_of, 256, {.window = 300});
  std::vector<tokens> expected;
  for (const seen& one : see_epoch(base | packed | ps::batch(16)))
    for (const tokens& row : rows_of(one, 256)) expected.push_back(row);
  const auto work = [](const seen& one) {
    std::uint64_t sum = 0;
    for (const auto& d : one.documents) sum += std::uint64_t{d.length} * d.length;
    return sum;
  };
  std::vector<std::vector<seen>> ranks;
  for (std::uint64_t rank = 0; rank < 4; ++rank)
    ranks.push_back(see_epoch(base | ps::shard(rank, 4) | packed |
                              ps::deal_by({.linear = 0, .quadratic = 1}) | ps::batch(4)));
  std::vector<tokens> rows;
  for (std::size_t step = 0; step < ranks[0].size(); ++step) {
    std::vector<std::uint64_t> sums;
    for (const auto& rank : ranks) {
      REQUIRE(rank.size() == ranks[0].size());
      CHECK(rank[step].rows == ranks[0][step].rows);
      sums.push_back(work(rank[step]));
      for (const tokens& row : rows_of(rank[step], 256))
        if (row[0] != 0 || row[1] != 0) rows.push_back(row);
    }
    const double mean = static_cast<double>(sums[0] + sums[1] + sums[2] + sums[3]) / 4;
    if (step + 1 < ranks[0].size())
      CHECK(static_cast<double>(*std::max_element(sums.begin(), sums.end())) < 1.03 * mean);
  }
  std::sort(rows.begin(), rows.end());
  std::sort(expected.begin(), expected.end());
  CHECK(rows == expected);
}

}  // namespace deal_by_test
