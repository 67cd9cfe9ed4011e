// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/tuning/tuning.hpp>

#include "support/catch.hpp"

#include <set>
#include <string>
#include <string_view>

namespace tuning_test {

namespace ps = penstock;

TEST_CASE("run/tuning: each number has a name of its own and the row that chose it, and the text has all") {
  std::set<std::string_view> names;
  const std::string text = ps::tuning_text();
  for (const ps::tuned_number& one : ps::tuning::all) {
    CHECK(names.insert(one.name).second);
    CHECK_FALSE(one.row.empty());
    CHECK(one.value != 0);
    CHECK_THAT(text, penstock_test::contains(std::string(one.name) + " " + std::to_string(one.value)));
  }
  CHECK_THAT(text, penstock_test::contains("tuning: grain 32768 bytes (4b); "));
  CHECK(text.back() == '\n');
}

}  // namespace tuning_test
