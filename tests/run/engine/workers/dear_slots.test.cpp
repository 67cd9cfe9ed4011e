// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/workers/dear_slots.hpp>

#include <penstock/run/engine/workers/ring.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace dear_slots_test {

namespace ps = penstock;

TEST_CASE(
    "run/engine/workers/dear_slots: the one that is due first is claimed, once, and not before it is due") {
  ps::dear_slots all(3);
  const std::vector<ps::dear_slot> one{{4, 9, 10}, {1, 9, 14}}, other{{7, 9, 12}};
  all.publish(3, one);
  all.publish(4, {});
  all.publish(5, other);
  ps::dear_slots::claimed it;
  CHECK_FALSE(all.claim(9, it));
  REQUIRE(all.claim(13, it));
  CHECK((it.block == 3 && it.slot == 4));
  REQUIRE(all.claim(13, it));
  CHECK((it.block == 5 && it.slot == 7));
  CHECK_FALSE(all.claim(13, it));
  ps::dear_slots::others apart;
  CHECK(all.take(3, 0, 8, apart) == 1);  // slot 1 is left, and 4 somebody else's
  CHECK((apart.count == 1 && apart.slots[0] == 4));
  CHECK_FALSE(all.claim(99, it));
}

/// Counts how often each slot is evaluated. Slots are numbered 4 s + grain.
struct counting_worker {
  ps::ring* ring;
  ps::dear_slots* dear;
  std::vector<std::atomic<int>>* evaluated;
  std::vector<std::atomic<int>>* finished;
  ps::dear_slots::others apart{};

  void serve() { ring->serve(*this); }
  void rest() noexcept {
    for (ps::dear_slots::claimed it; !ring->stopped() && dear->claim(ring->next_ticket(), it);) {
      ++(*evaluated)[static_cast<std::size_t>(4 * it.block + it.slot)];
      ring->finish_piece(*this, it.block);
    }
  }
  void evaluate(std::uint64_t s, std::uint64_t grain) noexcept {
    apart.count = 0;
    if (const std::uint32_t mine = dear->take(s, grain, grain + 1, apart); mine != 0)
      ring->count_pieces(s, mine);
    if (apart.count == 0) ++(*evaluated)[static_cast<std::size_t>(4 * s + grain)];
  }
  void finish(std::uint64_t s) noexcept { ++(*finished)[static_cast<std::size_t>(s)]; }
  void waiting(bool) noexcept {}
};

TEST_CASE("run/engine/workers/dear_slots: each slot is evaluated once, and blocks are ready in their order") {
  constexpr std::uint64_t blocks = 4000, in_flight = 5;
  ps::ring ring(in_flight, 4, 0);
  ps::dear_slots dear(in_flight);
  std::vector<std::atomic<int>> evaluated(4 * blocks), finished(blocks);
  std::array<counting_worker, 3> workers;
  workers.fill({&ring, &dear, &evaluated, &finished});
  std::vector<std::thread> threads;
  for (counting_worker& one : workers) threads.emplace_back([&one] { one.serve(); });
  std::uint64_t opened = 0;
  for (std::uint64_t s = 0; s < blocks; ++s) {
    for (; opened < std::min(blocks, s + in_flight); ++opened) {
      std::vector<ps::dear_slot> some;
      for (std::uint64_t slot = 0; slot < opened % 5; ++slot)
        some.push_back({slot, 9, 4 * opened + slot - std::min(4 * opened + slot, opened % 17)});
      std::sort(some.begin(), some.end(), [](const auto& a, const auto& b) { return a.due < b.due; });
      if (!some.empty()) ring.expect_more(opened, static_cast<std::uint32_t>(some.size()));
      dear.publish(opened, some);
      ring.open(opened);
    }
    REQUIRE(ring.wait_ready(s));
    CHECK(finished[static_cast<std::size_t>(s)] == 1);
    for (std::size_t i = 0; i < 4; ++i) CHECK(evaluated[static_cast<std::size_t>(4 * s) + i] == 1);
  }
  ring.stop();
  for (std::thread& one : threads) one.join();
}

}  // namespace dear_slots_test
