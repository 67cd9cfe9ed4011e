// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/fetched_session.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>
#include <penstock/storage/throttled.hpp>

#include "support/catch.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace fetched_session_test {

namespace ps = penstock;

struct hinted {
  static constexpr bool views = false;
  std::uint64_t bytes = 0;
  [[nodiscard]] static std::uint64_t size(ps::object_id) { return 100; }
  [[nodiscard]] static ps::object_signature signature(ps::object_id) { return {}; }
  static void read(ps::object_id, std::uint64_t, ps::mutable_bytes) {}
  void will_need(ps::object_id, std::uint64_t offset, std::uint64_t n) { bytes += offset + n; }
};

TEST_CASE("run/fetched_session: what a session can do, type-erased; defaults for what it cannot") {
  const auto files = ps::memory_files().add("a", "text").add("b", "more");
  auto plain = files.connect();
  const ps::fetched_session near(plain);
  CHECK(near.self() == &plain);
  CHECK_FALSE(near.has_latency());
  CHECK_FALSE(near.in_background());
  CHECK(near.at_once() == 0);
  CHECK(near.counters() == ps::storage_counters{});
  CHECK_FALSE(near.oldest_read().has_value());
  CHECK(near.name(1) == "object 1");
  CHECK(near.view().size(1) == 4);

  auto session =
      ps::retrying(ps::throttled(ps::simulated_storage(files, {.latency = std::chrono::microseconds(0)}),
                                 {.at_once = 7}))
          .connect();
  const ps::fetched_session far(session);
  CHECK(far.has_latency());
  CHECK(far.in_background());
  CHECK(far.at_once() == 7);
  CHECK(far.name(1) == "b");
  std::array<std::byte, 2> two{};
  far.view().read(1, 2, two);
  CHECK(ps::text_of(two) == "re");
  CHECK(far.counters().requests == 1);
  CHECK_FALSE(far.oldest_read().has_value());
}

TEST_CASE("run/fetched_session: hints reach a session that takes them") {
  hinted session;
  ps::fetched_session(session).will_need(0, 10, 5);
  CHECK(session.bytes == 15);
}

}  // namespace fetched_session_test
