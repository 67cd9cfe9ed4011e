// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/record_format.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace record_format_test {

struct whole_index {
  std::vector<ps::record_field> names{{"all", "bytes"}};
  [[nodiscard]] std::uint64_t records() const { return 1; }
  [[nodiscard]] const std::vector<ps::record_field>& fields() const { return names; }
  [[nodiscard]] ps::value_place place(std::uint64_t, std::size_t) const { return {0, 8}; }
};
struct whole {
  static constexpr std::string_view source_name = "whole";
  using index = whole_index;
  [[nodiscard]] index read_index(ps::session_view, ps::object_id) const { return {}; }
};

struct copied_fields : whole_index {
  [[nodiscard]] std::vector<ps::record_field> fields() const { return names; }
};
struct no_places {
  [[nodiscard]] std::uint64_t records() const { return 1; }
};
struct nameless {
  using index = whole_index;
  [[nodiscard]] index read_index(ps::session_view, ps::object_id) const { return {}; }
};

static_assert(ps::record_format<whole> && ps::record_index<whole_index> && ps::places_values<whole_index>);
static_assert(!ps::divides_records<whole_index>);
static_assert(!ps::record_index<copied_fields>, "a list that is made anew at each call");
static_assert(!ps::record_index<no_places>);
static_assert(!ps::record_format<nameless>);

}  // namespace record_format_test

TEST_CASE("source/record_format: fields are equal if names, types and places are") {
  const ps::record_field label{"label", "int64", true};
  CHECK(label == ps::record_field{"label", "int64", true});
  CHECK_FALSE(label == ps::record_field{"label", "int64"});
  CHECK_FALSE(label == ps::record_field{"label", "int32", true});
}
