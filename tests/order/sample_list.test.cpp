// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/sample_list.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"

namespace ps = penstock;

static_assert(ps::sample_values<ps::sample_list<int>>, "numbers are values");
static_assert(ps::sample_values<ps::sample_list<double>>, "floating-point numbers are values");
static_assert(std::is_same_v<ps::sample_list<std::string>::value_type, std::string_view>, "texts are views");

TEST_CASE("order/sample_list: holds values, and distinguishes different lists") {
  const ps::sample_list labels(std::vector<int>{3, -1, 4});
  CHECK(labels.size() == 3);
  CHECK(labels[1] == -1);
  CHECK(labels.dataset() == 0);
  CHECK(labels.describe() == "a list of 3");
  CHECK(labels.fingerprint() == ps::sample_list(std::vector<int>{3, -1, 4}).fingerprint());
  CHECK(labels.fingerprint() != ps::sample_list(std::vector<int>{3, 4, -1}).fingerprint());
  CHECK(ps::sample_list(std::vector<double>{0.5, 1}).fingerprint() !=
        ps::sample_list(std::vector<double>{0.5, 1.5}).fingerprint());
  const ps::sample_list texts(std::vector<std::string>{"a", "", "cat"});
  CHECK(texts[2] == "cat");
  CHECK(ps::sample_list(std::vector<int>{}).size() == 0);
}
