// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A program of its own: it replaces operator new and counts the calls of all threads.

#include <penstock/codec/identity.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/image/companions.hpp>
#include <penstock/image/flip.hpp>
#include <penstock/image/random_resized_crop.hpp>
#include <penstock/image/rotate.hpp>
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
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/map_fields.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"
#include "support/steady_test.hpp"
#include "support/test_image.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace ps = penstock;
using penstock_test::calls_of_new;
using penstock_test::check_steady;

std::atomic<std::uint64_t> penstock_test::calls_of_new{0};

namespace {

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

/// Arrays whose shape is known at run time, as expressions of both forms.
struct simple_picture {
  using unfinished = void;
  using value_type = float;
  std::uint64_t number = 0;
  [[nodiscard]] ps::extents shape() const { return ps::extents(4, 5, 3); }
  void write_to(float* into) const { std::fill_n(into, 60, static_cast<float>(number)); }
  [[nodiscard]] ps::tensor_view<const float> finish() const {
    static constexpr float zeros[60] = {};
    return {zeros, shape()};
  }
};
/// A picture whose size depends on its number.
struct uneven_picture {
  using unfinished = void;
  using value_type = float;
  std::uint64_t number = 0;
  [[nodiscard]] ps::extents shape() const { return ps::extents(1 + number % 5, 3 + number % 4, 3); }
  void write_to(const ps::destination<float>& into) const {
    into.fill_from([this] { return static_cast<float>(number); });
  }
  [[nodiscard]] ps::tensor_view<const float> finish() const {
    static constexpr float zeros[90] = {};
    return {zeros, shape()};
  }
};
struct placed_picture : simple_picture {
  void write_to(const ps::destination<float>& into) const {
    into.fill_from([this] { return static_cast<float>(number); });
  }
};

}  // namespace

