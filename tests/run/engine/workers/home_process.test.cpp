// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Real forks. A child that hangs is ended by its alarm, and the parent notices.

#include <penstock/run/engine/workers/thread.hpp>

#include <penstock/device/simulated.hpp>
#include <penstock/integration/any_loader.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/watchdog.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/engine_test.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace home_process_test {

namespace ps = penstock;
using namespace engine_test;
using penstock_test::in_child;

namespace {

// The thread sanitizer ends a child that starts threads.
#ifdef __SANITIZE_THREAD__
constexpr bool child_may_start_threads = false;
#else
constexpr bool child_may_start_threads = true;
#endif

constexpr auto as_it_is = [](std::uint64_t i) { return i; };

bool refused(const std::exception_ptr& what) {
  try {
    if (what) std::rethrow_exception(what);
  } catch (const ps::error& e) {
    return e.code() == ps::errc::argument &&
           std::string(e.what()).find("this run was opened before fork()") != std::string::npos;
  }
  return false;
}
template <class F>
bool refuses(F f) {
  try {
    f();
  } catch (...) {
    return refused(std::current_exception());
  }
  return false;
}

/// Whatever a child does with its parent's run gives one sentence, and nothing hangs.
template <class Plan>
void fork_in_the_middle(const Plan& plan) {
  const penstock_test::deadline guard("fork", std::chrono::seconds(250));
  std::optional<decltype(plan.open())> run(plan.open());
  auto held = run->next();
  REQUIRE(held);
  CHECK(in_child([&] {
          if (!refused(run->next().failure)) return 1;
          if (!refuses([&] { (void)run->epoch(1); })) return 2;
          if (!refuses([&] { (void)run->epochs(3); })) return 3;
          if (!refuses([&] { (void)run->begin(); })) return 4;
          if (!refuses([&] { run->adjust({.ahead = 0}); })) return 6;
          if (run->counters().batches != 1 || run->state().epoch != 0) return 5;
          run->request_stop();
          run.reset();
          held.value.reset();
          return 0;
        }) == 0);
  if (child_may_start_threads)
    CHECK(in_child([&] {  // the batch first, then replace the run
            held.value.reset();
            auto other = plan.open();
            *run = std::move(other);
            return run->next() ? 0 : 1;
          }) == 0);
  std::uint64_t batches = 1;
  while (run->next()) ++batches;  // the parent is unaffected
  CHECK(batches == 25);
}

}  // namespace

TEST_CASE("run/home_process: a child knows that it is a child") {
  const ps::home_process home;
  CHECK(home.here());
  CHECK_NOTHROW(home.check());
  CHECK(in_child([&] {
          if (home.here() || !refuses([&] { home.check(); })) return 1;
          const ps::home_process own;
          return own.here() ? 0 : 2;
        }) == 0);
  CHECK(home.here());
}

TEST_CASE("run/home_process: a run opened before fork is refused in the child, and is destroyed quietly") {
  const auto source = ps::generated(100, as_it_is) | ps::map(slowly{});
  SECTION("in place") { fork_in_the_middle(source | ps::batch(4) | ps::workers(3)); }
  SECTION("small batches that share a block") {
    fork_in_the_middle(ps::generated(100, as_it_is) | ps::batch(4) | ps::workers(1));
  }
  SECTION("chunks") {
    fork_in_the_middle(source | ps::filter([](std::uint64_t) { return true; }) | ps::batch(4) |
                       ps::workers(2));
  }
  SECTION("a forward source") {
    fork_in_the_middle(ps::plan(counting_source(100)) | ps::map(slowly{}) | ps::batch(4) | ps::workers(2));
  }
  SECTION("a device") {
    fork_in_the_middle(source | ps::batch(4) | ps::pin_and_copy(ps::simulated{}) | ps::workers(2));
  }
  SECTION("a watchdog that is about to write") {
    fork_in_the_middle(source | ps::batch(4) | ps::workers(2) | ps::watchdog(std::chrono::milliseconds(40)));
  }
}

TEST_CASE("run/home_process: a loop continued in the child throws, in the parent it continues") {
  for (const unsigned workers : {0u, 2u}) {
    auto run = (ps::generated(40, as_it_is) | ps::batch(4) | ps::prefetch(3) | ps::workers(workers)).open();
    std::uint64_t seen = 0;
    for (auto&& b : run.epoch(0)) {
      seen += b.size();
      if (seen == 8)
        CHECK(in_child([&] {
                auto at = run.begin();  // refused; and so is the next call of the loop
                (void)at;
                return 1;
              }) == 98);
    }
    CHECK(seen == 40);
  }
  auto rows = (ps::generated(40, as_it_is) | ps::map(slowly{}) | ps::workers(2)).open();
  auto at = rows.begin();
  CHECK(in_child([&] {
          return refuses([&] {
            ++at;
            (void)(at == std::default_sentinel);
          })
                     ? 0
                     : 1;
        }) == 0);
  CHECK(*at == 0);
}

TEST_CASE("run/home_process: a batch that outlived its run, and a loader, can be destroyed in a child") {
  const auto plan = ps::generated(40, as_it_is) | ps::map(slowly{}) | ps::batch(4) | ps::workers(2);
  auto left = [&] {
    auto run = plan.open();
    return run.next();
  }();
  REQUIRE(left);
  CHECK(in_child([&] {
          left.value.reset();
          return 0;
        }) == 0);
  CHECK(left->values()[0] == 0);

  std::optional<ps::any_loader<std::uint64_t>> loader;
  loader.emplace(plan, [](auto& b) { return static_cast<std::uint64_t>(b.size()); });
  auto epoch = loader->epoch(0);
  auto at = epoch.begin();
  CHECK(*at == 4);
  CHECK(in_child([&] {
          if (!refuses([&] { ++at; })) return 1;
          loader.reset();
          return 0;
        }) == 0);
}

}  // namespace home_process_test
