// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Events at random moments: stops, exceptions from every stage, consumers that leave or hold batches, many
// pipelines at once. All random numbers depend on the number of the round, so a failing round can be run
// again: PENSTOCK_FIRST_ROUND=n starts with it. Only the timing of threads is not reproducible.
// PENSTOCK_LONG_TESTS runs thousands of rounds.

#include <penstock/core/random.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/engine/workers/ring.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/unbatch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace random_moments_test {

namespace ps = penstock;
using namespace engine_test;

namespace {

constexpr std::uint64_t samples = 120;
constexpr unsigned kinds = 8;

/// The values at which each stage fails.
struct faults {
  std::array<std::set<std::uint64_t>, 4> at;

  void check(std::size_t stage, std::uint64_t value) const {
    if (at[stage].count(value) == 0) return;
    if (value % 2 == 0) throw std::runtime_error("not ours, of stage " + std::to_string(stage));
    throw ps::error(ps::errc::format, "ours, of stage " + std::to_string(stage));
  }
};
using faults_ptr = std::shared_ptr<const faults>;

/// Takes some time, or yields, depending on seed and position, not on chance.
void take_time(ps::rng& draw) {
  const std::uint64_t what = draw.below(64);
  if (what == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw.below(60)));
  if (what < 6) std::this_thread::yield();
  if (what > 55) {
    std::atomic<std::uint64_t> spun{0};
    for (const std::uint64_t end = draw.below(300); spun < end;) ++spun;
  }
}

struct through {
  faults_ptr wrong;
  std::size_t stage;
  std::uint64_t operator()(std::uint64_t x, ps::rng& draw) const {
    take_time(draw);
    if (wrong) wrong->check(stage, x);
    return x;
  }
};
struct keeps {
  faults_ptr wrong;
  bool operator()(std::uint64_t x) const {
    if (wrong) wrong->check(2, x);
    return x % 3 != 1;
  }
};
struct made {
  faults_ptr wrong;
  std::uint64_t operator()(std::uint64_t i) const {
    if (wrong) wrong->check(0, i);
    return i;
  }
};

/// A source of elements that are not plain numbers, whose reader takes hints and sometimes throws from
/// them.
class hinted_source {
 public:
  using penstock_part = ps::source_tag;
  using element = std::vector<std::uint64_t>;
  [[maybe_unused]] static constexpr std::string_view source_name = "hinted";
  struct reader {
    struct worker {};
    faults_ptr wrong;
    template <class Sink>
    void evaluate(ps::position p, worker&, Sink&& sink) const {
      if (wrong) wrong->check(0, p.index);
      sink(std::vector<std::uint64_t>{p.index});
    }
    void will_need(std::uint64_t i) const {
      if (i % 7 == 0) std::this_thread::yield();
      if (i % 31 == 0) throw std::runtime_error("a hint that fails changes nothing");
    }
  };
  explicit hinted_source(faults_ptr wrong) : wrong_(std::move(wrong)) {}
  [[nodiscard]] std::uint64_t size() const { return samples; }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const { return nullptr; }
  [[nodiscard]] std::string describe() const { return "hinted"; }
  [[nodiscard]] std::uint64_t fingerprint() const { return samples; }
  [[nodiscard]] reader connect() const { return {wrong_}; }

 private:
  faults_ptr wrong_;
};

struct setting {
  unsigned kind = 0, workers = 0;
  std::uint64_t seed = 0, depth = 2;
  faults_ptr wrong;
};

