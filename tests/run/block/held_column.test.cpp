// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/batch_handle.hpp>

#include <penstock/core/record.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace held_column_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// A tensor of another library: a pointer, a context, and a function that releases it.
struct managed_tensor {
  const std::uint64_t* data = nullptr;
  std::size_t size = 0;
  void* context = nullptr;
  void (*deleter)(managed_tensor*) = nullptr;
};

template <class Held>
managed_tensor managed(Held held) {
  auto* const kept = new Held(std::move(held));
  return {kept->view().data(), kept->view().size(), kept,
          [](managed_tensor* t) { delete static_cast<Held*>(t->context); }};
}

}  // namespace

TEST_CASE("run/held_column: a column outlives batch, run and plan, in a tensor of another library") {
  std::vector<managed_tensor> tensors;
  {
    const auto plan = ps::generated(100, [](std::uint64_t i) { return 3 * i; }) | ps::batch(10) |
                      ps::prefetch(4) | ps::workers(2);
    auto run = plan.open();
    for (int i = 0; i < 3; ++i) {
      auto batch = run.next();
      REQUIRE(batch);
      tensors.push_back(managed(batch->hold()));
    }
  }
  for (std::size_t t = 0; t < 3; ++t) {
    REQUIRE(tensors[t].size == 10);
    for (std::size_t i = 0; i < 10; ++i) CHECK(tensors[t].data[i] == 3 * (10 * t + i));
  }
  std::jthread([&] {
    for (managed_tensor& t : tensors) t.deleter(&t);
  }).join();
}

TEST_CASE("run/held_column: it counts as a held batch, and its memory is returned") {
  const auto plan = ps::generated(4000, [](std::uint64_t i) { return i; }) | ps::batch(10) | ps::prefetch(3) |
                    ps::workers(1);
  auto run = plan.open();
  {
    std::vector<decltype(run.next().value->hold())> held;
    for (int i = 0; i < 4; ++i) held.push_back(run.next()->hold());
    const auto refused = run.next();
    CHECK_THAT(error_of([&] { std::rethrow_exception(refused.failure); }),
               contains("you hold 4 of 4 batches"));
    auto copy = held[0];
    held[0].reset();
    CHECK_FALSE(held[0]);
    CHECK(run.next().failure != nullptr);  // the copy still holds it
    copy.reset();
    auto next = run.next();
    REQUIRE(next);
    CHECK(next->values()[0] == 40);
    CHECK(held[3].view()[0] == 30);
  }
  std::uint64_t expected = 50;
  while (auto next = run.next()) {
    const auto column = next->hold();
    next->reset();
    CHECK(column.view()[0] == expected);
    expected += 10;
  }
  CHECK(expected == 4000);
}

TEST_CASE("run/held_column: several batches of a block, fields by name, and rows that were gathered") {
  using sample = ps::record<ps::field<"x", std::uint64_t>, ps::field<"y", std::vector<float>>>;
  const auto numbers = ps::generated(600, [](std::uint64_t i) {
    return sample(i, std::vector<float>(static_cast<std::size_t>(i % 3), 1.5f));
  });
  const auto check = [](const auto& plan) {
    auto run = plan.open();
    auto first = run.next();
    REQUIRE(first);
    const auto x = ps::hold<"x">(*first);
    const auto y = ps::hold<"y">(*first);
    const std::vector<std::uint64_t> expected(ps::get<"x">(*first).begin(), ps::get<"x">(*first).end());
    first->reset();
    for (int i = 0; i < 20; ++i) CHECK(run.next());
    CHECK(std::vector<std::uint64_t>(x.view().begin(), x.view().end()) == expected);
    CHECK(y.view().size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(y.view()[i].size() == expected[i] % 3);
      if (expected[i] % 3 != 0) CHECK(y.view()[i][0] == 1.5f);
    }
  };
  check(numbers | ps::shuffle(ps::seed(1)) | ps::batch(8, ps::ragged) | ps::workers(2));
  check(numbers | ps::filter([](const auto& r) { return ps::get<"x">(r) % 2 == 0; }) |
        ps::batch(8, ps::ragged) | ps::workers(2));
  // blocks of many batches
  auto many = (ps::from(first_ints(10'000)) | ps::batch(2) | ps::workers(2)).open();
  auto held = many.next()->hold();
  for (int i = 0; i < 4000; ++i) CHECK(many.next());
  CHECK(held.view()[1] == 1);
}

TEST_CASE("run/held_column: a column on a device stays there") {
  auto run = (ps::from(first_ints(1000)) | ps::batch(10) | ps::pin_and_copy(ps::simulated{}) | ps::workers(2))
                 .open();
  auto first = run.next();
  REQUIRE(first);
  const auto held = first->hold();
  CHECK(held.device_data() == first->device_data());
  first->reset();
  while (run.next()) {
  }
  int last = -1;
  std::memcpy(&last, static_cast<const int*>(held.device_data()) + 9, sizeof(last));
  CHECK(last == 9);
}

TEST_CASE("run/held_column: columns made by map_batch can be held too") {
  auto run = (ps::generated(100, [](std::uint64_t i) { return i; }) | ps::batch(10) |
              ps::map_batch([](auto& columns) {
                std::vector<float> made;
                for (const std::uint64_t x : columns.values()) made.push_back(static_cast<float>(x) / 2);
                return made;
              }) |
              ps::workers(2))
                 .open();
  auto first = run.next();
  REQUIRE(first);
  const auto held = first->hold();
  first->reset();
  while (run.next()) {
  }
  CHECK(held.view().size() == 10);
  CHECK(held.view()[9] == 4.5f);
}

}  // namespace held_column_test
