// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/lockfree.hpp>

#include <penstock/inspection/describe.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/deadline.hpp"
#include "support/engine_test.hpp"

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace lockfree_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

constexpr ps::block_delivery::maker through_queue = ps::block_delivery::make<ps::lockfree_delivery>;

/// Work on a block: grains add up in a plain array, so that the thread sanitizer sees whether the queues
/// order them.
struct adding_up {
  std::vector<std::vector<std::uint64_t>>& blocks;
  void evaluate(std::uint64_t s, std::uint64_t grain) noexcept {
    if ((s * 7 + grain) % 11 == 0) std::this_thread::yield();
    blocks[s % blocks.size()][grain] = s * 100 + grain;
  }
  void finish(std::uint64_t s) noexcept { blocks[s % blocks.size()].back() = s; }
  void waiting(bool) noexcept {}
  void rest() noexcept {}
};

void hand_over_blocks(std::size_t ring_blocks, std::uint64_t grains, unsigned workers, unsigned spins,
                      std::uint64_t count) {
  ps::ring ring(ring_blocks, grains, spins, through_queue);
  std::vector<std::vector<std::uint64_t>> blocks(ring_blocks, std::vector<std::uint64_t>(grains + 1));
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < workers; ++i)
    threads.emplace_back([&] {
      adding_up work{blocks};
      ring.serve(work);
    });
  std::uint64_t opened = 0;
  for (std::uint64_t s = 0; s < count; ++s) {
    while (opened < count && opened < s + ring_blocks) ring.open(opened++);
    REQUIRE(ring.wait_ready(s));
    REQUIRE(blocks[s % ring_blocks].back() == s);
    for (std::uint64_t grain = 0; grain < grains; ++grain)
      REQUIRE(blocks[s % ring_blocks][grain] == s * 100 + grain);
  }
  ring.stop();
}

/// Checks that both hand-overs give equal batches, with many numbers of workers and depths.
template <class Plan>
void same_with_both(const Plan& plan, const std::string& name) {
  const auto expected = engine_test::read_plan(plan | ps::workers(0), 2);
  engine_test::on_each_setting(plan | ps::lockfree, [&](const auto& other, const std::string& setting) {
    INFO(name << ": " << setting);
    CHECK(engine_test::read_plan(other, 2) == expected);
  });
}

}  // namespace

TEST_CASE("run/lockfree: every block is processed once and delivered in order, whatever its size") {
  const deadline guard("hand-over through queues");
  for (const std::size_t blocks : {1u, 2u, 5u})
    for (const std::uint64_t grains : {1u, 3u, 8u})
      for (const unsigned workers : {1u, 2u, 7u})
        hand_over_blocks(blocks, grains, workers, workers % 2 == 0 ? 0 : 50, 300);
}

TEST_CASE("run/lockfree: without workers the consumer processes blocks itself") {
  ps::ring ring(2, 3, 0, through_queue);
  std::vector<std::vector<std::uint64_t>> blocks(2, std::vector<std::uint64_t>(4));
  adding_up work{blocks};
  for (std::uint64_t s = 0; s < 5; ++s) {
    ring.open(s);
    CHECK_FALSE(ring.is_ready(s));
    ring.serve_here(work, s);
    REQUIRE(ring.is_ready(s));
    REQUIRE(blocks[s % 2].back() == s);
  }
}

TEST_CASE("run/lockfree: stop ends every wait, before, while and after") {
  const deadline guard("stop of a hand-over through queues");
  for (int round = 0; round < 200; ++round) {
    ps::ring ring(3, 2, round % 2 == 0 ? 0 : 20, through_queue);
    std::vector<std::vector<std::uint64_t>> blocks(3, std::vector<std::uint64_t>(3));
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        adding_up work{blocks};
        ring.serve(work);
      });
    threads.emplace_back([&, round] {
      for (int i = 0; i < round % 17; ++i) std::this_thread::yield();
      ring.stop();
    });
    std::uint64_t s = 0;
    do {
      ring.open(s);
    } while (ring.wait_ready(s++) && s < 1'000'000);
    REQUIRE(ring.stopped());
  }
}

