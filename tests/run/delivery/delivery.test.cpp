// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/delivery/delivery.hpp>

#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace delivery_test {

namespace ps = penstock;
using namespace engine_test;

namespace {

constexpr auto itself = [](std::uint64_t i) { return i; };
constexpr auto one_in_three = [](std::uint64_t x) { return x % 3 == 1; };

numbers shuffled(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch) {
  const auto chain = ps::make_order_chain(ps::order_input{n, nullptr}, ps::shuffle(ps::seed(seed)));
  numbers all;
  for (std::uint64_t i = 0; i < n; ++i) all.push_back(chain.sample_at({epoch, i}).index);
  return all;
}
template <class Keep>
numbers filtered(const numbers& in, Keep keep) {
  numbers out;
  for (const std::uint64_t x : in)
    if (keep(x)) out.push_back(x);
  return out;
}
/// The value as a vector of one, two or three elements.
constexpr auto as_words = [](std::uint64_t x) { return words_of(x); };
numbers unfolded(const numbers& in) {
  numbers out;
  for (const std::uint64_t x : in)
    for (const std::uint64_t w : words_of(x)) out.push_back(w);
  return out;
}
template <class Plan>
std::vector<numbers> read_rows(const Plan& plan, std::uint64_t epochs) {
  std::vector<numbers> all;
  auto run = plan.open();
  for (auto epoch : run.epochs(epochs)) {
    all.emplace_back();
    for (auto&& x : epoch) all.back().push_back(static_cast<std::uint64_t>(x));
  }
  return all;
}

/// The first `steps` batches of b over several joined passes: the batches that steps(n) makes of a
/// stream.
batches first_batches(const std::function<numbers(std::uint64_t)>& pass, std::uint64_t b, std::uint64_t steps,
                      std::uint64_t rank = 0, std::uint64_t world = 1) {
  numbers all;
  for (std::uint64_t i = 0; all.size() < b * world * steps; ++i) {
    const numbers more = pass(i);
    all.insert(all.end(), more.begin(), more.end());
  }
  batches result(static_cast<std::size_t>(steps));
  for (std::uint64_t i = rank; i < b * world * steps; i += world)
    result[static_cast<std::size_t>(i / world / b)].push_back(all[static_cast<std::size_t>(i)]);
  return result;
}

}  // namespace

TEST_CASE("run/delivery: filtered batches match the naive loop") {
  const penstock_test::deadline guard("filter");
  for (const std::uint64_t n : {0u, 1u, 2u, 60u, 301u}) {
    for (const auto policy : {ps::tail::keep, ps::tail::drop, ps::tail::pad}) {
      std::vector<batches> expected;
      for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
        expected.push_back(cut_naively(filtered(shuffled(n, 3, epoch), one_in_three), 8, 0, 1, policy));
      const auto check = [&](const auto& plan, const std::string& setting) {
        INFO(setting << ", n " << n);
        CHECK(read_plan(plan, 2) == expected);
      };
      on_each_setting(ps::generated(n, itself) | ps::shuffle(ps::seed(3)) | ps::map(slowly{}) |
                          ps::filter(one_in_three) | ps::batch(8, policy),
                      check);
      on_default_depth(ps::generated(n, itself) | ps::shuffle(ps::seed(3)) | ps::filter(one_in_three) |
                           ps::map(slowly{}) | ps::batch(8, policy),
                       check);
    }
  }
}

TEST_CASE("run/delivery: unbatch makes rows of rows, in order") {
  const penstock_test::deadline guard("unbatch");
  for (const std::uint64_t n : {0u, 1u, 100u, 400u}) {
    const numbers rows = unfolded(shuffled(n, 5, 0)), rows1 = unfolded(shuffled(n, 5, 1));
    const auto source = ps::generated(n, as_words) | ps::shuffle(ps::seed(5));
    on_default_depth(
        source | ps::unbatch | ps::map(slowly{}) | ps::batch(7),
        [&](const auto& plan, const std::string& setting) {
          INFO(setting << ", n " << n);
          CHECK(read_plan(plan, 2) == std::vector<batches>{cut_naively(rows, 7, 0, 1, ps::tail::keep),
                                                           cut_naively(rows1, 7, 0, 1, ps::tail::keep)});
        });
    on_default_depth(source | ps::unbatch | ps::filter([](std::uint64_t w) { return w % 2 == 1; }) |
                         ps::skip(3) | ps::take(50),
                     [&](const auto& plan, const std::string& setting) {
                       INFO(setting << ", n " << n);
                       std::vector<numbers> expected;
                       for (const numbers& all : {rows, rows1}) {
                         numbers kept = filtered(all, [](std::uint64_t w) { return w % 2 == 1; });
                         kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(
                                                                     std::min<std::size_t>(3, kept.size())));
                         if (kept.size() > 50) kept.resize(50);
                         expected.push_back(kept);
                       }
                       CHECK(read_rows(plan, 2) == expected);
                     });
  }
}

