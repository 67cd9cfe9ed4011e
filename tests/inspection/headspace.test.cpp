// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/inspection/headspace.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace headspace_test {

namespace ps = penstock;
using namespace penstock_test;
using ps::headspace_stages;

/// Few steps, whatever they take.
const ps::headspace_options quick{.batches = 2, .at_least = {}, .warm_up = 1, .turns = 2};

/// Twelve numbers in batches of four, with a stage that takes a while.
auto slow_numbers(unsigned workers, std::chrono::milliseconds each) {
  return ps::from(first_ints(12)) | ps::map([each](int x) {
           std::this_thread::sleep_for(each);
           return x;
         }) |
         ps::batch(4) | ps::workers(workers);
}

ps::detail::headspace_leg leg(double seconds, double used = 0, double waited = 0) {
  ps::detail::headspace_leg made;
  made.turns = {seconds * 2, seconds, seconds / 2};
  made.steps = 1;
  made.use = {used, waited};
  return made;
}

/// A loader with two workers that takes 20 ms a batch, of which reading is 16, before a step of 5.
ps::detail::headspace_legs slow_disk() {
  ps::detail::headspace_legs legs;
  legs.processors = 2;
  legs.real = leg(0.020);
  legs.cached = leg(0.005);
  legs.loader = leg(0.020);
  auto& c = legs.loader.counters;
  c.workers = 2;
  c.seconds = 0.02;
  c.worker_seconds = 0.04;
  c.batches = 1;
  c.stall_seconds = 0.015;
  c.worker_busy_seconds = 0.038;
  c.stages = {{"tar <&>", 4, 0.032}, {"decode", 4, 0.006}, {"flip", 4, 0.002}};
  legs.real.counters = c;
  legs.first = leg(0.004);
  legs.first_stages = 1;
  return legs;
}

TEST_CASE("inspection/headspace: what loops took says what holds a loop back") {
  const auto judged = [](const ps::detail::headspace_legs& legs) {
    return ps::detail::judge_headspace(legs).why.limit;
  };
  auto legs = slow_disk();
  const auto found = ps::detail::judge_headspace(legs);
  CHECK(found.why.limit == ps::bottleneck::io);
  CHECK(found.why.busiest == "tar <&>");
  CHECK(found.share() == Approx(0.75));
  CHECK(found.max_gain() == Approx(4));
  CHECK(found.spread == Approx(1.5));
  REQUIRE(found.stages.size() == 3);
  CHECK(found.stages[0].saved == Approx(0.016));
  CHECK(found.stages[0].measured);
  CHECK(found.stages[1].saved == Approx(0.003));
  CHECK(found.stages[2].saved == Approx(0.001));
  CHECK_FALSE(found.stages[2].measured);
  CHECK(
      found.text() ==
      "A step takes 20.0 ms with the loader and 5.00 ms with a batch that is there already: loading costs "
      "75.0% of the time, and with any other loader the loop would be at most 4.0 times as fast. The loader "
      "alone needs 20.0 ms a batch. Without 'tar <&>' it would need 16.0 ms less, without 'decode' it would "
      "need about 3.00 ms less, without 'flip' it would need about 1.00 ms less. It is I/O-bound: 'tar <&>' "
      "holds the loop back: try prefetch(n), a faster disk, a cache, keep_in_memory, more workers, or fewer "
      "bytes per sample. The turns of the loop differed by 150.0%: measure longer, or when the machine is "
      "quiet.");
  CHECK_THAT(found.svg(), contains("tar &lt;&amp;&gt;") && contains("16.0 ms, 80.0%") && contains("</svg>"));

  legs.loader.counters.source_computes = true;
  CHECK(judged(legs) == ps::bottleneck::cpu);

  legs = slow_disk();
  legs.first = leg(0.019);
  legs.last = leg(0.002);
  legs.last_stages = 2;
  CHECK(judged(legs) == ps::bottleneck::cpu);
  CHECK(ps::detail::judge_headspace(legs).why.busiest == "decode");

  legs.last = leg(0.018);
  legs.on_host = leg(0.003);
  legs.copy = "pin_and_copy";
  CHECK(judged(legs) == ps::bottleneck::copy);

  legs = slow_disk();
  legs.cached = leg(0.0195);
  CHECK(judged(legs) == ps::bottleneck::consumer);

  // disturbed, but not by waiting
  legs.cached = leg(0.012);
  legs.real.counters.stall_seconds = 0.0005;
  CHECK(judged(legs) == ps::bottleneck::consumer);
  legs.loop_gathers = true;
  CHECK(judged(legs) == ps::bottleneck::io);

  // uneven: workers have no room while the loop waits
  legs = slow_disk();
  legs.real.counters.waiting_for_room = 0.05;
  legs.real.counters.waiting_for_room_in_stall = 0.02;
  CHECK(judged(legs) == ps::bottleneck::jitter);

  // no threads
  legs = slow_disk();
  legs.loader.counters.workers = 0;
  CHECK_THAT(ps::detail::judge_headspace(legs).why.advice, contains("workers(n)"));

  // nothing stands out
  legs = slow_disk();
  legs.first = leg(0.020);
  legs.loader.counters.stages.clear();
  CHECK(judged(legs) == ps::bottleneck::io);
}

