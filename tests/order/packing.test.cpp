// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/order/packing.hpp>

#include <catch2/catch.hpp>

namespace packing_test {

namespace ps = penstock;

TEST_CASE("the options of pack have names") {
  CHECK(to_string(ps::overlong::refuse) == "refuse");
  CHECK(to_string(ps::overlong::truncate) == "truncate");
  CHECK(to_string(ps::overlong::split) == "split");
  CHECK(to_string(ps::overlong::drop) == "drop");
  CHECK(to_string(ps::packing::best_fit) == "best_fit");
  CHECK(to_string(ps::packing::first_fit) == "first_fit");
  CHECK(to_string(ps::packing::in_order) == "in_order");
}

TEST_CASE("a step has so many rows of each rank, or of all") {
  CHECK(ps::row_batches{.size = 8}.of_all(3) == 24);
  CHECK(ps::row_batches{.size = 8, .global = true}.of_all(3) == 8);
}

}  // namespace packing_test