TEST_CASE("run/delivery: take and skip after a filter and after batch") {
  const penstock_test::deadline guard("take and skip after filter");
  const auto kept = [](std::uint64_t epoch) { return filtered(shuffled(200, 4, epoch), one_in_three); };
  const auto source =
      ps::generated(200, itself) | ps::shuffle(ps::seed(4)) | ps::map(slowly{}) | ps::filter(one_in_three);
  on_each_setting(source | ps::skip(5) | ps::take(20) | ps::batch(6), [&](const auto& plan,
                                                                          const std::string& setting) {
    INFO(setting);
    std::vector<batches> expected;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const numbers all = kept(epoch);
      expected.push_back(cut_naively(numbers(all.begin() + 5, all.begin() + 25), 6, 0, 1, ps::tail::keep));
    }
    CHECK(read_plan(plan, 3) == expected);
  });
  on_each_setting(source | ps::batch(6) | ps::skip(2) | ps::take(4),
                  [&](const auto& plan, const std::string& setting) {
                    INFO(setting);
                    std::vector<batches> expected;
                    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
                      const batches all = cut_naively(kept(epoch), 6, 0, 1, ps::tail::keep);
                      expected.emplace_back(all.begin() + 2, all.begin() + 6);
                    }
                    CHECK(read_plan(plan, 3) == expected);
                  });
  CHECK(read_plan(source | ps::take(0) | ps::batch(6), 2) == std::vector<batches>(2));
  CHECK(read_plan(source | ps::batch(6) | ps::take(0), 2) == std::vector<batches>(2));
}

TEST_CASE("run/delivery: steps(n) continues through passes, batches straddle them") {
  const penstock_test::deadline guard("steps");
  const auto source =
      ps::generated(20, itself) | ps::shuffle(ps::seed(6)) | ps::map(slowly{}) | ps::filter(one_in_three);
  for (const std::uint64_t steps : {1u, 4u, 9u}) {
    on_default_depth(source | ps::batch(4) | ps::steps(steps),
                     [&](const auto& plan, const std::string& setting) {
                       INFO(setting << ", steps " << steps);
                       auto run = plan.open();
                       CHECK(run.steps_per_epoch() == steps);
                       std::vector<batches> expected;
                       for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
                         expected.push_back(first_batches(
                             [epoch](std::uint64_t pass) {
                               return filtered(shuffled(20, 6, epoch + (pass << 32)), one_in_three);
                             },
                             4, steps));
                       CHECK(read_epochs(run, 3) == expected);
                     });
  }
  const auto skipping = source | ps::batch(2) | ps::skip(2) | ps::steps(3);
  CHECK(read_plan(skipping, 2)[1].size() == 3);
  CHECK_THROWS_AS((source | ps::batch(2) | ps::take(2) | ps::steps(3)).open(), ps::error);
}

TEST_CASE(
    "run/delivery: a filter before shard deals survivors to the ranks; the steps do not depend on the "
    "ranks") {
  const penstock_test::deadline guard("filter before shard");
  const auto kept = [](std::uint64_t pass) { return filtered(shuffled(50, 7, pass << 32), one_in_three); };
  for (const std::uint64_t world : {1u, 2u, 3u, 6u}) {
    const std::uint64_t b = 6 / world;
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      INFO("rank " << rank << " of " << world);
      const auto plan = ps::generated(50, itself) | ps::shuffle(ps::seed(7)) | ps::filter(one_in_three) |
                        ps::shard(rank, world) | ps::batch(b) | ps::steps(8) | ps::workers(2);
      static_assert(ps::elastic<decltype(plan)>, "a filter before shard keeps elastic");
      CHECK(read_plan(plan, 1)[0] == first_batches(kept, b, 8, rank, world));
      // take counts for all ranks, wherever shard is
      const auto limited = ps::generated(50, itself) | ps::shuffle(ps::seed(7)) | ps::filter(one_in_three);
      const auto before = limited | ps::take(10) | ps::shard(rank, world) | ps::batch(b) | ps::steps(5);
      const auto after = limited | ps::shard(rank, world) | ps::take(10) | ps::batch(b) | ps::steps(5);
      CHECK(read_plan(before, 1) == read_plan(after, 1));
      CHECK(read_plan(before, 1)[0] == first_batches(
                                           [&](std::uint64_t pass) {
                                             numbers all = kept(pass);
                                             all.resize(10);
                                             return all;
                                           },
                                           b, 5, rank, world));
    }
  }
}

