// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <string>

static_assert(penstock::storage<penstock::memory_files> &&
              penstock::all_mapped<penstock::memory_files::session>());

using penstock::bytes_of;
using penstock::memory_files;
using penstock::text_of;

TEST_CASE("storage/memory_files: objects are read back by range") {
  const auto held = memory_files().add("a", "hello").add("empty", "").add_view("b", bytes_of("world"));
  const auto session = held.connect();
  REQUIRE(held.names().size() == 3);
  CHECK(held.names()[2] == "b");
  CHECK(session.size(0) == 5);
  CHECK(session.size(1) == 0);
  CHECK(text_of(session.view(0, 1, 3)) == "ell");
  std::array<std::byte, 2> two{};
  session.read(2, 3, two);
  CHECK(text_of(two) == "ld");
  session.read(1, 0, {});
}

TEST_CASE("storage/memory_files: a copy shares its files, and does not get files added later") {
  memory_files first;
  first.add("a", "1");
  const memory_files copy = first;
  const auto session = copy.connect();
  first.add("b", "2");
  CHECK(copy.names().size() == 1);
  CHECK(first.names().size() == 2);
  CHECK(text_of(session.view(0, 0, 1)) == "1");
  CHECK(first.connect().view(0, 0, 1).data() == session.view(0, 0, 1).data());
}

TEST_CASE("storage/memory_files: wrong ranges, objects and names are errors") {
  memory_files held;
  held.add("a", "hello");
  const auto session = held.connect();
  std::array<std::byte, 4> four{};
  CHECK_THROWS_WITH(session.read(0, 2, four),
                    penstock_test::contains("file a") && penstock_test::contains("offset 2"));
  CHECK_THROWS_AS(session.view(0, ~std::uint64_t{0}, 2), penstock::error);
  CHECK_THROWS_AS(session.view(1, 0, 0), penstock::error);
  CHECK_THROWS_WITH(held.add("a", "again"), penstock_test::contains("already"));
}