/// Calls `use(plan)` with the plan of a setting.
template <class Use>
void with_plan(const setting& s, Use use) {
  const auto end = ps::workers(s.workers);
  const auto depth = ps::prefetch(s.depth - 1);
  const through before{s.wrong, 1}, after{s.wrong, 3};
  const keeps some{s.wrong};
  const auto numbers_from = ps::generated(samples, made{s.wrong});
  const auto first = [](const std::vector<std::uint64_t>& v) { return v[0]; };
  switch (s.kind) {
    case 0:
      return use(numbers_from | ps::shuffle(ps::seed(s.seed)) | ps::map(before) | ps::map(after) |
                 ps::batch(7) | depth | end);
    case 1:
      return use(ps::plan(hinted_source(s.wrong)) | ps::map(first) | ps::shuffle(ps::seed(s.seed)) |
                 ps::map(before) | ps::shard(1, 2) | ps::prefetch(20) | ps::batch(5, ps::tail::pad) | depth |
                 end);
    case 2:
      return use(numbers_from | ps::map(before) | ps::filter(some) | ps::map(after) | ps::batch(6) | depth |
                 end);
    case 3:
      return use(ps::plan(hinted_source(s.wrong)) | ps::map(first) | ps::shuffle_buffer(9, ps::seed(s.seed)) |
                 ps::map(before) | ps::batch(4) | depth | end);
    case 4: {
      const bool breaks = s.wrong && !s.wrong->at[0].empty();
      return use(
          ps::plan(breaks ? counting_source(samples, *s.wrong->at[0].begin()) : counting_source(samples)) |
          ps::map(before) | ps::filter(some) | ps::batch(6) | depth | end);
    }
    case 5:
      return use(ps::plan(hinted_source(s.wrong)) | ps::map(first) | ps::map(before) | ps::filter(some) |
                 ps::map(after) | depth | end);
    case 6:
      return use(numbers_from | ps::shuffle(ps::seed(s.seed)) | ps::map([](std::uint64_t x) {
                   return std::vector<std::uint64_t>(static_cast<std::size_t>(x % 4), x);
                 }) |
                 ps::unbatch | ps::map(before) | ps::batch(5) | depth | end);
    default:
      return use(numbers_from | ps::map(before) | ps::map(after) | ps::batch(8) |
                 ps::pin_and_copy(ps::simulated{}) | depth | end);
  }
}

/// The outcome of a run: batches, or rows as batches of one; and how it ended.
struct outcome {
  batches all;
  std::string failure;
};

std::string words_of_failure(const std::exception_ptr& what) {
  try {
    std::rethrow_exception(what);
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// Passes each element of a run's epochs to `f(values, batch or row)` until f asks to stop.
template <class Run, class F>
std::string each(Run& run, std::uint64_t epochs, F f) {
  try {
    for (auto epoch : run.epochs(epochs))
      for (auto&& b : epoch) {
        if constexpr (ps::any_batch<decltype(b)>) {
          if (!f(values_of(b), b)) return {};
        } else {
          if (!f(numbers{b}, b)) return {};
        }
      }
  } catch (...) {
    return words_of_failure(std::current_exception());
  }
  return {};
}

outcome read_all(setting s, std::uint64_t epochs = 2) {
  outcome seen;
  with_plan(s, [&](const auto& plan) {
    auto run = plan.open();
    seen.failure = each(run, epochs, [&](numbers values, auto&) {
      seen.all.push_back(std::move(values));
      return true;
    });
  });
  return seen;
}

bool begins_with(const batches& all, const batches& some) {
  return some.size() <= all.size() && std::equal(some.begin(), some.end(), all.begin());
}

setting draw_setting(ps::rng& draw) {
  setting s;
  s.kind = static_cast<unsigned>(draw.below(kinds));
  s.workers = static_cast<unsigned>(draw.below(6));
  s.depth = 2 + draw.below(5);
  s.seed = draw.below(3);
  return s;
}
/// The batches of each setting without faults and workers, computed once.
const batches& clean(const setting& s) {
  static std::vector<std::optional<batches>> known(kinds * 3);
  auto& one = known[s.kind * 3 + static_cast<std::size_t>(s.seed)];
  if (!one) {
    setting alone = s;
    alone.workers = 0;
    alone.wrong = nullptr;
    one = read_all(alone).all;
  }
  return *one;
}

/// Calls `f(draw, round)` in rounds.
template <class F>
void in_rounds(std::uint64_t test, int few, int many, F f) {
  const char* first = std::getenv("PENSTOCK_FIRST_ROUND");
  const int begin = first == nullptr ? 0 : std::atoi(first);
  const int end = begin + (penstock_test::long_tests() ? many : few);
  for (int round = begin; round < end; ++round) {
    INFO("round " << round);
    ps::rng draw(test, 0, static_cast<std::uint64_t>(round));
    f(draw);
  }
}

void wait_some(ps::rng& draw) {
  const std::uint64_t how = draw.below(4);
  if (how == 0) return;
  if (how == 1) {
    for (std::uint64_t i = draw.below(40); i != 0; --i) std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(draw.below(how == 2 ? 100 : 1500)));
  }
}

}  // namespace

