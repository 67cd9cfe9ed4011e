// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/longest_first.hpp>

#include <penstock/inspection/describe.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/pack.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/bad_samples.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/disturbed_run.hpp"
#include "support/packed_texts.hpp"
#include "support/resume_test.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace longest_first_test {

namespace ps = penstock;
using namespace bad_samples_test;
using namespace std::chrono_literals;
using penstock_test::contains;
using penstock_test::error_of;

namespace {

/// One in seven takes far longer.
constexpr auto cost = [](std::uint64_t i) -> std::uint64_t { return ps::mix64(i) % 7 == 0 ? 100 : 1; };
const auto list_of = [](std::uint64_t x) { return std::vector<std::uint64_t>(1 + x % 3, x); };
/// Takes as long as it costs, and draws random numbers.
const auto slowly = [](std::uint64_t x, ps::rng& random) {
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(cost(x));
       std::chrono::steady_clock::now() < end;) {
  }
  return x * 1000 + random.below(1000);
};

/// A plan shows the same with and without `longest_first`: batches, origins, states, bad samples, errors.
/// What it is to show is found out by its consumer alone.
template <class Plan>
void check_same(const Plan& plan) {
  const seen wanted = look(plan | ps::workers(0), 3);
  for (const unsigned workers : {1u, 2u, 5u})
    for (const std::uint64_t depth : {1u, 3u, 9u}) {
      INFO(workers << " workers, depth " << depth);
      const auto with = plan | ps::prefetch(depth) | ps::workers(workers);
      REQUIRE((look(with | ps::longest_first(cost), 3) == wanted));
      REQUIRE((look(with | ps::longest_first, 3) == wanted));
    }
}

}  // namespace

TEST_CASE("stage/longest_first: batches, states, bad samples and errors stay what they are") {
  const auto source = ps::generated(230, engine_test::identity) | ps::shuffle(ps::seed(5));
  check_same(source | ps::map(slowly) | ps::batch(7, ps::tail::pad));
  check_same(source | ps::shard(1, 3) | ps::map(slowly) | ps::map(list_of) | ps::batch(16, ps::ragged));
  check_same(source | ps::map(list_of) | ps::batch_by(cost, 130, ps::pad_to_longest));
  check_same(ps::generated(90, engine_test::identity) | ps::shuffle_buffer(11, ps::seed(3)) |
             ps::map(slowly) | ps::batch(6));
  check_same(broken_source() | ps::map(slowly) | ps::bad_samples::skip(20) | ps::batch(6));
  check_same(broken_source() | ps::shuffle(ps::seed(1)) | ps::map(list_of) | ps::bad_samples::replace(20) |
             ps::batch(6, ps::ragged));
  // an epoch ends at its first error, by position
  check_same(broken_source(600) | ps::shuffle(ps::seed(2)) | ps::map(slowly) | ps::batch(150));
}

TEST_CASE("stage/longest_first: packed rows and batches that functions change stay what they are") {
  const auto packed = packed_texts::texts(300) | ps::shuffle(ps::seed(5)) |
                      ps::pack<"tokens">(&packed_texts::length_of, 64) | ps::batch(8) |
                      ps::map_batch([](auto& columns) {
                        for (std::uint64_t& label : ps::get<"label">(columns)) label = label * 3 + 1;
                      });
  const auto wanted = packed_texts::see_epoch(packed | ps::workers(0), 1);
  const auto length = [](std::uint64_t i) { return packed_texts::length_of(i) / 50 * 100 + 1; };
  for (const unsigned workers : {2u, 4u})
    CHECK((packed_texts::see_epoch(
               packed | ps::prefetch(6) | ps::workers(workers) | ps::longest_first(length), 1) == wanted));
}

TEST_CASE("stage/longest_first: a run resumes anywhere, on other ranks too, and may be adjusted") {
  const auto samples =
      ps::generated(60, engine_test::identity) | ps::shuffle(ps::seed(4)) | ps::map(engine_test::noisy);
  const auto plan = samples | ps::batch(5) | ps::prefetch(4);
  engine_test::check_all_stops(plan | ps::workers(3) | ps::longest_first(cost), plan | ps::workers(0), 2);
  engine_test::check_all_stops(plan | ps::workers(0), plan | ps::workers(3) | ps::longest_first(cost), 2, 3);
  engine_test::check_elastic(
      [&](std::uint64_t rank, std::uint64_t world, std::uint64_t each) {
        return samples | ps::shard(rank, world) | ps::batch(each) | ps::longest_first(cost);
      },
      12, 2, 3, 2);
  const auto wanted = engine_test::read_plan(plan | ps::workers(0), 40);
  auto run = (plan | ps::workers(4) | ps::longest_first(cost)).open();
  std::size_t epoch = 0, batch = 0;
  for (auto one : run.epochs(40)) {
    batch = 0;
    for (auto&& b : one) {
      REQUIRE(engine_test::values_of(b) == wanted[epoch][batch++]);
      run.adjust({.workers = static_cast<std::int64_t>((epoch + batch) % 4 + 1),
                  .depth = static_cast<std::int64_t>(batch % 4 + 1)});
      if (epoch % 8 == 7 && batch == 5) break;  // what was opened is dropped
    }
    ++epoch;
  }
  CHECK(epoch == 40);
}