TEST_CASE("inspection/headspace: threads that wait for each other's processors") {
  // one processor, which step and loader need for 10 ms each
  auto legs = slow_disk();
  legs.processors = 1;
  legs.real = leg(0.020, 0.020, 0.018);
  legs.cached = leg(0.010, 0.010);
  legs.loader = leg(0.010, 0.010);
  legs.loader.counters.workers = 1;
  const auto limit = [&] { return ps::detail::judge_headspace(legs).why.limit; };
  CHECK(limit() == ps::bottleneck::starved);
  // beside another program, which takes two thirds of it
  legs.real = leg(0.060, 0.020, 0.090);
  legs.cached = leg(0.030, 0.010, 0.020);
  legs.loader = leg(0.030, 0.010, 0.020);
  legs.loader.counters.workers = 1;
  CHECK(limit() == ps::bottleneck::starved);
  // beside so many that it hides what the two do to each other
  legs.real = leg(0.066, 0.010, 0.120);
  legs.cached = leg(0.067, 0.005, 0.062);
  legs.loader = leg(0.069, 0.005, 0.064);
  legs.loader.counters.workers = 1;
  CHECK(limit() == ps::bottleneck::starved);
  // on four processors the other program is to blame, if anything is
  legs.processors = 4;
  CHECK(limit() != ps::bottleneck::starved);
  // four workers on two processors, and a quick step
  legs.processors = 2;
  legs.cached = leg(0.001);
  legs.real = legs.loader = leg(0.010, 0.020, 0.018);
  legs.loader.counters.workers = 4;
  CHECK(limit() == ps::bottleneck::starved);
  // two of them, beside another program
  legs.real = legs.loader = leg(0.030, 0.020, 0.040);
  legs.loader.counters.workers = 2;
  CHECK(limit() != ps::bottleneck::starved);
}

TEST_CASE("inspection/headspace: a few samples stand in for all, and random stages go on") {
  std::atomic<int> made{0};
  const auto plan = ps::generated(200,
                                  [&](std::uint64_t i) {
                                    ++made;
                                    return i;
                                  }) |
                    ps::shuffle(ps::seed(3)) | ps::map([](std::uint64_t x) { return x * 1000; }) |
                    ps::map([](std::uint64_t x, ps::rng& r) { return x + r.below(1000); }) | ps::batch(10);
  using places = ps::detail::repeat_places_of<std::remove_const_t<decltype(plan)>>;
  STATIC_REQUIRE(places::value.first == 0);
  STATIC_REQUIRE(places::value.last == 2);  // behind the first map, which is the second stage
  STATIC_REQUIRE(places::counted(0) == 1);
  STATIC_REQUIRE(places::counted(2) == 2);

  const auto values = values_of(ps::detail::with_repeated_samples<2>(plan), 0);
  CHECK(made == 32);
  REQUIRE(values.size() == 200);
  std::set<std::uint64_t> of_samples, random;
  for (const std::uint64_t value : values) of_samples.insert(value / 1000), random.insert(value % 1000);
  CHECK(of_samples.size() == 32);
  CHECK(random.size() > 100);

  // Members of tar samples are known once they are decoded.
  using tar = decltype(ps::webdataset("x.tar") | ps::decode<ps::field<"cls", ps::integer>> | ps::batch(2));
  STATIC_REQUIRE(ps::detail::repeat_places_of<tar>::value.first == 1);
  using chosen = decltype(ps::from({1, 2}) | ps::filter([](int) { return true; }) |
                          ps::map([](int x) { return x; }) | ps::batch(2));
  STATIC_REQUIRE(ps::detail::repeat_places_of<chosen>::value.last == ps::detail::repeat_places::nowhere);
}