TEST_CASE(
    "run/delivery: a filter after shard chooses among this rank's samples; steps makes the ranks equal") {
  const penstock_test::deadline guard("filter after shard");
  for (const std::uint64_t world : {1u, 2u, 5u}) {
    numbers everything;
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      const auto plan = ps::generated(50, itself) | ps::shuffle(ps::seed(7)) | ps::shard(rank, world) |
                        ps::filter(one_in_three) | ps::map(slowly{});
      const numbers mine = read_rows(plan | ps::workers(2), 1)[0];
      everything.insert(everything.end(), mine.begin(), mine.end());
      CHECK(read_plan(plan | ps::batch(4) | ps::steps(6) | ps::workers(3), 2)[1].size() == 6);
      if (world > 1)
        CHECK_THROWS_WITH((plan | ps::batch(4)).open(), penstock_test::contains("lost by filter"));
    }
    std::sort(everything.begin(), everything.end());
    CHECK(everything == filtered(iota(50), one_in_three));
  }
}

TEST_CASE("run/delivery: a pass that gives this rank nothing is an error, not an endless search") {
  const penstock_test::deadline guard("nothing in a pass");
  const auto source = ps::generated(50, itself);
  const auto none = source | ps::filter([](std::uint64_t) { return false; }) | ps::batch(2) | ps::steps(2);
  CHECK_THROWS_WITH(read_plan(none, 1), penstock_test::contains("gave this rank no sample"));
  const auto skipped = source | ps::filter(one_in_three) | ps::skip(1000) | ps::batch(2) | ps::steps(2);
  CHECK_THROWS_WITH(read_plan(skipped, 1), penstock_test::contains("gave this rank no sample"));
  const auto one = source | ps::filter([](std::uint64_t x) { return x == 7; }) | ps::shard(1, 2) |
                   ps::batch(2) | ps::steps(2);
  CHECK(read_plan(one, 1)[0] == batches(2, numbers(2, 7)));  // every other pass has a sample for this rank
}

TEST_CASE("run/delivery: forward sources") {
  const penstock_test::deadline guard("forward");
  const auto epoch_of = [](std::uint64_t n, std::uint64_t epoch) {
    numbers all;
    for (std::uint64_t i = 0; i < n; ++i) all.push_back(epoch * 1'000'000 + i);
    return all;
  };
  for (const std::uint64_t n : {0u, 1u, 50u, 333u}) {
    std::vector<batches> plain, kept;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      plain.push_back(cut_naively(epoch_of(n, epoch), 8, 0, 1, ps::tail::keep));
      kept.push_back(cut_naively(filtered(epoch_of(n, epoch), one_in_three), 8, 0, 1, ps::tail::drop));
    }
    on_each_setting(ps::plan(counting_source(n)) | ps::map(slowly{}) | ps::batch(8),
                    [&](const auto& plan, const std::string& setting) {
                      INFO(setting << ", n " << n);
                      CHECK(read_plan(plan, 3) == plain);
                    });
    on_each_setting(ps::plan(counting_source(n)) | ps::filter(one_in_three) | ps::batch(8, ps::tail::drop),
                    [&](const auto& plan, const std::string& setting) {
                      INFO(setting << ", n " << n);
                      CHECK(read_plan(plan, 3) == kept);
                    });
    numbers rounds;
    for (std::uint64_t round = 2; round < 4; ++round) {
      numbers part = epoch_of(n, round);
      part.erase(part.begin(),
                 part.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, part.size())));
      if (part.size() > 10) part.resize(10);
      rounds.insert(rounds.end(), part.begin(), part.end());
    }
    CHECK(
        read_rows(ps::plan(counting_source(n)) | ps::skip(2) | ps::take(10) | ps::repeat(2) | ps::workers(2),
                  2)[1] == rounds);
  }
  // every rank's rows, with take counting for all ranks, on either side of shard
  for (const std::uint64_t world : {1u, 2u, 3u}) {
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      numbers mine;
      for (std::uint64_t i = rank; i < 20; i += world) mine.push_back(i + 5);
      const auto source = ps::plan(counting_source(100));
      CHECK(read_rows(source | ps::skip(5) | ps::take(20) | ps::shard(rank, world) | ps::workers(2), 1)[0] ==
            mine);
      CHECK(read_rows(source | ps::shard(rank, world) | ps::skip(5) | ps::take(20) | ps::workers(2), 1)[0] ==
            mine);
    }
  }
  // a buffer of samples acts like the buffer of positions
  const auto indexed = ps::generated(100, itself) | ps::shuffle_buffer(10, ps::seed(3)) | ps::batch(8);
  const auto forward = ps::plan(counting_source(100)) | ps::shuffle_buffer(10, ps::seed(3)) | ps::batch(8);
  CHECK(read_plan(indexed, 1) == read_plan(forward | ps::workers(3), 1));
}

