// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/message.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace text_test {

using penstock::detail::append;
using penstock::detail::text;

TEST_CASE("text joins texts, characters and numbers", "[text]") {
  const std::string owned = "owned";
  CHECK(text({"a ", owned, ' ', std::string_view("view"), " ", 0, " ", 7u}) == "a owned view 0 7");
  CHECK(text({}).empty());
  CHECK(text({std::string_view{}}).empty());
}

TEST_CASE("text writes numbers of all sizes as std::to_string does", "[text]") {
  const auto same = [](auto number) { return text({number}) == std::to_string(number); };
  CHECK(same(std::numeric_limits<std::int64_t>::min()));
  CHECK(same(std::numeric_limits<std::int64_t>::max()));
  CHECK(same(std::numeric_limits<std::uint64_t>::max()));
  CHECK(same(std::numeric_limits<int>::min()));
  CHECK(same(std::int8_t{-128}));
  CHECK(same(std::uint8_t{255}));
  CHECK(same(-1));
  CHECK(same(10));
}

TEST_CASE("append adds to the text", "[text]") {
  std::string line = "one";
  append(line, {", two, ", 3});
  CHECK(line == "one, two, 3");
}

}  // namespace text_test
