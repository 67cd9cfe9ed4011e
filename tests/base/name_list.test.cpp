// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/base/name_list.hpp>

#include "support/catch.hpp"

#include <string>

TEST_CASE("base/name_list: a list for a message stays short") {
  using penstock::detail::list_name;
  std::string list;
  list_name(list, "x");
  list_name(list, "labels");
  CHECK(list == "x, labels");
  list_name(list, std::string(1000, 'y'));
  CHECK(list == "x, labels, " + std::string(80, 'y'));
  list_name(list, "last");
  CHECK(list == "x, labels, " + std::string(80, 'y') + ", last");
  for (int i = 0; i < 1000; ++i) list_name(list, "more");
  CHECK(list.size() < 120);
  CHECK(list.ends_with("more, ..."));
}
