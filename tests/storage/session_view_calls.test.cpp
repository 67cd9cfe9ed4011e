// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/bytes.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/simulated_storage.hpp>
#include <penstock/storage/throttled.hpp>

#include "support/catch.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace session_view_calls_test {

namespace ps = penstock;

TEST_CASE("session_view: what a session can do, type-erased; defaults for what it cannot") {
  const auto files = ps::memory_files().add("a", "text").add("b", "more");
  auto plain = files.connect();
  const ps::session_view near(plain);
  CHECK(near.self() == &plain);
  CHECK_FALSE(near.traits().latency);
  CHECK_FALSE(near.in_background());
  CHECK(near.report().max_in_flight == 0);
  CHECK(near.report().counters == ps::storage_counters{});
  CHECK_FALSE(near.report().oldest.has_value());
  CHECK(near.report().names.empty());
  CHECK(near.size(1) == 4);

  auto session =
      ps::retrying(ps::throttled(ps::simulated_storage(files, {.latency = std::chrono::microseconds(0)}),
                                 {.max_in_flight = 7}))
          .connect();
  const ps::session_view far(session);
  CHECK(far.traits().latency);
  CHECK(far.in_background());
  CHECK(far.report().max_in_flight == 7);
  CHECK(far.report().names[1] == "b");
  std::array<std::byte, 2> two{};
  far.read(1, 2, two);
  CHECK(ps::text_of(two) == "re");
  CHECK(far.report().counters.requests == 1);
  CHECK_FALSE(far.report().oldest.has_value());
}

namespace {

struct counted_looks {
  mutable int looks = 0;
  [[nodiscard]] static std::uint64_t size(ps::object_id) { return 0; }
  [[nodiscard]] static ps::object_version version(ps::object_id) { return {}; }
  static void read(ps::object_id, std::uint64_t, ps::mutable_bytes) {}
  static void will_need(ps::object_id, std::uint64_t, std::uint64_t) {}
  [[nodiscard]] ps::session_report report() const {
    ++looks;
    return {.counters = {.slow_downs = 2}, .counted = true, .max_in_flight = 3};
  }
};
struct with_limits : counted_looks {
  [[nodiscard]] static ps::session_report limits() {
    return {.counters = {.slow_downs = 4}, .counted = true, .max_in_flight = 5};
  }
};

}  // namespace

TEST_CASE("session_view: a session that tells its limits is not asked for a report") {
  counted_looks plain;
  CHECK(ps::session_view(plain).limits().max_in_flight == 3);
  CHECK(ps::session_view(plain).limits().counters.slow_downs == 2);
  with_limits told;
  const ps::session_report seen = ps::session_view(told).limits();
  CHECK(seen.max_in_flight == 5);
  CHECK(seen.counters.slow_downs == 4);
  CHECK(told.looks == 0);

  const auto files = ps::memory_files().add("a", "text");
  const auto limited = ps::retrying(ps::throttled(files, {.max_in_flight = 7})).connect();
  CHECK(ps::limits_of(limited).max_in_flight == 7);
  CHECK(ps::limits_of(limited).counted);
  CHECK(ps::limits_of(files.connect()).max_in_flight == 0);
}

}  // namespace session_view_calls_test
