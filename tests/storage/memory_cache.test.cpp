// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/memory_cache.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/cache/memory_blocks.hpp>
#include <penstock/storage/reads/wait_stops.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ps = penstock;
using namespace ps::literals;

namespace memory_cache_test {

using ps::detail::blocks::key;
using ps::detail::blocks::memory_blocks;
using ps::detail::blocks::wait_stops;

std::string refusal(std::uint64_t limit, ps::memory_cache_options options = {}) {
  try {
    const ps::memory_cache made(limit, options);
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
    return std::string(e.message());
  }
  return "none";
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

TEST_CASE("storage/memory_cache: what makes no sense is refused when it is written") {
  CHECK(refusal(1_GiB) == "none");
  CHECK(refusal(1_MiB, {.block = 64_KiB}) == "none");
  CHECK(refusal(1_GiB, {.block = 16_MiB}) == "none");
  CHECK(contains(refusal(0), "a memory_cache of 0 bytes has no room for a block of 8388608 bytes"));
  CHECK(contains(refusal(8_MiB), "has no room for a block of 8388608 bytes and its index; raise the limit"));
  CHECK(contains(refusal(1_GiB, {.block = 32_KiB}),
                 "a power of two of bytes from 64 KiB to 16 MiB, not 32768"));
  CHECK(contains(refusal(1_GiB, {.block = 100'000}), "not 100000 bytes"));
  CHECK(contains(refusal(1_GiB, {.block = 32_MiB}), "not 33554432 bytes"));
  CHECK(contains(refusal(1_GiB, {.max_wait = std::chrono::milliseconds(-1)}), "less than 0 ms"));
}

TEST_CASE("storage/memory_cache: it says what it is") {
  const ps::memory_cache near(64_MiB, {.block = 1_MiB, .evict = ps::eviction::fifo});
  CHECK(near.describe() == "memory_cache(67108864 bytes)");
  CHECK(near.limit() == 64_MiB);
  CHECK(near.options().evict == ps::eviction::fifo);
  CHECK(near.options().block == 1_MiB);
  CHECK(ps::memory_cache(1_GiB).options().block == 8_MiB);
}

TEST_CASE("storage/memory_cache: its blocks and their index stay within the limit") {
  CHECK(memory_blocks::slots_within(64_KiB, 64_KiB) == 0);
  CHECK(memory_blocks::slots_within(66_KiB, 64_KiB) == 1);
  for (const std::uint64_t block : std::initializer_list<std::uint64_t>{64_KiB, 1_MiB, 16_MiB})
    for (const std::uint64_t limit :
         std::initializer_list<std::uint64_t>{20_MiB, 100'000'001, 4_GiB, 3000_GiB}) {
      const std::uint64_t slots = memory_blocks::slots_within(limit, block);
      CHECK(slots * (block + 64 + 4) < limit);
      CHECK((slots + 2) * (block + 64 + 8) > limit);  // and use it
    }
}

TEST_CASE("storage/memory_cache: a block with a pin stays, and the others go in their order") {
  for (const auto evict : {ps::eviction::lru, ps::eviction::fifo}) {
    memory_blocks blocks(200_KiB, 64_KiB, evict);  // 3 of them
    std::atomic<std::uint32_t> hints[6]{};
    const auto name = [](std::uint64_t i) { return key{i, i * 7}; };
    const auto put = [&](std::uint64_t i) {
      const auto got = blocks.ask(name(i), hints[i]);
      REQUIRE(got.is == memory_blocks::answer::mine);
      *blocks.room(got) = static_cast<std::byte>(i);
      (void)blocks.publish(got);
      return got.evicted;
    };
    const auto is_there = [&](std::uint64_t i) {
      std::atomic<std::uint32_t> unknown{0};
      return blocks.has(name(i), unknown);
    };
    CHECK_FALSE(put(0));
    CHECK_FALSE(put(1));
    CHECK_FALSE(put(2));
    {
      const auto pinned = blocks.find(name(0), hints[0]);  // and used
      REQUIRE(pinned);
      CHECK(put(3));
      CHECK(put(4));
      CHECK(is_there(0));  // of either kind, while it is being read
      CHECK_FALSE(is_there(1));
      CHECK_FALSE(is_there(2));
      CHECK(std::to_integer<int>(*pinned.bytes()) == 0);
      CHECK_FALSE(blocks.find(name(1), hints[1]));
    }
    const auto hit = [&](std::uint64_t i) { CHECK(static_cast<bool>(blocks.find(name(i), hints[i]))); };
    hit(3);
    CHECK(put(5));
    CHECK_FALSE(is_there(0));  // now it is the one that came first, and was used longest ago
    hit(3);
    hit(5);
    CHECK(put(0));
    CHECK(is_there(3) == (evict == ps::eviction::lru));
    CHECK(is_there(4) == (evict == ps::eviction::fifo));

    // A fill that is given up leaves a free slot, and one that lasts too long is not waited for again.
    const auto failing = blocks.ask(name(1), hints[1]);
    CHECK(failing.evicted);
    CHECK(blocks.ask(name(1), hints[1]).is == memory_blocks::answer::other);
    const auto wait = [&](const wait_stops& stops, wait_stops::moment begun) {
      return blocks.wait(failing, std::chrono::steady_clock::now(), stops, begun);
    };
    wait_stops ended;
    const auto begun = ended.now();
    ended.stop();
    CHECK(wait(ended, begun));
    ended.stop_for_good();
    CHECK(wait(ended, ended.now()));
    const wait_stops none;
    CHECK_FALSE(wait(none, none.now()));
    CHECK(blocks.ask(name(1), hints[1]).is == memory_blocks::answer::nothing);
    CHECK(wait(none, none.now()));
    blocks.give_up(failing);
    CHECK(wait(none, none.now()));
    CHECK_FALSE(put(1));
    const auto one = blocks.ask(name(20), hints[2]), two = blocks.ask(name(21), hints[2]);
    const auto three = blocks.ask(name(22), hints[2]);
    CHECK(three.is == memory_blocks::answer::mine);
    CHECK(blocks.ask(name(23), hints[2]).is == memory_blocks::answer::nothing);
    for (const auto& each : {one, two, three}) blocks.give_up(each);
  }
}

}  // namespace memory_cache_test