TEST_CASE("run/random_moments: a stop at any moment leaves a true prefix of the sequence") {
  const penstock_test::deadline guard("stops", std::chrono::seconds(280));
  std::uint64_t early = 0;
  in_rounds(1, 400, 6000, [&](ps::rng& draw) {
    const setting s = draw_setting(draw);
    INFO("kind " << s.kind << ", " << s.workers << " workers, depth " << s.depth << ", seed " << s.seed);
    batches seen;
    bool stopped = false;
    with_plan(s, [&](const auto& plan) {
      std::stop_source source;
      const bool by_token = draw.chance(0.5);
      auto run = by_token ? plan.open(source.get_token()) : plan.open();
      std::thread other([&, when = draw]() mutable {
        wait_some(when);
        if (by_token)
          source.request_stop();
        else
          run.request_stop();
      });
      const std::string failure = each(run, 2, [&](numbers values, auto&) {
        seen.push_back(std::move(values));
        return true;
      });
      other.join();
      stopped = run.stopped();
      CHECK(failure.empty());
    });
    CHECK(stopped);
    REQUIRE(begins_with(clean(s), seen));
    early += seen.size() < clean(s).size();
  });
  CHECK(early > 100);
}

TEST_CASE("run/random_moments: exceptions from every stage, at their place, whichever thread is faster") {
  const penstock_test::deadline guard("exceptions", std::chrono::seconds(280));
  std::uint64_t failed = 0;
  in_rounds(2, 300, 4000, [&](ps::rng& draw) {
    setting s = draw_setting(draw);
    faults wrong;
    for (std::uint64_t n = 1 + draw.below(5); n != 0; --n)
      wrong.at[static_cast<std::size_t>(draw.below(wrong.at.size()))].insert(draw.below(samples));
    s.wrong = std::make_shared<const faults>(std::move(wrong));
    INFO("kind " << s.kind << ", " << s.workers << " workers, depth " << s.depth << ", seed " << s.seed);
    setting alone = s;
    alone.workers = 0;
    const outcome expected = read_all(alone), seen = read_all(s);
    REQUIRE(seen.all == expected.all);
    REQUIRE(seen.failure == expected.failure);
    REQUIRE(begins_with(clean(s), seen.all));
    REQUIRE((!seen.failure.empty() || seen.all == clean(s)));
    failed += !seen.failure.empty();
    if (seen.failure.empty() || s.kind != 0) return;
    // At their place: the missing batch is the first one with a value that some stage refuses.
    const numbers& next = clean(s)[seen.all.size()];
    const auto refused = [&](const numbers& values) {
      return std::any_of(values.begin(), values.end(), [&](std::uint64_t x) {
        return s.wrong->at[0].count(x) + s.wrong->at[1].count(x) + s.wrong->at[3].count(x) != 0;
      });
    };
    REQUIRE(refused(next));
    REQUIRE(std::none_of(seen.all.begin(), seen.all.end(), refused));
  });
  CHECK(failed > 100);
}

TEST_CASE("run/random_moments: consumers that leave, or hold batches and release them in another thread") {
  const penstock_test::deadline guard("holding", std::chrono::seconds(280));
  in_rounds(3, 250, 2000, [&](ps::rng& draw) {
    setting s = draw_setting(draw);
    if (s.kind == 5) s.kind = 0;  // rows cannot be held
    INFO("kind " << s.kind << ", " << s.workers << " workers, depth " << s.depth << ", seed " << s.seed);
    const batches& all = clean(s);
    with_plan(s, [&](const auto& plan) {
      using run_type = std::remove_cvref_t<decltype(plan.open())>;
      using value_type = typename run_type::value_type;
      if constexpr (ps::any_batch<value_type>) {
        std::optional<run_type> run(plan.open());
        (void)run->epochs(2);
        std::vector<std::pair<std::size_t, value_type>> held;
        std::vector<std::thread> others;
        const std::size_t leaves_at = static_cast<std::size_t>(draw.below(all.size() + 1));
        for (std::size_t i = 0; i < leaves_at; ++i) {
          auto b = run->next();
          REQUIRE(b);
          REQUIRE(values_of(*b) == all[i]);
          if (draw.chance(0.5)) held.emplace_back(i, std::move(*b));
          // Two batches are in flight in chunks, so with a depth of n the test may hold n - 2 and one
          // more.
          while (held.size() + 2 > s.depth || (!held.empty() && draw.chance(0.2))) {
            const auto which = held.begin() + static_cast<std::ptrdiff_t>(draw.below(held.size()));
            REQUIRE(values_of(which->second) == all[which->first]);
            if (draw.chance(0.3)) {
              std::thread([gone = std::move(which->second), when = draw]() mutable {
                wait_some(when);
                auto let_go = std::move(gone);
              }).join();  // the next batch may need its memory
            }
            held.erase(which);
          }
        }
        // Batches outlive their run, and are released in another thread while it is torn down.
        for (auto& [i, b] : held) REQUIRE(values_of(b) == all[i]);
        if (draw.chance(0.5))
          others.emplace_back([gone = std::move(held), when = draw]() mutable {
            wait_some(when);
            gone.clear();
          });
        wait_some(draw);
        run.reset();
        for (auto& [i, b] : held) REQUIRE(values_of(b) == all[i]);
        for (auto& other : others) other.join();
      }
    });
  });
}

