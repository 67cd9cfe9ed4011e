// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The memory of a run with a GPU: what is pinned, how often, and where; with a fake runtime that needs no
// GPU.

#include <penstock/device/cuda.hpp>

#include "support/catch.hpp"
#include "support/cuda_test.hpp"
#include "support/made_up_nodes.hpp"
#include "support/thread_facts.hpp"

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace cuda_memory_test {

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::fake_cuda;
using penstock_test::fresh_fake;
using penstock_test::numbers;
using ps::detail::pinned_arena;

namespace {

constexpr std::size_t page = pinned_arena::page, huge = pinned_arena::huge_page;

std::uint64_t times_pinned() {
  auto& count = fake_cuda::get().count;
  return count["cudaHostRegister"] + count["cudaHostAlloc"];
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const ps::error& e) {
    return e.what();
  }
  return "";
}

/// Records of an image and a label, both of a size that their types give.
using image = std::array<std::uint8_t, 3000>;
auto pictures(std::uint64_t count) {
  return ps::generated(count, [](std::uint64_t i) {
    image one{};
    one[0] = static_cast<std::uint8_t>(i);
    return ps::record<ps::field<"image", image>, ps::field<"label", std::uint64_t>>(one, i);
  });
}

/// A GPU on a machine with made-up nodes.
struct gpu_of {
  using session = ps::cuda::session;
  [[nodiscard]] session connect() const { return session(given, sys); }
  [[nodiscard]] std::string describe() const { return given.describe(); }

  ps::cuda given{};
  std::string sys;
};

}  // namespace

