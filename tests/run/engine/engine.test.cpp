// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/engine.hpp>

#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/engine/tuning/machine.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/watchdog.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace engine_run_test {

namespace ps = penstock;
using namespace engine_test;

namespace {

/// The order of an epoch as the order chain gives it, sample by sample; 1000 * epoch is added to show the
/// epoch.
template <class... Orders>
numbers order_of_epoch(std::uint64_t n, std::vector<std::uint64_t> starts, std::uint64_t epoch,
                       const Orders&... orders) {
  auto shards =
      starts.empty() ? nullptr : std::make_shared<const std::vector<std::uint64_t>>(std::move(starts));
  const auto chain = ps::make_order_chain(ps::order_input{n, shards}, orders...);
  numbers all;
  for (std::uint64_t i = 0; i < chain.size(); ++i) all.push_back(chain.sample_at({epoch, i}).index);
  return all;
}

std::vector<batches> model(const std::vector<numbers>& epochs, std::uint64_t b, std::uint64_t rank,
                           std::uint64_t world, ps::tail policy, std::uint64_t lanes = 1) {
  std::vector<batches> all;
  for (const numbers& order : epochs) all.push_back(cut_naively(order, b, rank, world, policy, lanes));
  return all;
}

constexpr auto as_it_is = [](std::uint64_t i) { return i; };

}  // namespace

TEST_CASE("run/engine: plain and shuffled batches match the naive loop with any workers and depth") {
  const penstock_test::deadline guard("plain and shuffled");
  for (const std::uint64_t n : {0u, 1u, 7u, 64u, 101u}) {
    for (const auto policy : {ps::tail::keep, ps::tail::drop, ps::tail::pad}) {
      std::vector<numbers> plain(3, iota(n)), shuffled;
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
        shuffled.push_back(order_of_epoch(n, {}, epoch, ps::shuffle(ps::seed(11))));
      const auto source = ps::generated(n, as_it_is) | ps::map(slowly{});
      on_each_setting(source | ps::batch(8, policy), [&](const auto& plan, const std::string& setting) {
        INFO(setting << ", n " << n);
        CHECK(read_plan(plan, 3) == model(plain, 8, 0, 1, policy));
      });
      on_default_depth(source | ps::shuffle(ps::seed(11)) | ps::batch(8, policy),
                       [&](const auto& plan, const std::string& setting) {
                         INFO(setting << ", n " << n);
                         CHECK(read_plan(plan, 3) == model(shuffled, 8, 0, 1, policy));
                       });
    }
  }
}

TEST_CASE("run/engine: ranks get complete and disjoint slices of the global steps") {
  const penstock_test::deadline guard("ranks");
  for (const std::uint64_t n : {0u, 1u, 3u, 59u, 60u, 75u}) {
    for (const auto policy : {ps::tail::keep, ps::tail::drop, ps::tail::pad}) {
      std::vector<std::vector<numbers>> steps_by_world;
      for (const std::uint64_t world : {1u, 2u, 3u, 5u}) {
        const std::uint64_t b = 30 / world;
        std::vector<numbers> order;
        for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
          order.push_back(order_of_epoch(n, {}, epoch, ps::shuffle(ps::seed(3))));
        std::vector<numbers> steps;
        for (std::uint64_t rank = 0; rank < world; ++rank) {
          const auto plan = ps::generated(n, as_it_is) | ps::shard(rank, world) | ps::map(slowly{}) |
                            ps::shuffle(ps::seed(3)) | ps::batch(b, policy) | ps::workers(2);
          auto run = (plan | ps::allow_empty).open();
          const auto got = read_epochs(run, 2);
          CHECK(got == model(order, b, rank, world, policy));
          std::size_t at = 0;
          for (const auto& epoch : got) {
            CHECK(epoch.size() == run.steps_per_epoch());
            for (const auto& batch : epoch) {
              if (steps.size() <= at) steps.emplace_back();
              steps[at].insert(steps[at].end(), batch.begin(), batch.end());
              ++at;
            }
          }
        }
        for (auto& step : steps) std::sort(step.begin(), step.end());
        steps_by_world.push_back(std::move(steps));
      }
      for (const auto& steps : steps_by_world) CHECK(steps == steps_by_world.front());
      if (policy != ps::tail::drop) {
        numbers all;
        for (const auto& step : steps_by_world.front()) all.insert(all.end(), step.begin(), step.end());
        std::sort(all.begin(), all.end());
        numbers twice;
        for (std::uint64_t i = 0; i < n; ++i) twice.insert(twice.end(), 2, i);
        CHECK(all == twice);
      }
    }
  }
}