TEST_CASE("stage/longest_first: a run that is stopped while long samples are made ends") {
  for (int i = 0; i < 20; ++i) {
    auto run = (ps::generated(5000, engine_test::identity) | ps::map(slowly) | ps::batch(16) |
                ps::workers(3) | ps::longest_first(cost))
                   .open();
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 100));
      run.request_stop();
    });
    while (run.next()) {
    }
    other.join();
    CHECK(run.stopped());
  }
}

TEST_CASE("stage/longest_first: a long sample is begun before its turn") {
  struct gate {
    std::atomic<int> waiting{0};
    std::atomic<bool> open{false}, begun{false};
    std::atomic<int> too_late{0};
  } at;
  const auto until = [](const std::atomic<bool>& flag) {
    for (const auto end = std::chrono::steady_clock::now() + 30s;
         !flag && std::chrono::steady_clock::now() < end;)
      std::this_thread::yield();
    return flag.load();
  };
  // The two workers are held at their first samples until all batches are in flight. Sample 61 stands in the
  // last of eight, and nobody goes on with the fifth before it is begun: in their order, both would wait for
  // ever.
  const auto sample = [&](std::uint64_t i) {
    if (at.waiting.fetch_add(1) < 2) (void)until(at.open);
    if (i == 61) at.begun = true;
    if (i >= 32 && i < 40 && at.too_late == 0 && !until(at.begun)) ++at.too_late;
    return std::vector<std::uint64_t>(1, i);
  };
  const auto dear = [](std::uint64_t i) { return std::uint64_t{i == 61 ? 100u : 1u}; };
  auto run =
      (ps::generated(64, sample) | ps::batch(8) | ps::prefetch(7) | ps::workers(2) | ps::longest_first(dear))
          .open();
  while (at.waiting < 2) std::this_thread::yield();
  at.open = true;
  std::uint64_t next = 0;
  for (auto&& b : run)
    for (const auto& value : b.values()) CHECK(value[0] == next++);
  CHECK(next == 64);
  CHECK(at.too_late == 0);
}

TEST_CASE("stage/longest_first: bytes of samples in shards, fetched from a storage with latency") {
  const auto shards = penstock_test::disturbed_shards();
  const ps::simulated_storage far(shards, {.latency = 200us, .max_in_flight = 16});
  const auto plan = [](const auto& where) {
    return ps::webdataset(where) | ps::shuffle(ps::seed(7)) | ps::fields<"txt"> | ps::batch(8, ps::ragged) |
           ps::prefetch(8);
  };
  const auto texts = [](auto&& loader) {
    std::string all;
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
      for (auto&& b : loader.epoch(epoch))
        for (std::size_t i = 0; i < b.valid_size(); ++i) {
          const auto text = ps::get<"txt">(b)[i];
          all.append(reinterpret_cast<const char*>(text.data()), text.size()).append("\n");
        }
    return all;
  };
  const std::string wanted = texts(plan(shards) | ps::workers(0));
  CHECK((texts(plan(shards) | ps::workers(2) | ps::longest_first(ps::by_bytes)) == wanted));
  CHECK((texts(plan(far) | ps::workers(3) | ps::longest_first(ps::by_bytes)) == wanted));
  CHECK((texts(plan(far) | ps::workers(2) | ps::longest_first) == wanted));
}

TEST_CASE("stage/longest_first: costs that fail or belong to other samples") {
  const auto source = ps::generated(50, engine_test::identity);
  const auto throws = [](std::uint64_t i) -> std::uint64_t {
    if (i % 5 == 0) throw std::runtime_error("no cost");
    return i % 9 == 0 ? 50 : 1;
  };
  CHECK(engine_test::read_plan(source | ps::batch(8) | ps::workers(2) | ps::longest_first(throws), 1) ==
        engine_test::read_plan(source | ps::batch(8) | ps::workers(0), 1));
  const auto few = source | ps::batch(8) | ps::longest_first(ps::sample_list(std::vector<std::uint32_t>(49)));
  CHECK_THAT(error_of([&] { (void)few.open(); }), contains("49") && contains("50"));
  const auto unknown = source | ps::batch(8) | ps::longest_first(ps::by_bytes);
  CHECK_THAT(error_of([&] { (void)unknown.open(); }), contains("does not know how many bytes a sample has"));
}

TEST_CASE("stage/longest_first: keeps all guarantees, says what it does, and allocates nothing per sample") {
  const auto source =
      ps::generated(4000, engine_test::identity) | ps::map(list_of) | ps::batch(50, ps::ragged);
  const auto plan = source | ps::workers(2) | ps::longest_first(cost);
  static_assert(ps::elastic<decltype(plan)> && ps::lockstep<decltype(plan)> && ps::resumable<decltype(plan)>);
  CHECK_THAT(ps::describe(plan), contains("longest_first"));
  CHECK(ps::longest_first.describe() == "longest_first(learned)");
  CHECK(ps::longest_first(ps::by_bytes).describe() == "longest_first(by bytes)");
  CHECK(ps::sequence_fingerprint(plan) == ps::sequence_fingerprint(source));
  auto run = plan.open();
  (void)run.epochs(3);
  for (int i = 0; i < 80; ++i) CHECK(run.next());
  CHECK(penstock_test::allocations_of([&] {
          for (int i = 0; i < 80; ++i) (void)run.next();
        }) < 50);
}

}  // namespace longest_first_test