TEST_CASE("steady/steady_state: numbers are evaluated, delivered and returned without an allocation") {
  const auto source = ps::generated(100, identity);
  check_steady(source | ps::batch(8), "plain");
  check_steady(source | ps::shuffle(ps::seed(3)) |
                   ps::map([](std::uint64_t x, ps::rng& r) { return x + r.below(9); }) | ps::batch(8),
               "shuffled");
  check_steady(source | ps::shuffle(ps::seed(3)) | ps::repeat(2) | ps::shard(1, 2) |
                   ps::batch(8, ps::tail::pad) | ps::prefetch(3),
               "repeated, sharded");
  // A windowed order makes its tables when an epoch begins; within an epoch it allocates nothing.
  for (const unsigned workers : {0u, 2u}) {
    auto run = (ps::generated(40'000, identity, {0, 10'000, 19'000, 40'000}) |
                ps::shuffle(ps::seed(3), ps::window(2), ps::lanes(2)) | ps::batch(8) | ps::workers(workers) |
                ps::prefetch(3))
                   .open();
    std::uint64_t before = 0;
    bool steady = false;
    for (auto&& b : run.epoch(0)) {
      if (b.step() % 350 != 100) continue;
      steady = steady || calls_of_new.load() == before;
      before = calls_of_new.load();
    }
    CHECK(steady);
  }
  // A lowered depth frees memory once, and allocates none again.
  for (const std::int64_t depth : {1, 2, 3}) {
    INFO("depth " << depth);
    auto run = (ps::generated(80'000, identity) | ps::batch(8) | ps::prefetch(6) | ps::workers(2)).open();
    run.adjust({.depth = depth});
    std::uint64_t before = 0;
    bool steady = false;
    decltype(run)::value_type held;
    for (int i = 1; i < 9900 && !steady; ++i) {
      auto next = run.next();
      held = std::move(*next);  // two are held for a moment
      if (i % 600 != 0) continue;
      steady = calls_of_new.load() == before;
      before = calls_of_new.load();
    }
    CHECK(steady);
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
  check_steady(source | ps::shuffle(ps::seed(3)) | bad::skip(5) | ps::batch(8), "skip");
  check_steady(source | ps::shuffle(ps::seed(3)) | bad::replace(5) | ps::batch(8), "replace");
  check_steady(
      source | ps::filter([](std::uint64_t x) { return x % 3 != 0; }) | bad::replace(5) | ps::batch(8),
      "replace behind a filter");
  const std::vector<std::vector<std::byte>> bytes(100, std::vector<std::byte>(1000, std::byte{7}));
  check_steady(ps::from(bytes) | ps::decode<ps::identity> | bad::skip(5) | ps::batch(8), "skip, bytes");
}

TEST_CASE("steady/steady_state: bytes, arrays and texts") {
  const std::vector<std::vector<std::byte>> bytes(100, std::vector<std::byte>(1000, std::byte{7}));
  check_steady(ps::from(bytes) | ps::shuffle(ps::seed(1)) | ps::decode<ps::identity> | ps::batch(8), "bytes");
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

TEST_CASE("steady/steady_state: columns that are pitched or have the channels first") {
  const auto arrays = [](auto kind) {
    return ps::generated(100, [=](std::uint64_t i) { return decltype(kind){i}; }) | ps::shuffle(ps::seed(1));
  };
  const auto every_way = [](const auto& source, const char* what) {
    check_steady(source | ps::batch(8, ps::pitched<64>), what);
    check_steady(source | ps::batch(8, ps::channels_first), what);
    check_steady(source | ps::filter([](const auto& view) { return view.shape()[0] == 4; }) |
                     ps::batch(8, ps::pitched<64>),
                 what);
  };
  every_way(arrays(simple_picture{}), "written to a pointer");
  every_way(arrays(placed_picture{}), "written to a destination");
}

TEST_CASE("steady/steady_state: images of unequal sizes") {
  const auto images =
      ps::generated(100, [](std::uint64_t i) { return uneven_picture{i}; }) | ps::shuffle(ps::seed(1));
  check_steady(images | ps::batch(8, ps::pad_to_largest), "padded to the largest");
  check_steady(images | ps::batch(8, ps::pad_to_largest_with<7>(ps::channels_first)) |
                   ps::pin_and_copy(ps::simulated{}),
               "padded to the largest, channels first, and copied");
}

TEST_CASE("steady/steady_state: an image with its mask and its boxes") {
  using photo = penstock_test::test_image<std::uint8_t, 3>;
  using mask = penstock_test::test_image<std::uint8_t, 1>;
  using sample =
      ps::record<ps::field<"image", photo>, ps::field<"mask", mask>, ps::field<"boxes", std::vector<float>>>;
  std::vector<sample> samples;
  for (std::uint32_t i = 0; i < 40; ++i)
    samples.emplace_back(photo({20 + i % 3, 18}, i), mask({20 + i % 3, 18}, i),
                         std::vector<float>(4 * (1 + i % 4), 5.0f));
  check_steady(ps::from(samples) | ps::shuffle(ps::seed(1)) |
                   ps::map<"image", ps::as_mask<"mask">, ps::as_boxes<"boxes">>(
                       ps::random_resized_crop(12), ps::horizontal_flip(), ps::rotate({-9, 9})) |
                   ps::batch(8, ps::collate<"boxes">(ps::ragged)),
               "an image with its mask and its boxes");
}

TEST_CASE("steady/steady_state: a forward source") {
  check_steady(ps::plan(engine_test::counting_source(100)) | ps::batch(8), "forward");
  check_steady(ps::plan(engine_test::counting_source(100)) | ps::shuffle_buffer(10) |
                   ps::filter([](std::uint64_t x) { return x % 2 == 0; }) | ps::batch(8),
               "forward, mixed and filtered");
}

TEST_CASE("steady/steady_state: work on whole batches") {
  const auto source = ps::generated(100, identity) | ps::shuffle(ps::seed(3));
  const auto noise = ps::map_batch([](auto& columns, ps::rng& random) {
    for (auto& x : columns.values()) x += random.below(9);
  });
  // the function returns a view, so it allocates nothing either
  const auto again = ps::map_batch([](auto& columns) { return columns.values(); });
  check_steady(source | ps::batch(8) | noise | noise, "in place");
  check_steady(source | ps::batch(8) | again | noise, "new columns");
  check_steady(source | ps::batch(8) | noise | again | ps::pin_and_copy(ps::simulated{}), "that are copied");
  check_steady(source | ps::filter([](std::uint64_t x) { return x % 3 != 0; }) | ps::batch(8) | noise | again,
               "behind a filter");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 100; ++i) texts.emplace_back(1 + i % 50, 'x');
  const auto upper = ps::map_batch([](auto& columns) {
    for (char& c : columns.values().values()) c = 'X';
  });
  check_steady(ps::from(texts) | ps::decode<ps::text> | ps::batch(8, ps::ragged) | upper, "texts");
}