TEST_CASE("run/engine: a windowed order with lanes") {
  const penstock_test::deadline guard("windowed");
  const std::vector<std::uint64_t> starts = {0, 10, 17, 40, 41, 60, 80, 97};
  for (const std::uint64_t world : {1u, 2u, 3u}) {
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      const auto order = ps::shuffle(ps::seed(5), ps::window(2), ps::lanes(4));
      std::vector<numbers> epochs;
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
        epochs.push_back(order_of_epoch(97, starts, epoch, order));
      const auto plan = ps::generated(97, as_it_is, starts) | order | ps::map(slowly{}) |
                        ps::shard(rank, world) | ps::batch(6, ps::tail::keep);
      on_each_setting(plan, [&](const auto& p, const std::string& setting) {
        INFO(setting << ", rank " << rank << " of " << world);
        CHECK(read_plan(p, 3) == model(epochs, 6, rank, world, ps::tail::keep, 4));
      });
    }
  }
}

TEST_CASE("run/engine: take, skip and repeat before batch count positions, after it batches") {
  const penstock_test::deadline guard("take skip repeat");
  const auto source = ps::generated(50, as_it_is) | ps::map(slowly{});
  const auto epoch_of = [](std::uint64_t e) { return order_of_epoch(50, {}, e, ps::shuffle(ps::seed(9))); };
  on_default_depth(
      source | ps::shuffle(ps::seed(9)) | ps::skip(5) | ps::take(20) | ps::repeat(2) | ps::batch(8),
      [&](const auto& plan, auto setting) {
        INFO(setting);
        std::vector<numbers> expected;
        for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
          numbers order;
          for (std::uint64_t round = 0; round < 2; ++round) {
            const numbers whole = epoch_of(epoch * 2 + round);
            order.insert(order.end(), whole.begin() + 5, whole.begin() + 25);
          }
          expected.push_back(order);
        }
        CHECK(read_plan(plan, 2) == model(expected, 8, 0, 1, ps::tail::keep));
      });
  on_default_depth(
      source | ps::shuffle(ps::seed(9)) | ps::batch(8) | ps::skip(1) | ps::take(3) | ps::repeat(2),
      [&](const auto& plan, auto setting) {
        INFO(setting);
        std::vector<batches> expected;
        for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
          expected.emplace_back();
          for (std::uint64_t round = 0; round < 2; ++round) {
            const auto cut = cut_naively(epoch_of(epoch * 2 + round), 8, 0, 1, ps::tail::keep);
            expected.back().insert(expected.back().end(), cut.begin() + 1, cut.begin() + 4);
          }
        }
        CHECK(read_plan(plan, 2) == expected);
      });
}

TEST_CASE("run/engine: numbers after a filter, on workers, in reused memory") {
  const penstock_test::deadline guard("used memory");
  // How chunks are cut depends on whether processors are shared, which must be known by then. Reading it
  // too early shows under the sanitizers.
  for (std::size_t size = 512; size <= 16'384; size += 64) {
    const std::vector<unsigned char> used(size, 0xbe);
    CHECK(used.back() == 0xbe);
  }
  const auto plan = ps::generated(50, as_it_is) | ps::filter([](std::uint64_t i) { return i % 3 != 0; }) |
                    ps::batch(4) | ps::workers(2);
  std::uint64_t sum = 0;
  for (auto&& b : plan)
    for (const std::uint64_t x : b) sum += x;
  CHECK(sum == 1225 - 408);
}

TEST_CASE("run/engine: steps(n) cuts an epoch short or repeats the data in a new order") {
  const penstock_test::deadline guard("steps");
  const auto order = [](std::uint64_t epoch) {
    return order_of_epoch(20, {}, epoch, ps::shuffle(ps::seed(2)));
  };
  for (const std::uint64_t steps : {1u, 3u, 7u, 11u}) {
    const auto plan = ps::generated(20, as_it_is) | ps::shuffle(ps::seed(2)) | ps::map(slowly{}) |
                      ps::batch(8) | ps::steps(steps);
    std::vector<batches> expected;
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      expected.emplace_back();
      for (std::uint64_t pass = 0; expected.back().size() < steps; ++pass)
        for (auto& b : cut_naively(order(epoch + (pass << 32)), 8, 0, 1, ps::tail::keep))
          if (expected.back().size() < steps) expected.back().push_back(b);
    }
    on_default_depth(plan, [&](const auto& p, const std::string& setting) {
      INFO(setting << ", steps " << steps);
      auto run = p.open();
      CHECK(run.steps_per_epoch() == steps);
      CHECK(read_epochs(run, 2) == expected);
    });
  }
}

