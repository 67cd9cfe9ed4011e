// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/base/fixed_array.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <utility>

namespace detail = penstock::detail;

TEST_CASE("fixed_array: values are value-initialised, and keep their address when the array is moved") {
  detail::fixed_array<std::atomic<int>> made(3);
  CHECK(made[2].load() == 0);
  made[1].store(5);
  std::atomic<int>* const where = made.get();
  detail::fixed_array<std::atomic<int>> moved(std::move(made));
  CHECK_FALSE(made);  // NOLINT: that is the question
  CHECK(moved.get() == where);
  CHECK(moved[1].load() == 5);
  detail::fixed_array<std::atomic<int>> assigned;
  assigned = std::move(moved);
  CHECK(assigned[1].load() == 5);
  assigned.reset();
  CHECK_FALSE(assigned);
}