TEST_CASE("run/random_moments: pipelines that are opened and closed in many threads at once") {
  const penstock_test::deadline guard("many at once", std::chrono::seconds(280));
  for (unsigned kind = 0; kind < kinds; ++kind)
    for (std::uint64_t seed = 0; seed < 3; ++seed) (void)clean({kind, 0, seed, 2, nullptr});
  in_rounds(4, 12, 150, [&](ps::rng& draw) {
    std::atomic<unsigned> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 6; ++i)
      threads.emplace_back([&wrong, mine = ps::rng(draw.below(1u << 30), 1, i)]() mutable {
        for (int n = 0; n < 3; ++n) {
          setting s = draw_setting(mine);
          s.workers %= 4;
          const std::size_t leaves_at = mine.chance(0.5) ? static_cast<std::size_t>(mine.below(20)) : 1000;
          batches seen;
          with_plan(s, [&](const auto& plan) {
            auto run = plan.open();
            const std::string failure = each(run, 2, [&](numbers values, auto&) {
              seen.push_back(std::move(values));
              return seen.size() < leaves_at;
            });
            wrong += !failure.empty();
          });
          wrong += !begins_with(clean(s), seen);
          wrong += leaves_at == 1000 && seen.size() != clean(s).size();
        }
      });
    for (auto& thread : threads) thread.join();
    REQUIRE(wrong == 0);
  });
}

TEST_CASE("run/random_moments: changing limits at any moment does not change the sequence") {
  const penstock_test::deadline guard("limits", std::chrono::seconds(280));
  in_rounds(6, 300, 5000, [&](ps::rng& draw) {
    setting s = draw_setting(draw);
    s.workers = 1 + static_cast<unsigned>(draw.below(5));
    const bool stops = draw.chance(0.1);
    with_plan(s, [&](const auto& plan) {
      auto run = plan.open();
      batches seen;
      std::string failure;
      {
        const ps::run_limits maximum = run.limits();
        const auto move = [&run, maximum, stops, seed = draw.below(1u << 30)](const std::stop_token& end,
                                                                              std::uint64_t mover) {
          ps::rng moves(seed, mover, 0);
          const auto some = [&moves](std::optional<std::int64_t> limit, std::int64_t least) {
            return least +
                   static_cast<std::int64_t>(moves.below(static_cast<std::uint64_t>(*limit - least + 1)));
          };
          for (int i = 0; !end.stop_requested(); ++i) {
            ps::run_limits wanted;
            if (moves.chance(0.5)) wanted.workers = some(maximum.workers, 1);
            if (moves.chance(0.5)) wanted.depth = some(maximum.depth, 1);
            if (moves.chance(0.5)) wanted.ahead = some(maximum.ahead, 0);
            run.adjust(wanted);
            if (stops && i == 3) run.request_stop();
            wait_some(moves);
          }
        };
        std::jthread first(move, 1), second(move, 2);
        failure = each(run, 2, [&](numbers values, auto&) {
          seen.push_back(std::move(values));
          return true;
        });
      }
      CHECK(failure.empty());
      if (run.stopped())
        CHECK(begins_with(clean(s), seen));
      else
        CHECK(seen == clean(s));
    });
  });
}

