// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/read_ahead/request_queue.hpp>

#include "support/catch.hpp"
#include "support/slow_session.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace request_queue_test {

using penstock_test::slow_fetching;

TEST_CASE(
    "run/request_queue: requests begin in the order of use, as many as are allowed, and each end begins "
    "one") {
  slow_fetching all({.coalesce_gap = 0, .max_in_flight = 3});
  penstock_test::range_pairs expected;
  for (std::uint64_t row = 0; row < 10; ++row) {
    const std::uint64_t place = row * 7 % 10;  // not the order in the object
    all.want(row, 1000 * place, 500);
    expected.emplace_back(1000 * place, 1000 * place + 500);
  }
  all.it.fetch(all.list);
  for (std::size_t ended = 0; ended < 10; ++ended) {
    CHECK(all.session.in_flight() == std::min<std::size_t>(3, 10 - ended));
    all.session.end_next(ended == 4);
  }
  CHECK(all.session.ranges() == expected);
  CHECK(all.take(0, 0, 500) == all.session.text.substr(0, 500));
  CHECK(all.take(4, 8000, 500).empty());  // it failed
}

TEST_CASE(
    "run/request_queue: a session that allows fewer requests gets no more, and one that slows down fewer") {
  slow_fetching all({.coalesce_gap = 0});
  all.session.allows = 5;
  for (std::uint64_t row = 0; row < 60; ++row) all.want(row, 1000 * row, 500);
  all.it.fetch(all.list);
  CHECK(all.session.in_flight() == 5);
  all.session.allows = 0;
  all.session.end_next();
  CHECK(all.session.in_flight() == 16);
  all.session.counted.slow_downs = 1;
  all.session.end_next();
  CHECK(all.it.queue().max_in_flight() == 8);
  while (all.session.in_flight() > 8) all.session.end_next();
  CHECK(all.session.in_flight() == 8);
}

TEST_CASE("run/request_queue: a limit that changes while it works") {
  penstock::live_limits limits(1, 2, 1, 256);
  limits.fetches(256);
  slow_fetching all({.coalesce_gap = 0}, 8 << 20, &limits);
  limits.adjust({.requests = 4});
  for (std::uint64_t row = 0; row < 60; ++row) all.want(row, 1000 * row, 500);
  all.it.fetch(all.list);
  CHECK(all.session.in_flight() == 4);
  limits.adjust({.requests = 9});
  all.session.end_next();
  CHECK(all.session.in_flight() == 9);
  limits.adjust({.requests = 2});
  while (all.session.in_flight() > 2) all.session.end_next();
  all.session.end_next();
  CHECK(all.session.in_flight() == 2);
  all.session.allows = 1;
  all.session.end_next();
  CHECK(all.session.in_flight() == 1);
}

TEST_CASE("run/request_queue: what waits ends with the reads in flight; after a stop nothing begins") {
  slow_fetching all({.coalesce_gap = 0, .max_in_flight = 2});
  for (std::uint64_t row = 0; row < 10; ++row) all.want(row, 1000 * row, 500);
  all.it.fetch(all.list);
  const auto oldest = all.it.queue().oldest();
  REQUIRE(oldest.has_value());
  CHECK(oldest->offset == 0);
  CHECK(oldest->attempt == 1);
  CHECK(oldest->object == 0);
  CHECK(oldest->name.empty());  // who prints it numbers the object
  SECTION("cancelled") {
    all.it.end_reads();
    CHECK(all.session.ranges().size() == 2);
    CHECK_FALSE(all.it.queue().oldest().has_value());
    all.it.store().halt();
    all.it.store().clear();
    all.want(0, 0, 500);
    all.it.fetch(all.list);
    CHECK(all.session.ranges().size() == 3);
    all.session.end_next();
    CHECK(all.take(0, 0, 500) == all.session.text.substr(0, 500));
  }
  SECTION("stopped") {
    all.it.store().stop();
    all.it.queue().stop();
    all.session.end_next();
    CHECK(all.session.ranges().size() == 2);
    CHECK(all.take(5, 5000, 500).empty());
    all.session.end_next();
  }
}

}  // namespace request_queue_test
