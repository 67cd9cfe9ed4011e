// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/episodes.hpp>

#include <penstock/inspection/derive.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ps = penstock;

namespace episodes_test {

using codec_test::caught;
using penstock_test::contains;
using numbers = std::vector<std::uint64_t>;

numbers starts_of(const ps::episodes& known) { return {known.starts().begin(), known.starts().end()}; }

}  // namespace episodes_test

using namespace episodes_test;

TEST_CASE("source/episodes: lengths, one behind the other") {
  const ps::episodes known(numbers{3, 0, 4});
  CHECK(known.count() == 3);
  CHECK(known.rows() == 7);
  CHECK(known.longest() == 4);
  CHECK(starts_of(known) == numbers{0, 3, 3, 7});
  CHECK(known.times().empty());
  const ps::episodes none((numbers()));
  CHECK(none.count() == 0);
  CHECK(none.rows() == 0);
  CHECK(none.fingerprint() != known.fingerprint());
  CHECK(ps::episodes(numbers{3, 4}).fingerprint() != known.fingerprint());
  CHECK(ps::episodes(numbers{1, 1}, {0, 1}).fingerprint() !=
        ps::episodes(numbers{1, 1}, {0, 2}).fingerprint());
  const std::uint64_t large = std::uint64_t{1} << 62;
  CHECK(ps::episodes(numbers{large}).rows() == large);
  CHECK_THAT(caught([&] {
               static_cast<void>(ps::episodes(numbers{large, 1}));
             }).line,
             contains("more than 2^62 rows"));
}

TEST_CASE("source/episodes: of columns of whole numbers and of texts, from a source, a plan or an index") {
  const std::vector<std::int8_t> small{-7, -7, 3, 3, 3, 0};
  const numbers expected{0, 2, 5, 6};
  const auto known = ps::episodes_of(ps::from(small));
  CHECK(starts_of(known) == expected);
  CHECK(starts_of(ps::episodes_of(ps::from(std::vector<std::uint64_t>{~0ull, ~0ull, 1, 1, 1, 0}))) ==
        expected);
  const std::vector<std::string> names{"a", "a", "", "", "", "b"};
  CHECK(starts_of(ps::episodes_of(ps::from(names))) == expected);
  CHECK(starts_of(ps::episodes_of(ps::from(small) | ps::map([](std::int8_t x) { return x * 2; }))) ==
        expected);
  CHECK(starts_of(ps::episodes_of(ps::from(std::vector<int>{}))) == numbers{0});
  const penstock_test::temp_dir dir;
  const auto texts = ps::derive(
      ps::from(names), "name", [](const std::string& s) { return s; }, dir.path().string());
  CHECK(starts_of(ps::episodes_of(texts)) == expected);
  const auto time = ps::derive(
      ps::from(small), "time", [](int x) { return x * 0.5; }, dir.path().string());
  CHECK_THAT(caught([&] { static_cast<void>(ps::episodes_of(texts, time)); }).line,
             contains("row 1 has the time -3.5 after -3.5"));
}

TEST_CASE("source/episodes: the first row that is out of place, and times that do not ascend") {
  const auto refused = [](const std::vector<int>& column) {
    const auto thrown = caught([&] { static_cast<void>(ps::episodes_of(ps::from(column))); });
    CHECK(thrown.code == ps::errc::format);
    return thrown.line;
  };
  CHECK_THAT(refused({1, 2, 1}),
             contains("episode 1 do not lie one behind the other: it has row 2 after it ended "
                      "with row 0; sort the table by its episodes"));
  CHECK_THAT(refused({5, 5, 1, 2, 2, 1, 5, 5}),
             contains("episode 1 do not lie one behind the other: it has row 5 "
                      "after it ended with row 2"));
  CHECK_THAT(refused({9, 1, 9, 1, 9}),
             contains("episode 9 do not lie one behind the other: it has row 2 after it "
                      "ended with row 0"));
  const numbers two{2, 2};
  const auto faulty = [&](std::vector<double> times) {
    return caught([&] { static_cast<void>(ps::episodes(two, times)); }).line;
  };
  CHECK(ps::episodes(two, {3, 4, 0, 1}).times()[2] == 0);
  CHECK_THAT(faulty({3, 2, 0, 1}), contains("row 1 has the time 2 after 3"));
  CHECK_THAT(faulty({3, 4, 1, 1}), contains("row 3 has the time 1 after 1"));
  CHECK_THAT(faulty({3, 4, std::nan(""), 1}), contains("row 2 has the time nan; the times"));
  CHECK_THAT(faulty({3, std::numeric_limits<double>::infinity(), 0, 1}), contains("row 1 has the time inf"));
  CHECK_THAT(faulty({3, 4, 5}), contains("there are 3 times for 4 rows; give one for each row"));
}
