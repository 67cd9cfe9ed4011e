// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/fetched.hpp>

#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/range_store.hpp>

#include "support/catch.hpp"
#include "support/noting_storage.hpp"

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace ps = penstock;

TEST_CASE("storage/fetched: a worker finds its bytes by session, object and range, and releases them") {
  ps::range_store store(4096, 8);
  const int session = 0, other = 0;
  auto* const room = store.reserve(100, 1);
  std::memcpy(room->bytes, "0123456789", 10);
  REQUIRE(store.claim(2));
  REQUIRE(store.add(2, {&session, 50, 10, room->bytes, room, 7}));
  store.publish(2);
  store.begin(1);
  store.end(*room, true);

  ps::fetched_sample mine;
  CHECK(mine.find(&session, 7, 50, 1).empty());
  mine.use(&store);
  mine.stand_at(2);
  {
    const ps::fetched_sample::scope held(mine);
    CHECK(ps::text_of(mine.find(&session, 7, 50, 10)) == "0123456789");
    CHECK(ps::text_of(mine.find(&session, 7, 53, 2)) == "34");
    CHECK(mine.find(&session, 7, 49, 2).empty());
    CHECK(mine.find(&session, 7, 55, 6).empty());
    CHECK(mine.find(&session, 7, 61, 1).empty());
    CHECK(mine.find(&session, 8, 50, 1).empty());
    CHECK(mine.find(&other, 7, 50, 1).empty());
    CHECK(room->users == 1);
  }
  CHECK(room->users == 0);
  CHECK(mine.find(&session, 7, 50, 1).empty());
}

TEST_CASE("storage/fetched: sessions that show their bytes have no link to fetched bytes") {
  CHECK(std::is_empty_v<ps::fetch_link<ps::memory_files::session>>);
  const penstock_test::noting_storage copied{ps::memory_files().add("a", "text")};
  const auto session = copied.connect();
  const ps::fetch_link<penstock_test::noting_storage::session> none;
  CHECK(none.find(session, 0, 0, 4).empty());
}