TEST_CASE("device/cuda_memory: what is returned is used again, and pieces never run into each other") {
  const fresh_fake fake;
  pinned_arena arena(0, {});
  struct part {
    std::byte* memory;
    std::size_t size;
  };
  std::vector<part> parts;
  std::uint64_t state = 1;
  const auto draw = [&state](std::uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 3000; ++round) {
    if (parts.size() < 20 && draw(2) == 0) {
      const std::size_t size = 1 + draw(draw(8) == 0 ? 5 * huge : 20 * page);
      auto* const memory = static_cast<std::byte*>(arena.allocate(size));
      REQUIRE(reinterpret_cast<std::uintptr_t>(memory) % page == 0);
      REQUIRE(fake.fake.is_pinned(memory, size));
      for (const part& other : parts)
        REQUIRE((memory + size <= other.memory || other.memory + other.size <= memory));
      memory[0] = memory[size - 1] = std::byte{1};
      parts.push_back({memory, size});
    } else if (!parts.empty()) {
      const std::size_t which = draw(parts.size());
      arena.deallocate(parts[which].memory, parts[which].size);
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  CHECK(arena.pinned() == fake.fake.registered_bytes());
  for (const part& one : parts) arena.deallocate(one.memory, one.size);
  const std::uint64_t before = times_pinned();
  for (int i = 0; i < 10; ++i) arena.deallocate(arena.allocate(page), page);
  CHECK(times_pinned() == before);
}

TEST_CASE("device/cuda_memory: one piece holds what is expected, within the bound") {
  const fresh_fake fake;
  {
    pinned_arena arena(0, {});
    std::vector<void*> all{arena.allocate(10 * page), arena.allocate(1)};
    CHECK(arena.pinned() == 13 * page);  // the second piece is a fourth of the first
    arena.expect(3);
    for (int i = 0; i < 3; ++i) {
      all.push_back(arena.allocate(10 * page));
      all.push_back(arena.allocate(1));
    }
    CHECK(times_pinned() == 3);
    CHECK(arena.pinned() == 13 * page + 33 * page);
    arena.expect(100);
    arena.bound(50 * page);
    all.push_back(arena.allocate(3 * page));
    CHECK(arena.pinned() == 50 * page);
    all.push_back(arena.allocate(10 * page));  // what is needed is pinned in any case
    CHECK(arena.pinned() == 60 * page);
  }
  CHECK(fake.fake.registered_bytes() == 0);
}

TEST_CASE("device/cuda_memory: pieces that are free and too small make place for a larger one") {
  const fresh_fake fake;
  pinned_arena arena(0, {});
  for (std::size_t size = page; size < 3 * huge; size += 7 * page) {
    void* const memory = arena.allocate(size);
    arena.deallocate(memory, size);
    CHECK(fake.fake.registered.size() == 1);
  }
  CHECK(arena.pinned() <= 4 * huge);
}

TEST_CASE("device/cuda_memory: whoever allocates, no device but the run's is made current") {
  const fresh_fake fake;
  pinned_arena arena(1, {});
  for (const std::size_t size : {page, 3 * page, 9 * page}) {
    void* const memory = arena.allocate(size);
    arena.deallocate(memory, size);
  }
  CHECK(fake.fake.count["cudaHostUnregister"] == 2);
  CHECK(fake.fake.chosen == std::set<int>{1});
  CHECK(fake_cuda::current() == 0);
}

TEST_CASE("device/cuda_memory: large pieces begin huge pages") {
  const fresh_fake fake;
  pinned_arena arena(1, {});
  void* const memory = arena.allocate(5 * huge + 1);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % huge == 0);
  CHECK(arena.pinned() == 6 * huge);
  CHECK(fake_cuda::current() == 0);
}

TEST_CASE("device/cuda_memory: where CUDA cannot register memory, it allocates it") {
  const fresh_fake fake;
  for (const cudaError_t code : {cudaErrorNotSupported, cudaErrorNotPermitted}) {
    fake.fake.on_register = code;
    pinned_arena arena(0, {});
    void* const memory = arena.allocate(100);
    CHECK(fake.fake.host_memory.contains(memory));
    CHECK(fake.fake.registered.empty());
  }
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("device/cuda_memory: without room for more than is needed, what is needed is pinned") {
  const fresh_fake fake;
  pinned_arena arena(0, {});
  void* const first = arena.allocate(10 * page);
  arena.expect(50);
  fake.fake.fail_with = cudaErrorMemoryAllocation;
  fake.fake.calls = 0;
  fake.fake.fail_at = 1;
  void* const second = arena.allocate(10 * page);
  CHECK(arena.pinned() == 20 * page);
  CHECK(first != second);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("device/cuda_memory: out of pinned memory is one error with the remedies, and nothing stays") {
  const fresh_fake fake;
  fake.fake.on_register = cudaErrorMemoryAllocation;
  const auto plan = pictures(64) | ps::workers(1) | ps::batch(16) | ps::cuda::pin_and_copy;
  const std::string what = message_of([&] {
    for (auto&& b : plan) CHECK(b.size() == 0);
  });
  CHECK_THAT(what, contains("pinning 49152 bytes of host memory for batches failed with "
                            "cudaErrorMemoryAllocation") &&
                       contains("prefetch(n)") && contains("memory(bytes)") && contains("ulimit -l"));
  CHECK(fake.fake.live() == 0);
  fake.fake.on_register = cudaSuccess;
  std::size_t seen = 0;
  for (auto&& b : plan) seen += b.size();
  CHECK(seen == 64);
}

TEST_CASE("device/cuda_memory: a run pins a few large pieces once, and no copy reads anything else") {
  const fresh_fake fake;
  for (const unsigned threads : {0u, 1u, 3u}) {
    fake.fake.count.clear();
    auto run = (pictures(1600) | ps::workers(threads) | ps::batch(16) | ps::cuda::pin_and_copy).open();
    std::uint64_t settled = 0;
    int batches = 0;
    for (auto epoch : run.epochs(2)) {
      for (auto&& b : epoch) {
        CHECK(ps::get<"label">(b)[0] % 16 == 0);
        if (++batches == 3)
          settled = times_pinned();  // without workers, each of the first three makes a block
      }
    }
    CHECK(settled <= 3);  // two columns of the first batch, and all others
    CHECK(times_pinned() == settled);
    CHECK(fake.fake.count["cudaMemcpyAsync"] == 2 * 100 * 2);
  }
  CHECK(fake.fake.pageable == 0);
}

TEST_CASE("device/cuda_memory: batches of unequal sizes settle, and are not pinned anew") {
  const fresh_fake fake;
  std::vector<std::vector<int>> rows;
  for (int i = 0; i < 200; ++i) rows.push_back(numbers(1 + i % 37 * 50));
  // Without workers, three blocks take turns, and each has had every batch after three epochs.
  auto run = (ps::from(rows) | ps::workers(0) | ps::batch(4, ps::ragged) | ps::cuda::pin_and_copy).open();
  std::uint64_t settled = 0, epochs = 0;
  for (auto epoch : run.epochs(6)) {
    if (epochs++ == 3) settled = times_pinned();
    for (auto&& b : epoch) CHECK(b.size() == 4);
  }
  CHECK(settled < 12);
  CHECK(times_pinned() == settled);
  CHECK(fake.fake.pageable == 0);
}

TEST_CASE("device/cuda_memory: memory(bytes) bounds what is pinned") {
  const fresh_fake fake;
  constexpr std::size_t batch_bytes = 16 * (3000 + 8), maximum = 5 * 16 * page;
  for (const unsigned threads : {0u, 2u}) {
    auto run = (pictures(1600) | ps::workers(threads) | ps::batch(16) | ps::memory(maximum) |
                ps::prefetch(50) | ps::cuda::pin_and_copy)
                   .open();
    std::size_t pinned = 0;
    for (auto&& b : run) {
      CHECK(b.size() == 16);
      pinned = std::max(pinned, fake.fake.registered_bytes());
    }
    CHECK(pinned > 2 * batch_bytes);
    CHECK(pinned <= maximum);
  }
}

TEST_CASE("device/cuda_memory: a batch that outlives its run keeps its memory") {
  const fresh_fake fake;
  const auto kept = [&] {
    auto run = (ps::from({1, 2, 3}) | ps::workers(1) | ps::batch(3) | ps::cuda::pin_and_copy).open();
    return std::move(*run.begin());
  }();
  CHECK(fake.fake.is_pinned(kept.values().data(), 3 * sizeof(int)));
  CHECK(kept.values()[2] == 3);
}

TEST_CASE("device/cuda_memory: slots and workers are near the device") {
  const fresh_fake fake;
  const ps::processor_set mine = penstock_test::thread_facts::allowed();
  unsigned first = 0;
  while (!mine.contains(first)) ++first;
  const std::string one = std::to_string(first);
  const penstock_test::made_up_nodes nodes({"1023", one});
  nodes.device("0000:3b:00.0", "1\n").device("0000:af:00.0", "0\n");

  const auto where = [&](const ps::cuda& given, const auto& workers) {
    penstock_test::thread_notes notes;
    auto run = (ps::generated(100,
                              [&notes](std::uint64_t i) {
                                notes.look();
                                return i;
                              }) |
                workers | ps::batch(10) | ps::pin_and_copy(gpu_of{given, nodes.sys()}))
                   .open();
    for (auto&& b : run) CHECK(b.size() == 10);
    CHECK(penstock_test::thread_facts::allowed() == mine);
    ps::processor_set used;
    for (const auto& facts : notes.all())
      for (unsigned i = 0; i < ps::processor_set::max_processors; ++i)
        if (facts.processors.contains(i) && !used.contains(i)) used.add(i);
    return used;
  };
  const ps::processor_set near{first};
  if (mine.size() == 1) {
    WARN("not all looked at: this thread may use one processor only");
    return;
  }
  CHECK(where({}, ps::workers(1)) == near);
  CHECK(where({}, ps::workers(2)) == mine);  // more than there are processors
  CHECK(where({.numa = ps::cuda_numa::always}, ps::workers(2)) == near);
  CHECK(where({.numa = ps::cuda_numa::off}, ps::workers(1)) == mine);
  CHECK(where({}, ps::workers(1, {.processors = mine})) == mine);
  CHECK(where({.numa = ps::cuda_numa::always}, ps::workers(0)) == mine);
  // of the node of the other device, this process may use none
  CHECK(where({.device = 1}, ps::workers(1)) == mine);
}

TEST_CASE("device/cuda_memory: a session says its node, and has none on a machine with one") {
  const fresh_fake fake;
  const penstock_test::made_up_nodes two({"0-3", "4-7"}), one({"0-7"});
  two.device("0000:3b:00.0", "1\n").device("0000:af:00.0", "0\n");
  one.device("0000:3b:00.0", "0\n");
  const auto near = [](const ps::cuda& given, const penstock_test::made_up_nodes& nodes) {
    const ps::cuda::session session(given, nodes.sys());
    return session.near().processors.describe();
  };
  CHECK(near({}, two) == "4-7");
  CHECK(near({.device = 1}, two) == "0-3");
  CHECK(near({.device = 1, .numa = ps::cuda_numa::off}, two).empty());
  CHECK(near({}, one).empty());
}

}  // namespace cuda_memory_test