TEST_CASE("run/engine: a shuffle buffer of positions is the classical buffer of samples") {
  const penstock_test::deadline guard("shuffle_buffer");
  const auto mixed = [](const numbers& in, std::uint64_t capacity, std::uint64_t seed, std::uint64_t epoch) {
    numbers held, out;
    std::size_t at = 0;
    while (held.size() < capacity && at < in.size()) held.push_back(in[at++]);
    for (std::uint64_t given = 0; !held.empty(); ++given) {
      const auto place = static_cast<std::size_t>(ps::buffer_draw(seed, epoch, given, held.size()));
      out.push_back(held[place]);
      if (at < in.size()) {
        held[place] = in[at++];
      } else {
        held[place] = held.back();
        held.pop_back();
      }
    }
    return out;
  };
  for (const std::uint64_t n : {0u, 1u, 40u, 53u}) {
    for (const std::uint64_t world : {1u, 2u, 5u}) {
      for (const auto policy : {ps::tail::keep, ps::tail::drop, ps::tail::pad}) {
        for (std::uint64_t rank = 0; rank < world; ++rank) {
          INFO("n " << n << ", rank " << rank << " of " << world);
          std::vector<batches> before, after;
          for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
            const numbers in = order_of_epoch(n, {}, epoch, ps::shuffle(ps::seed(1)));
            before.push_back(cut_naively(mixed(in, 10, 4, epoch), 4, rank, world, policy));
            // After shard the buffer mixes this rank's samples, and its batches keep their sizes.
            const auto mine = cut_naively(in, 4, rank, world, policy);
            numbers flat;
            for (const auto& b : mine) flat.insert(flat.end(), b.begin(), b.end());
            flat = mixed(flat, 10, 4, epoch);
            std::size_t at = 0;
            after.emplace_back();
            for (const auto& b : mine) {
              after.back().emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(at),
                                        flat.begin() + static_cast<std::ptrdiff_t>(at + b.size()));
              at += b.size();
            }
          }
          const auto source = ps::generated(n, as_it_is) | ps::map(slowly{}) | ps::shuffle(ps::seed(1));
          for (const unsigned workers : {0u, 2u}) {
            CHECK(read_plan(source | ps::shuffle_buffer(10, ps::seed(4)) | ps::shard(rank, world) |
                                ps::batch(4, policy) | ps::workers(workers),
                            2) == before);
            CHECK(read_plan(source | ps::shard(rank, world) | ps::shuffle_buffer(10, ps::seed(4)) |
                                ps::batch(4, policy) | ps::workers(workers),
                            2) == after);
          }
        }
      }
    }
  }
}

TEST_CASE("run/engine: a batch knows its epoch, step, sizes, mask, positions and keys") {
  const penstock_test::deadline guard("facts of a batch");
  const auto plan = ps::generated(10, as_it_is) | ps::shuffle(ps::seed(6)) | ps::shard(1, 2) |
                    ps::batch(3, ps::tail::pad) | ps::workers(2);
  auto run = plan.open();
  const numbers order = order_of_epoch(10, {}, 1, ps::shuffle(ps::seed(6)));
  std::uint64_t step = 0;
  for (auto&& b : run.epoch(1)) {
    CHECK(b.epoch() == 1);
    CHECK(b.step() == step);
    CHECK(b.size() == 3);
    CHECK(b.global_size() == (step == 0 ? 6 : 4));
    CHECK(b.valid_size() == (step == 0 ? 3 : 1));
    const auto mask = b.valid();
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(mask[i] == (i < b.valid_size() ? 1 : 0));
      CHECK(b.values()[i] == (i < b.valid_size() ? order[static_cast<std::size_t>(step * 6 + 3 + i)] : 0));
    }
    const auto positions = b.positions();
    const auto keys = b.keys();
    REQUIRE(positions.size() == b.valid_size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      CHECK(positions[i] == ps::position{1, step * 6 + 3 + i});
      CHECK(keys[i] == std::to_string(b.values()[i]));
    }
    ++step;
  }
  CHECK(step == 2);
}

TEST_CASE("run/engine: epochs may be taken in any order, left early and taken again") {
  const penstock_test::deadline guard("epochs in any order");
  const auto source =
      ps::generated(40, as_it_is) | ps::map(slowly{}) | ps::shuffle(ps::seed(8)) | ps::batch(6);
  on_each_setting(source, [&](const auto& plan, const std::string& setting) {
    INFO(setting);
    auto run = plan.open();
    for (const std::uint64_t epoch : {3u, 0u, 1u, 1u, 7u}) {
      const auto expected =
          cut_naively(order_of_epoch(40, {}, epoch, ps::shuffle(ps::seed(8))), 6, 0, 1, ps::tail::keep);
      batches got;
      for (auto&& b : run.epoch(epoch)) {
        got.push_back(values_of(b));
        if (epoch == 0 && got.size() == 2) break;
      }
      if (epoch == 0) {
        CHECK(got == batches(expected.begin(), expected.begin() + 2));
        for (auto&& b : run.rest()) got.push_back(values_of(b));
      }
      CHECK(got == expected);
    }
  });
}