namespace {

/// Work on the blocks of a bare ring, at a pace of its own; what it writes is plain memory, so that the
/// thread sanitizer sees whether the protocol orders it.
struct paced {
  std::vector<std::vector<std::uint64_t>>& blocks;
  std::uint64_t seed;
  void evaluate(std::uint64_t s, std::uint64_t grain) noexcept {
    ps::rng draw(seed, s, grain);
    take_time(draw);
    blocks[static_cast<std::size_t>(s % blocks.size())][static_cast<std::size_t>(grain)] = s * 100 + grain;
  }
  void finish(std::uint64_t s) noexcept {
    auto& block = blocks[static_cast<std::size_t>(s % blocks.size())];
    block.back() = s;
  }
  void waiting(bool) noexcept {}
  void rest() noexcept {}
};

struct held_once : ps::block {
  std::atomic<bool> taken{false};
  std::uint64_t plain = 0;  // the current holder may write it
};

}  // namespace

TEST_CASE(
    "run/random_moments: a bare ring, stopped at any moment, gives complete blocks in order until then") {
  const penstock_test::deadline guard("ring", std::chrono::seconds(280));
  in_rounds(5, 400, 5000, [&](ps::rng& draw) {
    const std::size_t size = static_cast<std::size_t>(1 + draw.below(5));
    const std::uint64_t grains = 1 + draw.below(6);
    ps::ring ring(size, grains, draw.chance(0.5) ? 0 : 50);
    std::vector<std::vector<std::uint64_t>> blocks(
        size, std::vector<std::uint64_t>(static_cast<std::size_t>(grains + 1)));
    const std::uint64_t seed = draw.below(1u << 30);  // outlives the threads
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 1 + draw.below(5); i != 0; --i)
      threads.emplace_back([&] {
        paced work{blocks, seed};
        ring.serve(work);
      });
    threads.emplace_back([&ring, when = draw]() mutable {
      wait_some(when);
      ring.stop();
    });
    std::uint64_t opened = 0;
    for (std::uint64_t s = 0;; ++s) {
      while (opened < s + size) ring.open(opened++);
      if (!ring.wait_ready(s)) break;
      auto& block = blocks[static_cast<std::size_t>(s % size)];
      REQUIRE(block.back() == s);
      for (std::uint64_t grain = 0; grain < grains; ++grain)
        REQUIRE(block[static_cast<std::size_t>(grain)] == s * 100 + grain);
      block.assign(block.size(), 0);  // belongs to the consumer until it reopens the block
    }
    REQUIRE(ring.stopped());
  });
}

TEST_CASE("run/random_moments: a pool gives each block to one holder, whichever thread returns it") {
  const penstock_test::deadline guard("pool", std::chrono::seconds(280));
  in_rounds(6, 100, 2000, [&](ps::rng& draw) {
    const std::size_t maximum = static_cast<std::size_t>(1 + draw.below(6));
    ps::block_pool pool(maximum, [](ps::block* b) noexcept { delete static_cast<held_once*>(b); });
    std::array<std::atomic<held_once*>, 4> hands{};
    std::atomic<bool> over{false};
    std::atomic<unsigned> wrong{0};
    std::vector<std::jthread> threads;
    for (auto& hand : hands)
      threads.emplace_back([&pool, &hand, &over, &wrong, when = draw]() mutable {
        while (!over || hand != nullptr) {
          held_once* const one = hand.exchange(nullptr);
          if (one == nullptr) {
            std::this_thread::yield();
            continue;
          }
          take_time(when);
          ++one->plain;
          wrong += !one->taken.exchange(false);
          pool.give_back(one);
        }
      });
    for (int given = 0; given < 200;) {
      auto* one = static_cast<held_once*>(pool.take());
      if (one == nullptr && pool.made() < maximum) one = pool.make([] { return new held_once; });
      if (one == nullptr) {
        std::this_thread::yield();
        continue;
      }
      wrong += one->taken.exchange(true);
      ++one->plain;
      for (auto at = static_cast<std::size_t>(draw.below(hands.size()));; at = (at + 1) % hands.size()) {
        held_once* none = nullptr;
        if (hands[at].compare_exchange_strong(none, one)) break;
        std::this_thread::yield();
      }
      ++given;
    }
    over = true;
    threads.clear();
    REQUIRE(wrong == 0);
    REQUIRE(pool.made() <= maximum);
    REQUIRE(pool.out() == 0);
  });
}

}  // namespace random_moments_test
