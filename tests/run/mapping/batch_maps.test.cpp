// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/mapping/batch_maps.hpp>

#include <penstock/device/host.hpp>
#include <penstock/run/engine/engine.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map_batch.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace batch_maps_test {

namespace ps = penstock;

namespace {

template <class Plan>
struct block_at_hand {
  using block_type = typename ps::engine<Plan>::block_type;
  ps::host::session session;
  ps::memory_account account;
  block_type block{session, account};
  ps::batch_rows batch{40, 0, 4, 4, {1, 10}};

  block_at_hand() {
    block.epoch = 1;
    block.batches = {batch};
    block.columns.begin(4);
    for (std::uint64_t i = 0; i < 4; ++i) block.columns.write(i, i);
    block.columns.finish(0, 4, 4);
  }
};

}  // namespace

TEST_CASE("run/batch_maps: functions are called in order, and the time of each is counted") {
  const auto plan =
      ps::generated(100, [](std::uint64_t i) { return i; }) | ps::batch(4) | ps::map_batch([](auto& columns) {
        for (auto& x : columns.values()) x += columns.step();
      }) |
      ps::map_batch([](auto& columns) { return std::vector<double>(columns.begin(), columns.end()); });
  using plan_type = std::remove_const_t<decltype(plan)>;
  STATIC_REQUIRE(ps::batch_maps<plan_type>::count == 2);
  block_at_hand<plan_type> at;
  ps::batch_maps<plan_type>::costs spent{};
  const ps::batch_maps<plan_type> maps(plan, 0);
  maps.keep(at.block, at.batch, spent);
  CHECK(at.block.what == nullptr);
  CHECK(at.block.columns.view<0>(0, 4)[3] == 13.0);
  CHECK(spent[0].timed == 4);
  CHECK(spent[1].timed == 4);
}

TEST_CASE("run/batch_maps: a failure is kept for the first row of the batch") {
  const auto plan = ps::generated(100, [](std::uint64_t i) { return i; }) | ps::batch(4) |
                    ps::map_batch([](auto&) { throw ps::error(ps::errc::argument, "no such thing"); });
  using plan_type = std::remove_const_t<decltype(plan)>;
  block_at_hand<plan_type> at;
  ps::batch_maps<plan_type>::costs spent{};
  const ps::batch_maps<plan_type> maps(plan, 0);
  maps.keep(at.block, at.batch, spent);
  REQUIRE(at.block.what != nullptr);
  CHECK(at.block.bad_slot == 0);
  try {
    std::rethrow_exception(at.block.what);
  } catch (const ps::error& e) {
    CHECK(e.stage() == "map_batch");
    REQUIRE(e.at().has_value());
    CHECK(*e.at() == ps::position{1, 40});
  }
  CHECK(spent[0].timed == 0);
}

}  // namespace batch_maps_test