namespace {

/// The text that a call writes to standard error.
template <class Call>
std::string errors_of(Call&& call) {
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "stderr").string();
  std::fflush(stderr);
  const int before = ::dup(2);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, 2);
  ::close(file);
  call();
  std::fflush(stderr);
  ::dup2(before, 2);
  ::close(before);
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Reads a plan whose sample 13 waits long enough for the watchdog to write a line; the others take `each`.
template <class Make>
std::string watch(Make make, std::chrono::milliseconds after, std::chrono::microseconds each) {
  const auto plan = make([each](std::uint64_t x) {
    if (x == 13)
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
    else if (each.count() != 0)
      std::this_thread::sleep_for(each);
    return x;
  });
  return errors_of([&] {
    std::uint64_t seen = 0;
    for (auto&& b : (plan | ps::workers(1) | ps::watchdog(after)).epoch(0)) seen += b.size();
    CHECK(seen == 20);
  });
}

/// Whether a line names a position, by itself or as one of several of this plan's 20.
bool names_among_others(const std::string& lines, unsigned long position) {
  const std::string begin = "which evaluates ";
  for (std::size_t at = lines.find(begin); at != lines.npos; at = lines.find(begin, at + 1)) {
    const char* const rest = lines.c_str() + at + begin.size();
    unsigned long count = 1, first = 0;
    if (std::sscanf(rest, "position %lu", &first) != 1 &&
        std::sscanf(rest, "one of %lu samples from position %lu", &count, &first) != 2)
      continue;
    if (first <= position && position < first + count && first + count <= 20) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("run/engine: the watchdog names the awaited position") {
  const penstock_test::deadline guard("watchdog");
  const auto check = [](auto make) {
    const auto soon = std::chrono::milliseconds(50);
    const auto each = std::chrono::milliseconds(1), nothing = std::chrono::milliseconds(0);
    const std::string lines = watch(make, soon, each);
    CHECK_THAT(lines, penstock_test::contains(
                          "penstock: no batch for 0.0 s; waiting for worker 0, which evaluates"));
    CHECK_THAT(lines, penstock_test::contains("which evaluates position 13"));
    // Samples of a few nanoseconds are evaluated several at once.
    const std::string quick = watch(make, soon, nothing);
    INFO(quick);
    CHECK(names_among_others(quick, 13));
    CHECK(watch(make, std::chrono::seconds(100), nothing).empty());
    CHECK(watch(make, nothing, nothing).empty());
  };
  check([](auto f) { return ps::generated(20, as_it_is) | ps::map(f) | ps::batch(4); });
  check([](auto f) {
    return ps::generated(20, as_it_is) | ps::filter([](std::uint64_t) { return true; }) | ps::map(f) |
           ps::batch(4);
  });
  check([](auto f) { return ps::plan(counting_source(20)) | ps::map(f) | ps::batch(4); });
  check([](auto f) {
    return ps::generated(20, [](std::uint64_t x) { return std::vector<std::uint64_t>(1, x); }) |
           ps::map([f](const std::vector<std::uint64_t>& v) { return f(v[0]); }) | ps::batch(4);
  });
}

TEST_CASE("run/engine: a run of slow samples stops without finishing them") {
  const penstock_test::deadline guard("slow numbers", std::chrono::seconds(20));
  const auto slow = ps::map([](std::uint64_t x) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return x;
  });
  for (int i = 0; i < 3; ++i) {
    const auto all = ps::generated(1'000'000, as_it_is) | slow | ps::workers(2);
    { auto run = (all | ps::batch(8192)).open(); }
    {
      auto run = (all | ps::filter([](std::uint64_t) { return true; }) | ps::batch(8192)).open();
    }
    { auto run = all.open(); }
  }
}

TEST_CASE("run/engine: a ready batch is delivered, whatever later ones wait for") {
  const penstock_test::deadline guard("ready batches", std::chrono::seconds(60));
  // On few processors or many, a map that waits for the previous batch to be delivered must not block it.
  for (const unsigned workers : {1u, 2u, ps::usable_processors(), ps::usable_processors() + 2}) {
    std::atomic<std::uint64_t> delivered{0};
    const auto after_the_one_before = ps::map([&delivered](const std::vector<std::uint64_t>& v) {
      for (std::uint64_t seen = delivered.load(); seen + 4 < v[0]; seen = delivered.load())
        delivered.wait(seen);
      return v[0];
    });
    const auto plan = ps::generated(400, [](std::uint64_t x) { return std::vector<std::uint64_t>(1, x); }) |
                      after_the_one_before | ps::batch(4) | ps::workers(workers) | ps::prefetch(16);
    for (auto&& b : plan) {
      delivered += b.size();
      delivered.notify_all();
    }
    CHECK(delivered == 400);
  }
}

}  // namespace engine_run_test
