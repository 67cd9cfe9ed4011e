// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/concepts.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace penstock_test {

/// The input of an order for a dataset whose shards have these sizes.
[[nodiscard]] inline penstock::order_input input(const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> starts{0};
  for (const std::uint64_t size : sizes) starts.push_back(starts.back() + size);
  return {starts.back(), std::make_shared<const std::vector<std::uint64_t>>(starts),
          std::make_shared<const penstock::source_places>(0, starts.back())};
}
/// The input of an order for a dataset without shards.
[[nodiscard]] inline penstock::order_input plain_input(std::uint64_t size, std::uint64_t dataset = 0) {
  return {size, nullptr, std::make_shared<const penstock::source_places>(dataset, size)};
}

}  // namespace penstock_test
