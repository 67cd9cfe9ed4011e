// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A dataset with a replaced shard is a different dataset, and an earlier state is refused with a sentence
// before any sample is read.

#include <penstock/inspection/consumed.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/stored.hpp"
#include "support/temp_dir.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace ps = penstock;
using penstock_test::raw_tar;

TEST_CASE("source/webdataset_replaced: a state of the earlier shards is refused before anything is read") {
  const penstock_test::temp_dir dir;
  const auto name = [&](int shard) { return (dir / ("s-" + std::to_string(shard) + ".tar")).string(); };
  for (int shard = 0; shard < 3; ++shard) {
    raw_tar tar;
    for (int i = 0; i < 4; ++i) tar.member(std::to_string(10 * shard + i) + ".txt", "value");
    tar.end().save(name(shard));
  }
  const penstock_test::store_kind* const kind = GENERATE(from_range(penstock_test::stores_here()));
  INFO(kind->name);
  std::atomic<int> read{0};
  const auto plan = [&](std::uint64_t rank) {
    const penstock_test::stored shards = kind->open({name(0), name(1), name(2)});
    return ps::webdataset(shards, {.index_folder = (dir / "indexes").string()}) |
           ps::map([&](const auto&) { return ++read; }) | ps::shuffle(ps::seed(3)) | ps::shard(rank, 2) |
           ps::global_batch(4);
  };
  ps::state where;
  {
    auto run = plan(0).open();
    static_cast<void>(run.next());
    where = run.state();
  }
  CHECK_NOTHROW(plan(1).open(where));

  SECTION("by one with other samples and an equal size") {
    raw_tar tar;
    for (int i = 0; i < 4; ++i) tar.member(std::to_string(20 + i) + ".txt", "other");
    tar.end().save(name(1));
  }
  SECTION("by one with equal keys, one member longer and one shorter") {
    raw_tar tar;
    for (int i = 0; i < 4; ++i)
      tar.member(std::to_string(10 + i) + ".txt", i == 0 ? "values" : i == 1 ? "valu" : "value");
    tar.end().save(name(1));
  }
  SECTION("by one with fewer samples") {
    raw_tar tar;
    for (int i = 0; i < 3; ++i) tar.member(std::to_string(10 + i) + ".txt", "value");
    tar.end().save(name(1));
  }
  SECTION("by another shard of the dataset") {
    std::filesystem::copy_file(name(2), name(1), std::filesystem::copy_options::overwrite_existing);
  }
  // its time may be the only sign on a server whose clock counts seconds
  const auto now = std::filesystem::last_write_time(name(1));
  std::filesystem::last_write_time(name(1), now + std::chrono::seconds(10));
  read = 0;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    const auto again = plan(rank);
    try {
      static_cast<void>(again.open(where));
      FAIL("a state of other data was opened");
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::state);
      CHECK_THAT(e.what(), penstock_test::contains("another dataset"));
      CHECK(std::string(e.what()).find('\n') == std::string::npos);
    }
    CHECK_THROWS_WITH(ps::for_each_consumed(again, where, [](ps::consumed_range) {}),
                      penstock_test::contains("not of this plan"));
  }
  CHECK(read == 0);
}