TEST_CASE("run/lockfree: the annotation chooses the delivery by type and changes no sequence") {
  const auto source = ps::from(engine_test::iota(997));
  const auto plan = source | ps::shuffle(ps::seed(3)) | ps::map(engine_test::slowly{}) | ps::batch(10);
  using chosen = decltype(plan | ps::lockfree);
  using without = std::remove_const_t<decltype(plan)>;
  static_assert(ps::detail::delivery_of<chosen::stages_type>::make == through_queue,
                "blocks go through the queue");
  static_assert(ps::detail::delivery_of<without::stages_type>::make == nullptr, "without it nothing changes");
  static_assert(ps::elastic<chosen> && ps::lockstep<chosen>, "it loses nothing");
  CHECK(ps::describe(plan | ps::lockfree).find("lockfree") != std::string::npos);
  CHECK(ps::sequence_fingerprint(plan) == ps::sequence_fingerprint(plan | ps::lockfree));

  same_with_both(plan, "direct");
  same_with_both(source | ps::batch(300), "light");
  same_with_both(
      source | ps::map([](std::uint64_t x) { return engine_test::words_of(x)[0]; }) | ps::batch(64),
      "several grains");
  same_with_both(source | ps::filter([](std::uint64_t x) { return x % 3 != 0; }) | ps::batch(7), "chunks");
  same_with_both(source | ps::shuffle_buffer(50, ps::seed(5)) | ps::batch(9), "with a cursor");
  same_with_both(engine_test::counting_source(500) | ps::batch(11), "forward");
}

TEST_CASE("run/lockfree: a state of one hand-over resumes with the other") {
  const auto plan = ps::from(engine_test::iota(200)) | ps::shuffle(ps::seed(3)) | ps::batch(8);
  const auto whole = engine_test::read_plan(plan, 1)[0];
  auto first = (plan | ps::lockfree | ps::workers(2)).open();
  engine_test::batches seen;
  for (auto&& b : first) {
    seen.push_back(engine_test::values_of(b));
    if (seen.size() == 9) break;
  }
  auto second = plan.open(first.state());
  for (auto&& b : second) seen.push_back(engine_test::values_of(b));
  CHECK(seen == whole);
}

TEST_CASE("run/lockfree: errors come at their place, and a stop ends a waiting run") {
  const auto plan = ps::from(engine_test::iota(100)) | ps::map([](std::uint64_t x) {
                      if (x == 57) throw ps::error(ps::errc::format, "fifty-seven");
                      return x;
                    }) |
                    ps::batch(10) | ps::lockfree | ps::workers(3);
  auto run = plan.open();
  std::size_t batches = 0;
  const std::string what = error_of([&] {
    for (auto&& b : run) batches += b.size() / 10;
  });
  CHECK(batches == 5);
  CHECK(what.find("fifty-seven [position 0:57]") != std::string::npos);
  CHECK(run.stopped());

  const deadline guard("stop of a run that waits");
  std::atomic<bool> entered{false}, go{false};
  std::stop_source stop;
  const auto slow = ps::from(engine_test::iota(100)) | ps::map([&](std::uint64_t x) {
                      entered.store(true);
                      entered.notify_one();
                      go.wait(false);
                      return x;
                    }) |
                    ps::batch(10) | ps::lockfree | ps::workers(2);
  auto waiting = slow.open(stop.get_token());
  const std::jthread stopper([&] {
    entered.wait(false);
    stop.request_stop();
    go.store(true);
    go.notify_all();
  });
  std::size_t delivered = 0;
  for (auto&& b : waiting) delivered += b.size();
  CHECK(delivered == 0);
}

}  // namespace lockfree_test