TEST_CASE("run/delivery: rows of a loop without batches") {
  const penstock_test::deadline guard("rows");
  on_each_setting(ps::generated(70, itself) | ps::shuffle(ps::seed(1)) | ps::map(slowly{}),
                  [&](const auto& plan, const std::string& setting) {
                    INFO(setting);
                    CHECK(read_rows(plan, 2) == std::vector<numbers>{shuffled(70, 1, 0), shuffled(70, 1, 1)});
                  });
  std::vector<bool> truths;
  for (auto&& truth :
       ps::generated(5, itself) | ps::map([](std::uint64_t x) { return x % 2 == 0; }) | ps::workers(1))
    truths.push_back(truth);
  CHECK(truths == std::vector<bool>{true, false, true, false, true});
}

TEST_CASE("run/delivery: holding every chunk is an error, and nothing is lost") {
  const penstock_test::deadline guard("holding all");
  const auto plan = ps::generated(100'000, itself) | ps::filter([](std::uint64_t) { return true; }) |
                    ps::batch(3000) | ps::workers(2) | ps::prefetch(1);
  auto run = plan.open();
  using batch = typename decltype(run)::value_type;
  std::vector<batch> held;
  numbers got;
  std::string message;
  std::uint64_t refused = 0;
  while (true) {
    auto result = run.next();
    if (result.failure != nullptr) {
      CHECK_THROWS_WITH(std::rethrow_exception(result.failure), penstock_test::contains("you hold"));
      ++refused;
      REQUIRE(!held.empty());
      held.erase(held.begin());
      continue;
    }
    if (!result) break;
    const numbers values = values_of(*result);
    got.insert(got.end(), values.begin(), values.end());
    held.push_back(std::move(*result));
  }
  CHECK(refused > 0);
  CHECK(got == iota(100'000));
}

namespace {

/// A device that refuses memory once: when `until` reaches zero.
struct stingy {
  struct session {
    static constexpr bool copies = false;
    struct transfer {};
    std::shared_ptr<std::atomic<int>> until;

    void* allocate(std::size_t bytes) {
      if (until->fetch_sub(1) == 1) throw std::bad_alloc();
      return ::operator new(bytes, std::align_val_t{64});
    }
    void deallocate(void* p, std::size_t) noexcept { ::operator delete(p, std::align_val_t{64}); }
    void start(transfer&, std::span<const ps::bytes_view>) {}
    void wait(transfer&) {}
    const void* data(transfer&, std::size_t) { return nullptr; }
  };
  std::shared_ptr<std::atomic<int>> until;

  session connect() const { return {until}; }
  std::string describe() const { return "stingy"; }
};

}  // namespace

TEST_CASE("run/delivery: a failed allocation for a batch is one error, and the next call starts afresh") {
  const penstock_test::deadline guard("memory");
  const std::uint64_t size = GENERATE(std::uint64_t{512}, std::uint64_t{150'000});
  bool all = false;
  for (int refused = 1; !all; ++refused) {
    INFO("allocation " << refused << ", batch " << size);
    REQUIRE(refused < 1000);
    const stingy device{std::make_shared<std::atomic<int>>(refused)};
    const auto plan = ps::generated(200'000, itself) | ps::filter([](std::uint64_t) { return true; }) |
                      ps::batch(size) | ps::workers(2) | ps::prefetch(3) | ps::pin_and_copy(device);
    numbers got;
    int errors = 0;
    try {
      auto run = plan.open();
      while (true) {
        auto result = run.next();
        if (result.failure != nullptr) {
          ++errors;
          REQUIRE(errors < 3);
          continue;
        }
        if (!result) break;
        const numbers values = values_of(*result);
        got.insert(got.end(), values.begin(), values.end());
      }
      if (errors == 0 || !run.stopped()) CHECK(got == iota(200'000));
    } catch (const std::bad_alloc&) {
      ++errors;
    }
    CHECK(errors <= 1);
    all = errors == 0;
    CHECK(got == iota(got.size()));
  }
}

}  // namespace delivery_test
