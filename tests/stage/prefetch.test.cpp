// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/prefetch.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/options.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <atomic>
#include <cstdint>

namespace ps = penstock;
using namespace penstock_test;
using namespace penstock::literals;

TEST_CASE(
    "stage/prefetch: after batch it is the number of batches made ahead, without changing the sequence") {
  const auto plan = ps::from(first_ints(300)) | ps::map([](int x) { return x; }) | ps::batch(4);
  const auto plain = values_of(plan);
  for (const std::uint64_t depth : {1u, 2u, 5u, 40u})
    CHECK(values_of(plan | ps::prefetch(depth), 2) == plain);
}

TEST_CASE("stage/prefetch: no more batches are started than it allows, held ones included") {
  std::atomic<int> begun{0};
  const auto count = [&begun](int x) {
    ++begun;
    return x;
  };
  auto run =
      (ps::from(first_ints(300)) | ps::map(count) | ps::batch(10) | ps::prefetch(3) | ps::workers(2)).open();
  auto first = run.next();
  REQUIRE(first);
  CHECK(begun <= 4 * 10);
  auto second = run.next();
  REQUIRE(second);
  CHECK(begun <= 4 * 10);
}

TEST_CASE("stage/prefetch: before batch samples are fetched ahead, without changing the sequence") {
  const auto plan = ps::from(first_ints(300)) | ps::shuffle(ps::seed(1)) | ps::batch(4);
  CHECK(values_of(ps::from(first_ints(300)) | ps::shuffle(ps::seed(1)) | ps::prefetch(64) | ps::batch(4),
                  2) == values_of(plan));
}

TEST_CASE("stage/prefetch: more batches than any machine can hold are an error, samples are not") {
  const auto plan = ps::from(first_ints(12));
  for (const std::uint64_t many : {(std::uint64_t{1} << 20) + 1, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    CHECK_THAT(error_of([&] { (void)(plan | ps::batch(4) | ps::prefetch(many)).open(); }),
               contains("after batch holds that many batches"));
  }
  const auto some = (std::uint64_t{1} << 20) + 1;
  CHECK(values_of(plan | ps::prefetch(some) | ps::batch(4)) == values_of(plan | ps::batch(4)));
}

TEST_CASE("stage/prefetch: negative and absurd numbers before batch are one sentence") {
  const auto plan = ps::from(first_ints(12));
  const auto refused = [&](auto stage) {
    return error_of([&] { (void)(plan | stage | ps::batch(4)).open(); });
  };
  constexpr auto negative = static_cast<std::uint64_t>(-1);
  CHECK_THAT(refused(ps::prefetch(negative)),
             contains("prefetch(18446744073709551615) is negative or absurd: before batch it takes at most "
                      "4294967296 samples; write a few hundred, as in prefetch(256), or bytes, as in "
                      "prefetch(64_MiB)"));
  CHECK_THAT(refused(ps::prefetch(ps::prefetch_stage::max_samples + 1)), contains("prefetch(4294967297) is"));
  CHECK_THAT(refused(ps::prefetch(ps::byte_count(negative))),
             contains("prefetch(18446744073709551615 bytes) is negative or absurd: before batch it takes at "
                      "most 281474976710656 bytes; write what the machine can spare, as in "
                      "prefetch(64_MiB)"));
  CHECK_THAT(refused(ps::prefetch(ps::byte_count(ps::prefetch_stage::max_bytes + 1))),
             contains("is negative or absurd"));
  const auto expected = values_of(plan | ps::batch(4));
  CHECK(values_of(plan | ps::prefetch(ps::prefetch_stage::max_samples) | ps::batch(4)) == expected);
  CHECK(values_of(plan | ps::prefetch(ps::byte_count(ps::prefetch_stage::max_bytes)) | ps::batch(4)) ==
        expected);  // from memory nothing is fetched or kept
}

TEST_CASE(
    "stage/prefetch: sizes of requests are options of the run, before batch; those that make no sense are "
    "refused") {
  const auto plan = ps::from(first_ints(12));
  const auto options =
      (plan | ps::prefetch(8, {.coalesce_gap = 100, .part_size = 1_MiB, .max_in_flight = 3}) | ps::batch(4))
          .open()
          .options();
  CHECK(options.ahead == 8);
  CHECK(options.requests.coalesce_gap_with(true) == 100);
  CHECK(options.requests.max_coalesced_with(true) == 8_MiB);
  CHECK(options.requests.max_coalesced_with(false) == 1_MiB);
  CHECK(options.requests.part_size == 1_MiB);
  CHECK(options.requests.max_in_flight == 3);
  CHECK((plan | ps::prefetch(1_MiB, {.coalesce_gap = 7}) | ps::batch(4))
            .open()
            .options()
            .requests.coalesce_gap == 7);
  const auto refused = [&](const ps::request_options& requests) {
    return error_of([&] { (void)(plan | ps::prefetch(8, requests) | ps::batch(4)).open(); });
  };
  CHECK_THAT(refused({.coalesce_gap = ~std::uint64_t{0}}),
             contains("is negative or absurd") && contains(".coalesce_gap = 128_KiB"));
  CHECK_THAT(refused({.max_coalesced = std::uint64_t{1} << 50}), contains("is negative or absurd"));
  CHECK_THAT(refused({.part_size = 100}), contains("parts of 100 bytes") && contains("0 for no parts"));
  CHECK_THAT(refused({.max_in_flight = 0}),
             contains(".max_in_flight = 0 requests") && contains("prefetch(0)"));
  CHECK_THAT(refused({.max_in_flight = 5000}), contains("1 to 4096"));
  CHECK(refused({.part_size = 0}).empty());
  CHECK_THAT(error_of([&] { (void)(plan | ps::batch(4) | ps::prefetch(8, {.coalesce_gap = 7})).open(); }),
             contains("write its options before batch"));
}