TEST_CASE("inspection/headspace: a slow source is named, and how much it costs") {
  std::uint64_t last_epoch = 0;
  bool is_as_left = false;  // the batch of the loop without a loader
  const auto step = [&](auto& b) {
    last_epoch = std::max(last_epoch, b.epoch());
    if (b.values()[0] == 1000) is_as_left = true;
    b.values()[0] = 1000;
  };
  const auto found =
      ps::headspace(slow_numbers(1, std::chrono::milliseconds(1)), step,
                    {.batches = 4, .at_least = {}, .turns = 2, .within = std::chrono::milliseconds(1500)});
  CHECK(is_as_left);
  CHECK(last_epoch > 1);  // a plan of three batches goes on
  CHECK(found.why.limit == ps::bottleneck::cpu);
  CHECK(found.why.busiest == "map");
  CHECK(found.share() > 0.5);
  CHECK(found.steps >= 2);
  REQUIRE(found.stages.size() == 2);
  CHECK(found.stages[1].measured);
  INFO(found.text());
  CHECK(found.stages[1].saved > found.stages[0].saved);
  CHECK(found.stages[1].busy > 0);
}

TEST_CASE("inspection/headspace: what a step throws passes through, and a batch must stay") {
  const auto plan = slow_numbers(1, {});
  constexpr auto counted = headspace_stages::counted;
  int steps = 0;
  const auto throwing = [&](auto&) {
    if (++steps == 5) throw std::runtime_error("a step");
  };
  CHECK_THROWS_WITH(ps::headspace<counted>(plan, throwing, quick), "a step");
  CHECK(error_of([&] {
          (void)ps::headspace<counted>(
              plan, [](auto& b) { b.reset(); }, quick);
        }) ==
        "penstock: headspace: the step moves its batch away, so it cannot get the same one again; let it "
        "take the batch "
        "by reference");
  CHECK_THAT(error_of([&] { (void)ps::headspace<counted>(plan, [](auto&) {}, {.batches = 0}); }),
             contains("at least 1"));
  CHECK_THAT(error_of([&] { (void)ps::headspace<counted>(plan, [](auto&) {}, {.turns = 1001}); }),
             contains("1 to 1000"));
  CHECK_THAT(error_of([&] { (void)ps::headspace<counted>(plan, [](auto&) {}, {.within = {}}); }),
             contains("above 0"));

  // A step of no cost; without threads; and one turn that has no time.
  for (const unsigned workers : {0u, 1u}) {
    const auto found = ps::headspace<counted>(
        slow_numbers(workers, {}), [](auto&) {}, quick);
    CHECK(found.share() > 0);
    CHECK(found.stages.size() == 2);
    CHECK_FALSE(found.stages[1].measured);
  }
  auto hurried = quick;
  hurried.within = std::chrono::nanoseconds(1);
  CHECK(ps::headspace<counted>(
            plan, [](auto&) {}, hurried)
            .steps == 2);

  std::stop_source stop;
  auto stoppable = quick;
  stoppable.stop = stop.get_token();
  const auto found = ps::headspace<counted>(
      plan, [&](auto&) { stop.request_stop(); }, stoppable);
  CHECK(found.stopped);
  CHECK_THAT(found.text(), contains("was stopped"));
}

/// Counts, and can only be read forward.
struct counting_source : ps::opens_as_plan<counting_source> {
  using penstock_part = ps::source_tag;
  using element = int;
  static constexpr std::string_view source_name = "counting";
  struct reader {
    int at = 0;
    bool next(int& into) {
      into = at++;
      return at <= 9;
    }
    void rewind(std::uint64_t) { at = 0; }
  };
  [[nodiscard]] static std::string describe() { return "counting"; }
  [[nodiscard]] static std::uint64_t fingerprint() { return 1; }
  [[nodiscard]] static reader connect() { return {}; }
};

TEST_CASE("inspection/headspace: samples without batches, forward sources, and nothing at all") {
  int sum = 0;
  const auto rows = ps::headspace(
      counting_source{}, [&](int& x) { sum += x; }, quick);
  CHECK(rows.steps == 4);
  CHECK(rows.real > 0);
  CHECK(sum > 0);
  const auto none = ps::from({1, 2, 3}) | ps::filter([](int x) { return x > 3; }) | ps::batch(2);
  CHECK_THAT(error_of([&] {
               (void)ps::headspace<headspace_stages::counted>(
                   none, [](auto&) {}, quick);
             }),
             contains("has no batch"));
}

}  // namespace headspace_test
