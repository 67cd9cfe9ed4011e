// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/storage_counters.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;

namespace {

using far_memory = ps::simulated_storage<ps::memory_files>;

ps::memory_files ten_tokens() { return ps::memory_files().add("t.bin", std::string(20, '\1')); }
far_memory far_tokens() { return far_memory(ten_tokens(), {.latency = 20us}); }

/// What the storage of a plan counted in one epoch.
template <class Plan>
ps::storage_counters counters_after(const Plan& plan) {
  auto run = plan.open();
  for (auto&& b : run.epoch(0)) static_cast<void>(b);
  return run.counters().storage;
}

template <class Storage>
auto windows(const Storage& where) {
  return ps::raw_tokens<std::uint16_t>(where, ps::token_window<2, 0>{});
}

}  // namespace

TEST_CASE("storage/storage_counters: a sum has the sum of each") {
  ps::storage_counters all{.requests = 1,
                           .bytes = 2,
                           .slow_downs = 3,
                           .retries = 4,
                           .given_up = 5,
                           .throttled = 6,
                           .hedges = 7,
                           .hedges_won = 8};
  all += all;
  CHECK(all == ps::storage_counters{.requests = 2,
                                    .bytes = 4,
                                    .slow_downs = 6,
                                    .retries = 8,
                                    .given_up = 10,
                                    .throttled = 12,
                                    .hedges = 14,
                                    .hedges_won = 16});
}

TEST_CASE("storage/storage_counters: a run has the counters of its sessions, whatever its source") {
  const penstock_test::deadline limit("runs that count");
  const auto one = counters_after(windows(far_tokens()) | ps::batch(2) | ps::workers(0));
  CHECK(one.bytes == 20);
  CHECK(one.requests > 0);
  CHECK(one.requests <= 5);
  CHECK(counters_after(windows(ten_tokens()) | ps::batch(2) | ps::workers(0)) == ps::storage_counters{});

  const auto two = counters_after(ps::concat(windows(far_tokens()), windows(far_tokens())) | ps::batch(2) |
                                  ps::workers(0));
  CHECK(two.bytes == 40);
  const auto retried = ps::retrying(far_tokens());
  const auto sum = [](const auto& tokens) { return static_cast<int>(tokens.data()[0]); };
  const auto mixed =
      counters_after(ps::concat(windows(far_tokens()) | ps::map(sum), windows(retried) | ps::map(sum),
                                windows(ten_tokens()) | ps::map(sum)) |
                     ps::batch(2) | ps::workers(0));
  CHECK(mixed.bytes == 40);
  const auto zipped = counters_after(ps::zip<"a", "b">(windows(far_tokens()), windows(ten_tokens())) |
                                     ps::batch(2) | ps::workers(0));
  CHECK(zipped.bytes == 20);
}
