// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/concepts.hpp>

#include <cstdint>
#include <vector>

#include "support/catch.hpp"

namespace penstock_test {

/// Source indices of an epoch.
template <class Order>
[[nodiscard]] std::vector<std::uint64_t> epoch_of(const Order& made, std::uint64_t epoch = 0) {
  const auto bound = made.bind(epoch);
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < made.size(); ++i) all.push_back(bound(i).index);
  return all;
}

/// Checks an order that leaves out positions and keeps the order of the others: equal in every epoch, an
/// exact inverse, shard boundaries that match their samples. Returns how many positions it keeps, and
/// marks them.
template <class Order>
std::uint64_t check_keeps_order(const Order& made, const penstock::order_input& in,
                                std::vector<unsigned>& times) {
  const auto kept = epoch_of(made);
  bool ascending = true, inverse = true;
  std::vector<bool> marked(static_cast<std::size_t>(in.size));
  for (std::uint64_t i = 0; i < kept.size(); ++i) {
    const std::uint64_t at = kept[static_cast<std::size_t>(i)];
    REQUIRE(at < in.size);
    ascending = ascending && (i == 0 || kept[static_cast<std::size_t>(i - 1)] < at);
    inverse = inverse && made.position_of({7, at}) == penstock::position{7, i};
    marked[static_cast<std::size_t>(at)] = true;
    ++times[static_cast<std::size_t>(at)];
  }
  for (std::uint64_t p = 0; p < in.size; ++p)
    inverse = inverse && made.position_of({7, p}).has_value() == marked[static_cast<std::size_t>(p)];
  CHECK(ascending);
  CHECK(inverse);
  CHECK_FALSE(made.position_of({7, in.size}).has_value());
  CHECK(epoch_of(made, 5) == kept);
  const auto out = made.output();
  CHECK(out.size == kept.size());
  REQUIRE((out.starts != nullptr) == (in.starts != nullptr));
  if (in.starts) {
    std::vector<std::uint64_t> wanted{0};
    std::uint64_t count = 0;
    for (std::size_t s = 0; s + 1 < in.starts->size(); ++s) {
      for (std::uint64_t p = (*in.starts)[s]; p < (*in.starts)[s + 1]; ++p)
        count += marked[static_cast<std::size_t>(p)] ? 1u : 0u;
      if (count != wanted.back()) wanted.push_back(count);
    }
    if (wanted.size() == 1) wanted.push_back(0);
    CHECK(*out.starts == wanted);
  }
  REQUIRE((out.places != nullptr) == (in.places != nullptr));
  if (in.places) {
    bool same = true;
    for (std::size_t i = 0; i < kept.size(); ++i) same = same && (*out.places)(i) == (*in.places)(kept[i]);
    CHECK(same);
  }
  return kept.size();
}

/// Whether each position was marked once.
[[nodiscard]] inline bool each_once(const std::vector<unsigned>& times) {
  for (const unsigned t : times)
    if (t != 1) return false;
  return true;
}

}  // namespace penstock_test
