// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A program of its own: it replaces operator new and counts the calls of all threads.

#include <penstock/codec/identity.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

std::atomic<std::uint64_t> calls_of_new{0};

void* counted(std::size_t size, std::size_t alignment) {
  calls_of_new.fetch_add(1, std::memory_order_relaxed);
  void* const memory = alignment <= alignof(std::max_align_t)
                           ? std::malloc(size == 0 ? 1 : size)
                           : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) { return counted(size, 1); }
[[gnu::noinline]] void* operator new[](std::size_t size) { return counted(size, 1); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  calls_of_new.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace {

constexpr auto identity = [](std::uint64_t i) { return i; };

/// The allocations of all threads while the consumer takes batches of a run that has given some already. The
/// plan's epochs are short, so that their ends are among them; there are enough of them before for each block
/// to have seen every batch.
template <class Plan>
void check_steady(const Plan& plan, const char* name) {
  const penstock_test::deadline guard(name);
  for (const unsigned workers : {0u, 1u, 3u}) {
    INFO(name << " with " << workers << " workers");
    auto run = (plan | ps::workers(workers)).open();
    std::uint64_t seen = 0, before = 0, after = 0;
    for (auto epoch : run.epochs(80)) {
      for (auto&& b : epoch) {
        seen += b.valid_size();
        (void)b.values();
      }
      if (epoch.number() == 59) before = calls_of_new.load();
    }
    after = calls_of_new.load();
    CHECK(seen > 0);
    CHECK(after - before == 0);
  }
}

}  // namespace

TEST_CASE("steady/steady_state: numbers are evaluated, handed on and given back without an allocation") {
  const auto source = ps::generated(100, identity);
  check_steady(source | ps::batch(8), "plain");
  check_steady(source | ps::shuffle(3) | ps::map([](std::uint64_t x, ps::rng& r) { return x + r.below(9); }) |
                   ps::batch(8),
               "shuffled");
  check_steady(source | ps::shuffle(3) | ps::repeat(2) | ps::shard(1, 2) | ps::batch(8, ps::tail::pad) |
                   ps::prefetch(3),
               "repeated, sharded");
  // A windowed order makes its tables when an epoch begins; within one it allocates nothing.
  for (const unsigned workers : {0u, 2u}) {
    auto run =
        (ps::generated(4000, identity, {0, 1000, 1900, 4000}) | ps::shuffle(3, ps::window(2), ps::lanes(2)) |
         ps::batch(8) | ps::workers(workers) | ps::prefetch(3))
            .open();
    std::uint64_t before = 0, after = 0;
    for (auto&& b : run.epoch(0)) {
      if (b.step() == 100) before = calls_of_new.load();
      if (b.step() == 450) after = calls_of_new.load();
    }
    CHECK(after - before == 0);
  }
  check_steady(source | ps::shuffle_buffer(20) | ps::batch(8), "shuffle_buffer");
  check_steady(source | ps::filter([](std::uint64_t x) { return x % 3 != 0; }) | ps::batch(8), "filter");
  check_steady(source | ps::shuffle_buffer(20) | ps::filter([](std::uint64_t x) { return x % 3 != 0; }) |
                   ps::batch(8) | ps::steps(20),
               "filter and steps");
}

TEST_CASE("steady/steady_state: a policy for bad samples costs nothing as long as there are none") {
  const auto source = ps::generated(100, identity);
  namespace bad = ps::bad_samples;
  check_steady(source | ps::shuffle(3) | bad::skip(5) | ps::batch(8), "skip");
  check_steady(source | ps::shuffle(3) | bad::replace(5) | ps::batch(8), "replace");
  check_steady(
      source | ps::filter([](std::uint64_t x) { return x % 3 != 0; }) | bad::replace(5) | ps::batch(8),
      "replace behind a filter");
  const std::vector<std::vector<std::byte>> bytes(100, std::vector<std::byte>(1000, std::byte{7}));
  check_steady(ps::from(bytes) | ps::decode<ps::identity> | bad::skip(5) | ps::batch(8), "skip, bytes");
}

TEST_CASE("steady/steady_state: bytes, arrays and texts") {
  const std::vector<std::vector<std::byte>> bytes(100, std::vector<std::byte>(1000, std::byte{7}));
  check_steady(ps::from(bytes) | ps::shuffle(1) | ps::decode<ps::identity> | ps::batch(8), "bytes");
  check_steady(ps::from(bytes) | ps::decode<ps::identity> | ps::batch(8) | ps::pin_and_copy(ps::simulated{}),
               "bytes that are copied");
  check_steady(ps::from(bytes) | ps::filter([](const auto& b) { return !b.empty(); }) | ps::batch(8),
               "bytes behind a filter");
  check_steady(ps::from(bytes) | ps::unbatch | ps::batch(600), "bytes taken apart");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 100; ++i) texts.emplace_back(1 + i % 50, 'x');
  check_steady(ps::from(texts) | ps::decode<ps::text> | ps::batch(8, ps::ragged), "texts");
  check_steady(ps::from(texts) | ps::decode<ps::text> | ps::batch(8, ps::pad_to_longest),
               "texts that are padded");
  check_steady(ps::from(texts) | ps::decode<ps::text> | ps::filter([](std::string_view t) {
                 return t.size() % 2 == 0;
               }) | ps::batch(8, ps::ragged),
               "texts behind a filter");
}

TEST_CASE("steady/steady_state: a forward source") {
  check_steady(ps::plan(engine_test::counting_source(100)) | ps::batch(8), "forward");
  check_steady(ps::plan(engine_test::counting_source(100)) | ps::shuffle_buffer(10) |
                   ps::filter([](std::uint64_t x) { return x % 2 == 0; }) | ps::batch(8),
               "forward, mixed and filtered");
}
