// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/processor_set.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <list>
#include <string>
#include <type_traits>
#include <vector>

namespace ps = penstock;
using penstock_test::error_of;

TEST_CASE("core/processor_set: it has the processors listed, and describes them in order") {
  const ps::processor_set some{8, 2u, std::uint64_t{3}, 4, 5};
  CHECK(some.size() == 5);
  CHECK(some.contains(2));
  CHECK(some.contains(8));
  CHECK_FALSE(some.contains(6));
  CHECK_FALSE(some.contains(5000));
  CHECK(some.describe() == "2-5, 8");
  CHECK(ps::processor_set{7}.describe() == "7");
  CHECK(ps::processor_set{63, 64, 1023}.describe() == "63-64, 1023");
  CHECK(some == ps::processor_set{2, 3, 4, 5, 8});
  CHECK(some != ps::processor_set{2, 3, 4, 5});
}

TEST_CASE("core/processor_set: containers of integers are lists, texts are not") {
  const std::vector<int> signed_numbers{1, 0};
  const std::list<unsigned short> short_numbers{1, 0};
  CHECK(ps::processor_set(signed_numbers) == ps::processor_set{0, 1});
  CHECK(ps::processor_set(short_numbers) == ps::processor_set{0, 1});
  CHECK_FALSE(std::is_convertible_v<std::string, ps::processor_set>);
  CHECK_FALSE(std::is_convertible_v<int, ps::processor_set>);
}

TEST_CASE("core/processor_set: the empty set is written {}; a list that turns out empty is an error") {
  constexpr ps::processor_set none;
  CHECK(none.empty());
  CHECK(none.size() == 0);
  CHECK(none.describe().empty());
  CHECK(none == ps::processor_set{});
  CHECK_THAT(error_of([] { (void)ps::processor_set(std::vector<unsigned>{}); }),
             penstock_test::contains("the list of processors is empty"));
}

TEST_CASE("core/processor_set: a number twice, too large or negative is one sentence") {
  CHECK_THAT(error_of([] {
               (void)ps::processor_set{2, 3, 2};
             }),
             penstock_test::contains("processor 2 is listed twice"));
  CHECK_THAT(error_of([] { (void)ps::processor_set{1024}; }),
             penstock_test::contains("there is no processor 1024; their numbers go from 0 to 1023"));
  CHECK_THAT(error_of([] { (void)ps::processor_set{-1}; }),
             penstock_test::contains("processors(-1): the number is negative"));
}
