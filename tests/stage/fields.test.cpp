// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/fields.hpp>

#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/open_samples.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/fields: members become fields in the order written, by the first alternative that exists") {
  const open_samples source(
      {{"a", {{"jpeg", "J"}, {"cls", "1"}, {"big", "never"}}}, {"b", {{"cls", "2"}, {"jpg", "j"}}}});
  std::string images, labels;
  for (auto&& b : (source | ps::fields<"jpg;jpeg", "cls"> | ps::batch(2) | ps::workers(0)).epoch(0)) {
    for (const std::byte x : ps::get<"jpg">(b).flat()) images += static_cast<char>(x);
    for (const std::byte x : ps::get<"cls">(b).flat()) labels += static_cast<char>(x);
  }
  CHECK(images == "Jj");
  CHECK(labels == "12");
  CHECK(source.reads() == 4);  // the unnamed member was not read
}

TEST_CASE(
    "stage/fields: a missing member is an error with the key and the existing members, unless optional") {
  const open_samples source({{"a", {{"jpg", "xx"}, {"txt", "t"}}}, {"b", {{"jpg", "yy"}}}});
  const auto said = error_of([&] {
    for (auto&& b : (source | ps::fields<"jpg", "txt"> | ps::batch(1, ps::ragged)).epoch(0)) (void)b;
  });
  CHECK_THAT(said, contains("no member 'txt'; it has: jpg"));
  CHECK_THAT(said, contains("key b"));
  for (auto&& b : (source | ps::fields<"jpg", ps::optional<"txt">> | ps::batch(2, ps::ragged)).epoch(0)) {
    CHECK(ps::get<"txt">(b)[0].size() == 1);
    CHECK(ps::get<"txt">(b)[1].empty());
  }
}

namespace fields_test {
/// A sample whose first member has no name, nor memory for one.
struct nameless {
  using is_open_sample = void;
  using blob_type = ps::bytes_view;
  [[nodiscard]] static std::string_view key() { return "k"; }
  [[nodiscard]] static std::size_t size() { return 2; }
  [[nodiscard]] static std::string_view name(std::size_t i) { return i == 0 ? std::string_view() : "jpg"; }
  [[nodiscard]] static blob_type member(std::size_t) { return {}; }
};
}  // namespace fields_test

TEST_CASE("stage/fields: a member may have an empty name") {
  const fields_test::nameless sample;
  CHECK(ps::detail::find_member<"">(sample) == 0);
  CHECK(ps::detail::find_member<"png;">(sample) == 0);
  CHECK(ps::detail::find_member<"png;jpg;">(sample) == 1);
  CHECK(ps::detail::find_member<"png">(sample) == 2);
}

TEST_CASE("stage/fields: of a record it keeps the named fields") {
  using sample = ps::record<ps::field<"a", int>, ps::field<"b", int>, ps::field<"c", int>>;
  const auto plan = ps::from(std::vector<sample>{sample(1, 2, 3)}) | ps::fields<"c", "a"> | ps::batch(1);
  static_assert(
      std::is_same_v<decltype(plan)::element, ps::record<ps::field<"c", int>, ps::field<"a", int>>>);
  for (auto&& b : plan) CHECK(ps::get<"c">(b)[0] == 3);
}
