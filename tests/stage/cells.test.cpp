// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/stage/cells.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/core/error.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ps = penstock;

namespace cells_test {

auto rows() {
  return ps::arrow_ipc(
      ps::memory_files().add_view("x.arrow", ps::bytes_of(penstock_test::arrow_oracle("file.arrow"))));
}

template <class Plan>
std::string joined(const Plan& plan) {
  std::string all;
  auto run = plan.open();
  for (const auto& one : run) all.append(one).append(" ");
  return all;
}

}  // namespace cells_test

using namespace cells_test;

TEST_CASE("stage/cells: columns by names that are known at run time") {
  for (const std::size_t workers : {0u, 2u})
    for (const std::string name : {"i", "u"}) {
      const std::string found = joined(rows() | ps::cells() | ps::map([&](const auto& row) {
                                         const auto value =
                                             row[name].template as<std::optional<std::int64_t>>();
                                         return value ? std::to_string(*value) : std::string("none");
                                       }) |
                                       ps::workers(workers));
      CHECK(found == (name == "i" ? "1 none -3 1099511627776 5 6 7 " : "0 1 2 3 4 5 6 "));
    }
  CHECK(joined(rows() | ps::cells() |
               ps::filter([](const auto& row) { return !row[std::size_t{0}].is_null(); }) |
               ps::map([](const auto& row) { return std::string(row.name(0)) + row["u"].type().text(); })) ==
        "iuint8 iuint8 iuint8 iuint8 iuint8 iuint8 ");
}

TEST_CASE("stage/cells: only the columns that the source shows are there") {
  const auto some = rows() | ps::column_list{{"u"}};
  CHECK(some.fields().size() == 1);
  CHECK(some.fingerprint() != rows().fingerprint());
  CHECK(joined(some | ps::cells() | ps::map([](const auto& row) {
                 return std::to_string(row.size()) + std::to_string(row["u"].template as<int>());
               })) == "10 11 12 13 14 15 16 ");
  CHECK_THROWS_WITH(joined(some | ps::cells() | ps::map([](const auto& row) {
                             return std::string(row["i"].is_null() ? "null" : "");
                           })),
                    Catch::Contains("the row has no column 'i'; it has: u"));
  CHECK_THROWS_WITH(rows() | ps::columns<"nowhere">,
                    Catch::Contains("there is no column 'nowhere', only i, u"));
}
