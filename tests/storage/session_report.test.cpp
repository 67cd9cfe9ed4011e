// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/session_report.hpp>

#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"

#include <array>
#include <optional>
#include <string>

namespace session_report_test {

namespace ps = penstock;

TEST_CASE("storage/session_report: a session that does not report has an empty report") {
  const auto session = ps::memory_files().add("a", "bytes").connect();
  const ps::session_report nothing = ps::report_of(session);
  CHECK_FALSE(nothing.counted);
  CHECK(nothing.counters == ps::storage_counters{});
  CHECK(nothing.max_in_flight == 0);
  CHECK_FALSE(nothing.oldest);
  CHECK(nothing.names.empty());
}

struct stuck_session {
  std::array<std::string, 2> objects{"a", "b"};
  ps::object_id object = 0;
  [[nodiscard]] ps::session_report report() const {
    return {.oldest = ps::open_read{.object = object, .offset = 7, .attempt = 2, .age_ns = 9},
            .names = objects};
  }
};

TEST_CASE("storage/session_report: the oldest read gets its object's name, if there is one") {
  CHECK(ps::report_of(stuck_session{.object = 1}).oldest->name == "b");
  CHECK(ps::report_of(stuck_session{.object = 2}).oldest->name.empty());
}

TEST_CASE(
    "storage/session_report: of two reads the older one, with the attempts of the same read elsewhere") {
  const ps::open_read old{.object = 1, .offset = 8, .attempt = 1, .age_ns = 50, .name = "b"};
  const ps::open_read same{.object = 1, .offset = 8, .attempt = 4, .age_ns = 40, .name = "b"};
  const ps::open_read young{.object = 1, .offset = 8, .attempt = 9, .age_ns = 10, .name = "c"};
  CHECK(ps::older_of(old, same)->attempt == 4);
  CHECK(ps::older_of(same, old)->age_ns == 50);
  CHECK(ps::older_of(young, old)->attempt == 1);
  CHECK(ps::older_of(std::nullopt, young)->name == "c");
  CHECK_FALSE(ps::older_of(std::nullopt, std::nullopt));
}

TEST_CASE("storage/session_report: a sum has both counters and the older read; of two limits the smaller") {
  ps::session_report all{.counters = {.requests = 1}, .max_in_flight = 4};
  all += {.counters = {.requests = 2, .hits = 3}, .counted = true, .oldest = ps::open_read{.age_ns = 5}};
  CHECK(all.counters.requests == 3);
  CHECK(all.counters.hits == 3);
  CHECK(all.counted);
  CHECK(all.oldest->age_ns == 5);
  all.limit(0);
  CHECK(all.max_in_flight == 4);
  all.limit(9);
  CHECK(all.max_in_flight == 4);
  all.limit(2);
  CHECK(all.max_in_flight == 2);
}

}  // namespace session_report_test
