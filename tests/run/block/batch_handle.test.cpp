// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/batch_handle.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/prefetch.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace batch_handle_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("run/batch_handle: a batch may outlive its run and be dropped in another thread") {
  using run_type = decltype((ps::from(first_ints(100)) | ps::batch(10) | ps::workers(2)).open());
  std::optional<run_type::value_type> kept;
  {
    auto run = (ps::from(first_ints(100)) | ps::batch(10) | ps::workers(2)).open();
    auto first = run.next();
    auto second = run.next();
    kept = std::move(*second);
  }
  CHECK(kept->values()[0] == 10);
  CHECK(kept->step() == 1);
  std::jthread([batch = std::move(*kept)]() mutable { batch.reset(); }).join();
}

TEST_CASE(
    "run/batch_handle: requesting another batch while holding all throws immediately and does no harm") {
  auto run = (ps::from(first_ints(100)) | ps::batch(10) | ps::workers(1) | ps::prefetch(3)).open();
  std::vector<decltype(run)::value_type> held;
  for (int i = 0; i < 4; ++i) {
    auto next = run.next();
    REQUIRE(next);
    held.push_back(std::move(*next));
  }
  auto refused = run.next();
  CHECK_FALSE(refused);
  CHECK_THAT(error_of([&] { std::rethrow_exception(refused.failure); }), contains("you hold 4 of 4 batches"));
  held.erase(held.begin() + 1);
  auto next = run.next();
  REQUIRE(next);
  CHECK(next->values()[0] == 40);
  CHECK(held[1].values()[0] == 20);
}

TEST_CASE("run/batch_handle: positions, keys, epoch and step") {
  auto run = (ps::from(first_ints(10)) | ps::shuffle(ps::seed(2)) | ps::batch(4)).open();
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch) {
      CHECK(b.epoch() == epoch.number());
      const auto at = b.positions();
      const auto keys = b.keys();
      REQUIRE(at.size() == b.size());
      for (std::size_t i = 0; i < b.size(); ++i) {
        CHECK(at[i] == ps::position{epoch.number(), b.step() * 4 + i});
        CHECK(keys[i] == std::to_string(b.values()[i]));
      }
    }
}

TEST_CASE("run/batch_handle: a batch of records binds to its fields in order") {
  using sample = ps::record<ps::field<"pair", std::array<float, 2>>, ps::field<"label", int>>;
  const auto plan = ps::generated(8,
                                  [](std::uint64_t i) {
                                    const auto x = static_cast<float>(i);
                                    return sample(std::array<float, 2>{x, -x}, static_cast<int>(i));
                                  }) |
                    ps::batch(4);
  using batch = decltype(plan.open())::value_type;
  STATIC_REQUIRE(std::tuple_size_v<batch> == 2);
  STATIC_REQUIRE(std::is_same_v<std::tuple_element_t<0, batch>, ps::tensor_view<float>>);
  STATIC_REQUIRE(std::is_same_v<std::tuple_element_t<1, batch>, std::span<int>>);
  STATIC_REQUIRE(std::is_same_v<std::tuple_element_t<0, const batch>, ps::tensor_view<const float>>);
  int sum = 0;
  for (auto& [pairs, labels] : plan)
    for (std::size_t i = 0; i < labels.size(); ++i) {
      CHECK(pairs(i, 1) == -pairs(i, 0));
      CHECK(static_cast<int>(pairs[i][0]) == labels[i]);
      sum += labels[i];
    }
  CHECK(sum == 28);
  auto run = plan.open();
  auto next = run.next();
  auto& [pairs, labels] = *next;
  pairs(1, 0) = 50;
  labels[2] = 70;
  const auto& reads = *next;
  const auto& [same, numbers] = reads;
  STATIC_REQUIRE(std::is_same_v<decltype(numbers), std::span<const int>>);
  CHECK(same(1, 0) == 50);
  CHECK(numbers[2] == 70);

  STATIC_REQUIRE(!std::is_copy_constructible_v<batch> && !std::copyable<batch> && std::movable<batch>);
  auto [own_pairs, own_labels] = std::move(*next);
  CHECK(own_pairs(1, 0) == 50);
  CHECK(own_labels[2] == 70);
}

TEST_CASE("run/batch_handle: the views of a non-const batch are writable") {
  auto run = (ps::from(first_ints(20)) | ps::batch(5)).open();
  auto batch = run.next();
  REQUIRE(batch);
  for (int& x : *batch) x += 100;
  STATIC_REQUIRE(std::is_same_v<decltype(batch->values()), std::span<int>>);
  STATIC_REQUIRE(std::is_same_v<decltype(std::as_const(*batch).values()), std::span<const int>>);
  CHECK(std::as_const(*batch).values()[4] == 104);
  CHECK(*std::as_const(*batch).begin() == 100);

  const std::vector<std::string> texts{"a", "", "bcd"};
  for (auto& b : ps::from(texts) | ps::batch(3, ps::ragged)) {
    for (const std::span<char> text : b)
      for (char& c : text) c = static_cast<char>(c - 'a' + 'A');
    const ps::ragged_view<char> reads = b.values();
    CHECK(std::string(reads.values().begin(), reads.values().end()) == "ABCD");
    CHECK(std::as_const(b).values()[2].size() == 3);
  }
}

TEST_CASE("run/batch_handle: columns made by map_batch are writable too") {
  auto plan = ps::from(first_ints(6)) | ps::batch(3) | ps::map_batch([](auto& b) {
                return std::vector<double>(b.values().begin(), b.values().end());
              });
  for (auto& b : plan) {
    b.values()[0] += 0.5;
    CHECK(std::as_const(b).values()[0] == static_cast<double>(3 * b.step()) + 0.5);
  }
}

}  // namespace batch_handle_test
