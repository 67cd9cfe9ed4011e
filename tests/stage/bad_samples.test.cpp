// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/stage/bad_samples.hpp>

#include <penstock/observe/progress.hpp>
#include <penstock/observe/verdict.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/bad_samples.hpp"
#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/engine_test.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <list>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace stage_bad_samples_test {

namespace ps = penstock;
namespace bad = penstock::bad_samples;
using namespace bad_samples_test;

namespace {

const auto identity = [](std::uint64_t i) { return i; };
const auto not_third = [](std::uint64_t x) { return x % 3 != 2; };
const auto noisy = [](std::uint64_t x, ps::rng& random) {
  engine_test::dawdle(x);
  return x * 1000 + random.below(1000);
};
/// An element that goes through the arena: its length is known at run time.
const auto list_of = [](std::uint64_t x) { return std::vector<std::uint64_t>(1 + x % 3, x); };

/// Calls `test(name, make)` for plans of all kinds; `make(policy)` is the plan with that policy for bad
/// samples.
template <class Test>
void on_plans(Test test) {
  test("plain", [](auto policy) { return broken_source() | policy | ps::batch(6); });
  test("shuffled", [](auto policy) {
    return broken_source() | ps::shuffle(ps::seed(5)) | ps::map(noisy) | policy | ps::batch(6, ps::tail::pad);
  });
  test("windowed, lanes", [](auto policy) {
    return broken_source() | ps::shuffle(ps::seed(5), ps::window(1), ps::lanes(2)) | ps::map(noisy) | policy |
           ps::batch(6);
  });
  test("shuffle_buffer", [](auto policy) {
    return broken_source() | ps::shuffle_buffer(7, ps::seed(3)) | ps::map(noisy) | policy | ps::batch(6);
  });
  test("repeated, steps", [](auto policy) {
    return broken_source() | ps::repeat(2) | ps::map(noisy) | policy | ps::batch(6) | ps::steps(17);
  });
  test("ragged",
       [](auto policy) { return broken_source() | ps::map(list_of) | policy | ps::batch(6, ps::ragged); });
  test("padded", [](auto policy) {
    return broken_source() | ps::map(list_of) | policy | ps::batch(6, ps::pad_to_longest);
  });
  test("filter", [](auto policy) {
    return broken_source() | ps::shuffle(ps::seed(2)) | ps::filter(not_third) | ps::map(noisy) | policy |
           ps::batch(6);
  });
  test("filter, steps", [](auto policy) {
    return broken_source() | ps::filter(not_third) | policy | ps::batch(6) | ps::steps(11);
  });
  test("shuffle_buffer, filter, shard", [](auto policy) {
    return broken_source() | ps::shuffle_buffer(5, ps::seed(1)) | ps::filter(not_third) | ps::shard(1, 2) |
           policy | ps::batch(3, ps::tail::drop) | ps::steps(9);
  });
  test("unbatch",
       [](auto policy) { return broken_source() | ps::map(list_of) | ps::unbatch | policy | ps::batch(7); });
  test("unbatch, ragged", [](auto policy) {
    return broken_source() | ps::map(list_of) | ps::filter([](const auto& v) { return v.size() != 2; }) |
           policy | ps::batch(7, ps::ragged);
  });
  test("rows",
       [](auto policy) { return broken_source() | ps::shuffle(ps::seed(4)) | ps::map(noisy) | policy; });
}

/// The contents of a ledger, whichever rank wrote it.
std::string ledger_text(const std::filesystem::path& path) {
  return text_of(path) + text_of(path.parent_path() / ("bad.rank1" + path.extension().string()));
}

}  // namespace

TEST_CASE("stage/bad_samples: skip leaves a hole and moves no other sample") {
  const auto all = look(ps::generated(40, identity) | ps::batch(6));
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    auto run = (broken_source() | bad::skip(100) | ps::batch(6) | ps::workers(workers)).open();
    std::size_t step = 0, holes = 0;
    for (auto&& b : run) {
      REQUIRE(b.size() == (step == 6 ? 4 : 6));
      const auto positions = b.positions();
      const auto keys = b.keys();
      REQUIRE(positions.size() == b.size());
      REQUIRE(keys.size() == b.size());
      for (std::size_t i = 0; i < b.size(); ++i) {
        const std::uint64_t p = 6 * step + i;
        const bool good = std::find(some.begin(), some.end(), p) == some.end();
        CHECK(b.valid()[i] == (good ? 1 : 0));
        CHECK(b.values()[i] == (good ? p : 0));
        CHECK(positions[i] == ps::position{0, p});
        CHECK(keys[i] == std::to_string(p));
        holes += good ? 0 : 1;
      }
      ++step;
    }
    CHECK(step == all.elements.size());
    CHECK(holes == some.size());
    CHECK(run.bad_samples().skipped == some.size());
    CHECK(run.bad_samples().replaced == 0);
    CHECK(run.bad_samples().budget == 100);
    CHECK(run.counters().samples == 40 - some.size());
    CHECK(run.counters().skipped == some.size());
    CHECK_THAT(ps::report(run.counters()), penstock_test::contains("bad samples: 8 skipped, 0 replaced"));
    CHECK_THAT(ps::progress("x", 0).line(run.counters()), penstock_test::contains("  8 bad"));
  }
}

TEST_CASE("stage/bad_samples: replace uses another sample of the epoch, whatever the number of ranks") {
  const auto plan = [](std::uint64_t rank, std::uint64_t world) {
    return broken_source() | ps::shuffle(ps::seed(9)) | ps::take(30) | ps::shard(rank, world) |
           bad::replace(100) | ps::batch(30 / world / 2);
  };
  const auto whole = look(plan(0, 1));
  REQUIRE(whole.failure.empty());
  CHECK(whole.counts.skipped == 0);
  CHECK(whole.counts.replaced > 0);
  // Samples left out by take stay out, and good samples stay where they were.
  auto clean =
      (ps::generated(40, identity, {0, 10, 40}) | ps::shuffle(ps::seed(9)) | ps::take(30) | ps::batch(15))
          .open();
  engine_test::numbers taken;
  const auto cleanly = engine_test::read_epochs(clean, 1);
  for (const auto& b : cleanly[0]) taken.insert(taken.end(), b.begin(), b.end());
  auto run = plan(0, 1).open();
  std::size_t at = 0, changed = 0;
  for (auto&& b : run)
    for (const std::uint64_t x : b.values()) {
      CHECK(std::find(taken.begin(), taken.end(), x) != taken.end());
      CHECK(std::find(some.begin(), some.end(), x) == some.end());
      const bool was_bad = std::find(some.begin(), some.end(), taken[at]) != some.end();
      CHECK((x == taken[at]) == !was_bad);
      changed += was_bad;
      ++at;
    }
  CHECK(changed == whole.counts.replaced);
  // Three ranks have the global steps of one.
  std::vector<engine_test::numbers> steps(2);
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    auto part = plan(rank, 3).open();
    const auto mine = engine_test::read_epochs(part, 1)[0];
    REQUIRE(mine.size() == 2);
    for (std::size_t s = 0; s < 2; ++s) steps[s].insert(steps[s].end(), mine[s].begin(), mine[s].end());
  }
  auto alone = plan(0, 1).open();
  CHECK(engine_test::read_epochs(alone, 1)[0] == steps);
}

TEST_CASE("stage/bad_samples: batches, states, counts and ledger do not depend on the number of workers") {
  const penstock_test::deadline guard("workers");
  on_plans([](const char* name, auto make) {
    INFO(name);
    const auto check = [&](auto policy_with) {
      std::string first_text;
      seen first;
      for (const unsigned workers : {0u, 1u, 2u, 7u}) {
        INFO(workers << " workers");
        const penstock_test::temp_dir folder;
        const auto path = folder / "bad.jsonl";
        auto now = look(make(policy_with(bad::ledger(path.string()))) | ps::workers(workers), 2);
        const std::string text = ledger_text(path);
        CHECK(now.failure.empty());
        CHECK(lines_in(text) == now.counts.skipped + now.counts.replaced);
        CHECK(lines_in(text) > 0);
        if (workers == 0) {
          first = now;
          first_text = text;
          continue;
        }
        // Chunks may have another size, and a state counts the rows of the current one.
        if constexpr (!ps::plan_parts<decltype(make(bad::skip(1)))>::direct) now.states = first.states;
        CHECK(now == first);
        CHECK(text == first_text);
      }
    };
    check([](bad::ledger log) { return bad::skip(100, log); });
    check([](bad::ledger log) { return bad::replace(100, log); });
  });
}

TEST_CASE("stage/bad_samples: fatal acts like a plan without the stage") {
  on_plans([](const char* name, auto make) {
    INFO(name);
    const auto fatal = look(make(bad::fatal()) | ps::workers(2), 2);
    CHECK_THAT(fatal.failure, penstock_test::contains("is broken"));
    CHECK(look(make(ps::workers(2)), 2) == fatal);
    CHECK(fatal.counts.skipped == 0);
  });
  static_assert(!ps::plan_parts<decltype(broken_source() | bad::fatal() | ps::batch(3))>::tolerant);
}

TEST_CASE("stage/bad_samples: a run resumes from every state with the right rest, counts and ledger") {
  const penstock_test::deadline guard("resume", std::chrono::seconds(250));
  on_plans([](const char* name, auto make) {
    INFO(name);
    const auto check = [&](auto policy_with) {
      const penstock_test::temp_dir folder;
      const auto plan_to = [&](const std::string& file) {
        return make(policy_with(bad::ledger((folder / ("bad." + file)).string())));
      };
      const auto whole = look(plan_to("whole") | ps::workers(2), 2);
      const std::string ledger = ledger_text(folder / "bad.whole");
      REQUIRE(lines_in(ledger) == whole.counts.skipped + whole.counts.replaced);
      REQUIRE(whole.failure.empty());
      for (std::size_t i = 0; i<whole.elements.size(); i += whole.elements.size()> 40 ? 3 : 1) {
        INFO("after element " << i << ": " << whole.states[i]);
        const std::string file = std::to_string(i);
        seen begin;
        {
          auto run = (plan_to(file) | ps::workers(2)).open();
          begin = take_from(run, 2, i + 1);
        }
        REQUIRE(begin.states.back() == whole.states[i]);
        auto run = (plan_to(file) | ps::workers(static_cast<unsigned>(i % 3)))
                       .open(ps::state_from_string(whole.states[i]));
        CHECK(to_string(run.state()) == whole.states[i]);
        const auto rest = take_from(run, 2);
        REQUIRE(rest.elements == std::vector<std::string>(whole.elements.begin() + static_cast<int>(i) + 1,
                                                          whole.elements.end()));
        REQUIRE(ledger_text(folder / ("bad." + file)) == ledger);
        CHECK(rest.counts.in_epoch == whole.counts.in_epoch);
        CHECK(begin.counts.skipped + rest.counts.skipped == whole.counts.skipped);
        CHECK(begin.counts.replaced + rest.counts.replaced == whole.counts.replaced);
      }
    };
    check([](bad::ledger log) { return bad::skip(100, log); });
    check([](bad::ledger log) { return bad::replace(100, log); });
  });
}

TEST_CASE("stage/bad_samples: ranks do not drift, and none waits for one whose budget is spent") {
  const penstock_test::deadline guard("ranks");
  const auto plan = [](auto source, std::uint64_t rank, auto policy) {
    return source | ps::shuffle(ps::seed(3)) | ps::shard(rank, 3) | policy | ps::batch(2) | ps::workers(2);
  };
  const auto clean = ps::generated(60, identity);
  // Only rank 1 has bad samples: in its steps 1, 4 and 6.
  std::vector<std::uint64_t> which;
  {
    auto run = plan(clean, 1, bad::fatal()).open();
    for (auto&& b : run)
      if (b.step() == 1 || b.step() == 4 || b.step() == 6) which.push_back(b.values()[1]);
  }
  const auto data = ps::generated(60, broken{which});
  for (const std::uint64_t budget : {3u, 2u, 0u}) {
    std::vector<seen> all(3);
    std::vector<std::thread> ranks;
    for (std::uint64_t rank = 0; rank < 3; ++rank)
      ranks.emplace_back([&, rank] { all[rank] = look(plan(data, rank, bad::skip(budget))); });
    for (auto& one : ranks) one.join();
    for (std::uint64_t rank = 0; rank < 3; ++rank) {
      INFO("rank " << rank << ", budget " << budget);
      const auto without = look(plan(clean, rank, bad::fatal()));
      REQUIRE(without.elements.size() == 10);
      if (rank != 1) {
        CHECK(all[rank].elements == without.elements);
        CHECK(all[rank].failure.empty());
        continue;
      }
      const std::size_t until = budget == 3 ? 10 : budget == 2 ? 6 : 1;
      REQUIRE(all[1].elements.size() == until);
      for (std::size_t s = 0; s < until; ++s) {
        const bool holed = s == 1 || s == 4 || s == 6;
        const auto& now = all[1].elements[s];
        CHECK((now == without.elements[s]) == !holed);
        // The slot before the hole is unchanged.
        CHECK(now.substr(0, now.find(' ', 5)) == without.elements[s].substr(0, now.find(' ', 5)));
      }
      if (budget != 3)
        CHECK_THAT(all[1].failure,
                   penstock_test::contains("bad_samples::skip(" + std::to_string(budget) +
                                           "): rank 1 has spent its budget of " + std::to_string(budget) +
                                           " bad samples in epoch 0, and this is number " +
                                           std::to_string(budget + 1)) &&
                       penstock_test::contains("sample " + std::to_string(which[budget]) + " is broken"));
    }
  }
}

TEST_CASE(
    "stage/bad_samples: a run with a spent budget stops before the batch, and may resume with a larger one") {
  on_plans([](const char* name, auto make) {
    INFO(name);
    const auto whole = look(make(bad::skip(100)) | ps::workers(2), 2);
    for (const std::uint64_t budget : {0u, 1u, 4u}) {
      auto run = (make(bad::skip(budget)) | ps::workers(2)).open();
      const auto some_of = take_from(run, 2);
      CHECK_THAT(some_of.failure, penstock_test::contains("has spent its budget"));
      CHECK(run.stopped());
      const auto here = run.state();
      CHECK(here.bad <= budget);
      const auto rest = look(make(bad::skip(100)) | ps::workers(1), 2, here);
      auto joined = some_of.elements;
      joined.insert(joined.end(), rest.elements.begin(), rest.elements.end());
      CHECK(joined == whole.elements);
      CHECK(some_of.counts.skipped + rest.counts.skipped == whole.counts.skipped);
    }
  });
}

TEST_CASE("stage/bad_samples: a budget is per epoch, a count or a fraction") {
  const auto plan = [](bad::budget maximum) { return broken_source() | bad::skip(maximum) | ps::batch(8); };
  CHECK(look(plan(8), 3).failure.empty());
  CHECK(look(plan(8), 3).counts.skipped == 24);
  CHECK_THAT(look(plan(7), 3).failure, penstock_test::contains("this is number 8"));
  CHECK(look(plan(bad::fraction(0.2)), 3).failure.empty());
  CHECK(look(plan(bad::fraction(0.2)), 1).counts.budget == 8);
  CHECK(look(plan(bad::fraction(0.187)), 1).counts.budget == 7);
  CHECK_THAT(look(plan(bad::fraction(0.187)), 1).failure, penstock_test::contains("budget of 7"));
  CHECK(look(plan(bad::fraction(0.0001)), 1).counts.budget == 1);
  CHECK(look(plan(bad::fraction(0)), 1).counts.budget == 0);
  // A fraction of this rank's samples.
  for (std::uint64_t rank = 0; rank < 3; ++rank)
    CHECK((ps::generated(40, identity) | ps::shard(rank, 3) | bad::skip(bad::fraction(1)) | ps::batch(4))
              .open()
              .bad_samples()
              .budget == (rank == 0   ? 13
                          : rank == 1 ? 13
                                      : 14));
  CHECK((ps::generated(40, identity) | ps::filter(not_third) | bad::skip(bad::fraction(0.5)) | ps::batch(4))
            .open()
            .bad_samples()
            .budget == 20);
  const auto refused = [](auto open) {
    try {
      open();
    } catch (const ps::error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string unknown = "the number of samples per epoch is unknown";
  CHECK_THAT(refused([] {
               (void)(ps::from(std::list<int>{1, 2}) | bad::skip(bad::fraction(0.5)) | ps::batch(1)).open();
             }),
             penstock_test::contains(unknown));
  CHECK_THAT(refused([] {
               (void)(ps::from({1, 2}) | ps::filter([](int) { return true; }) |
                      bad::skip(bad::fraction(0.5)) | ps::batch(1) | ps::steps(3))
                   .open();
             }),
             penstock_test::contains(unknown));
  CHECK_THAT(refused([] { (void)bad::skip(-1); }), penstock_test::contains("cannot be negative"));
  for (const double wrong : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THAT(refused([&] { (void)bad::fraction(wrong); }), penstock_test::contains("between 0 and 1"));
  CHECK_THAT(refused([] { (void)bad::fraction(1.5); }),
             penstock_test::contains("fraction(1.5) is not between"));
  // A fraction of endless data would be an endless budget.
  const auto endless = [&](auto plan_of) {
    CHECK_THAT(refused([&] { (void)plan_of(bad::skip(bad::fraction(0.01))).open(); }),
               penstock_test::contains("or if an epoch has no end; give a count"));
    CHECK(look(plan_of(bad::skip(1))).failure.find("this is number 2") != std::string::npos);
  };
  endless([](auto policy) { return broken_source() | ps::repeat() | policy | ps::batch(8); });
  endless([](auto policy) { return broken_source() | policy | ps::batch(8) | ps::repeat(); });
  endless(
      [](auto policy) { return broken_source() | ps::repeat() | ps::shard(1, 3) | policy | ps::batch(8); });
  endless([](auto policy) {
    return broken_source() | ps::repeat() | ps::filter(not_third) | policy | ps::batch(8);
  });
  CHECK((broken_source() | ps::repeat() | bad::skip(bad::fraction(0.5)) | ps::batch(8) | ps::steps(3))
            .open()
            .bad_samples()
            .budget == 12);
}

TEST_CASE("stage/bad_samples: a fraction is described as it was written") {
  CHECK(bad::skip(bad::fraction(0.0000001)).describe() == "bad_samples::skip(fraction(1e-07))");
  CHECK(bad::skip(bad::fraction(0.001)).describe() == "bad_samples::skip(fraction(0.001))");
  CHECK(bad::replace(bad::fraction(0.12345678)).describe() == "bad_samples::replace(fraction(0.12345678))");
  CHECK(bad::skip(bad::fraction(1)).describe() == "bad_samples::skip(fraction(1))");
}

TEST_CASE(
    "stage/bad_samples: with another number of ranks each starts with its share of the count, rounded up") {
  const auto plan = [](std::uint64_t rank, std::uint64_t world, std::uint64_t budget) {
    return broken_source() | ps::shard(rank, world) | bad::skip(budget) | ps::batch(8 / world);
  };
  auto before = plan(0, 1, 100).open();
  (void)take_from(before, 1, 3);  // positions 0 to 23: four bad ones
  CHECK(before.state().bad == 4);
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    auto run = plan(rank, 4, 100).open(before.state());
    CHECK(run.bad_samples().in_epoch == 1);
    CHECK(run.state().bad == 1);
  }
  auto two = plan(1, 2, 100).open();
  (void)take_from(two, 1, 1);
  CHECK(two.state().bad == 1);  // sample 4
  auto one = plan(0, 1, 100).open(two.state());
  CHECK(one.bad_samples().in_epoch == 2);
  // A loop without batches counts samples in rows, of which there are fewer now.
  const auto rows = [](std::uint64_t rank, std::uint64_t world) {
    return broken_source() | ps::shard(rank, world) | bad::skip(100);
  };
  auto loop = rows(0, 1).open();
  (void)take_from(loop, 1, 5);
  CHECK_THROWS_WITH(rows(0, 2).open(loop.state()),
                    penstock_test::contains("left out of a loop without batches"));
}

TEST_CASE("stage/bad_samples: errors that do not depend on the bytes stay fatal") {
  for (const auto code : {ps::errc::io, ps::errc::argument, ps::errc::state, ps::errc::stopped})
    for (const unsigned workers : {0u, 2u}) {
      const auto data = broken_source(40, code);
      CHECK_THAT(look(data | bad::skip(100) | ps::batch(6) | ps::workers(workers)).failure,
                 penstock_test::contains("sample 0 is broken"));
      CHECK_THAT(look(data | bad::replace(100) | ps::batch(6) | ps::workers(workers)).failure,
                 penstock_test::contains("sample 0 is broken"));
      CHECK_THAT(
          look(data | ps::filter(not_third) | bad::skip(100) | ps::batch(6) | ps::workers(workers)).failure,
          penstock_test::contains("sample 0 is broken"));
    }
  for (const auto code :
       {ps::errc::format, ps::errc::checksum, ps::errc::missing, ps::errc::limit, ps::errc::shape})
    CHECK(look(broken_source(40, code) | bad::skip(100) | ps::batch(6)).failure.empty());
  const auto throws = [](std::uint64_t x) -> std::uint64_t {
    if (x == 20) throw std::runtime_error("not ours");
    return x;
  };
  const auto ended = look(broken_source() | ps::map(throws) | bad::skip(100) | ps::batch(6));
  CHECK_THAT(ended.failure,
             penstock_test::contains("exception: not ours [stage map, key 20, position 0:20]"));
  CHECK(ended.elements.size() == 3);
  CHECK(ended.counts.skipped == 4);
  // If a substitute cannot be read, no other one is drawn.
  const auto half = ps::generated(2, [](std::uint64_t i) -> std::uint64_t {
    throw ps::error(i == 0 ? ps::errc::format : ps::errc::io, i == 0 ? "bad bytes" : "no disk");
  });
  CHECK_THAT(look(half | bad::replace(5) | ps::batch(1)).failure, penstock_test::contains("no disk"));
}

TEST_CASE("stage/bad_samples: replace gives up if every substitute is bad") {
  const auto none = ps::generated(50, [](std::uint64_t i) -> std::uint64_t {
    throw ps::error(ps::errc::checksum, "number " + std::to_string(i));
  });
  for (const unsigned workers : {0u, 2u}) {
    const auto ended = look(none | bad::replace(100) | ps::batch(4) | ps::workers(workers));
    CHECK_THAT(ended.failure, penstock_test::contains(
                                  "16 samples were drawn in place of a bad one, and all are bad; the first "
                                  "is: number 0 [position 0:0]"));
    CHECK_THAT(
        look(none | ps::filter(not_third) | bad::replace(100) | ps::batch(4) | ps::workers(workers)).failure,
        penstock_test::contains("16 samples were drawn"));
  }
  CHECK_THAT(look(none | ps::take(1) | bad::replace(100) | ps::batch(4)).failure,
             penstock_test::contains("an epoch of one sample has no other to take: number 0 [position 0:0]"));
  CHECK(look(none | bad::skip(50) | ps::batch(4)).elements.size() == 13);
}

TEST_CASE("stage/bad_samples: every sample is bad in turn") {
  const penstock_test::deadline guard("in turn");
  constexpr std::uint64_t size = 23;
  const auto good = look(ps::generated(size, identity) | ps::map(list_of) | ps::batch(5, ps::ragged));
  for (const unsigned workers : {0u, 2u})
    for (std::uint64_t k = 0; k < size; ++k) {
      INFO(k);
      const auto data = ps::generated(size, broken{{k}});
      const auto holed =
          look(data | ps::map(list_of) | bad::skip(1) | ps::batch(5, ps::ragged) | ps::workers(workers));
      REQUIRE(holed.failure.empty());
      REQUIRE(holed.elements.size() == good.elements.size());
      for (std::size_t s = 0; s < good.elements.size(); ++s)
        CHECK((holed.elements[s] == good.elements[s]) == (s != k / 5));
      CHECK_THAT(holed.elements[k / 5], penstock_test::contains(" ()-@" + std::to_string(k)));
      const auto other = look(data | bad::replace(1) | ps::batch(5) | ps::workers(workers));
      CHECK(other.failure.empty());
      CHECK(other.counts.replaced == 1);
      // A chunk continues without it.
      engine_test::numbers rest;
      auto run =
          (data | ps::filter([](auto) { return true; }) | bad::skip(1) | ps::batch(5) | ps::workers(workers))
              .open();
      const auto dropped = engine_test::read_epochs(run, 1);
      for (const auto& b : dropped[0]) rest.insert(rest.end(), b.begin(), b.end());
      engine_test::numbers wanted = engine_test::iota(size);
      wanted.erase(wanted.begin() + static_cast<int>(k));
      CHECK(rest == wanted);
    }
}

TEST_CASE("stage/bad_samples: over a forward source a bad sample is dropped") {
  std::list<int> all;
  for (int i = 0; i < 30; ++i) all.push_back(i);
  const auto thrower = ps::map([](int x) {
    if (x % 7 == 2) throw ps::error(ps::errc::format, "a seventh");
    return x;
  });
  const penstock_test::temp_dir folder;
  for (const unsigned workers : {0u, 1u, 3u}) {
    const auto path = folder / std::to_string(workers);
    const auto got = look(ps::from(all) | thrower | bad::skip(4, bad::ledger(path.string())) | ps::batch(26) |
                          ps::workers(workers));
    CHECK(got.failure.empty());
    CHECK(got.elements ==
          std::vector<std::string>{
              "0/0: 0@0 1@1 3@3 4@4 5@5 6@6 7@7 8@8 10@10 11@11 12@12 13@13 14@14 15@15 17@17 "
              "18@18 19@19 20@20 21@21 22@22 24@24 25@25 26@26 27@27 28@28 29@29"});
    CHECK(got.counts.skipped == 4);
    CHECK(text_of(path) == text_of(folder / "0"));
    CHECK(lines_in(text_of(path)) == 4);
  }
}

TEST_CASE("stage/bad_samples: a sample that unbatch splits is dropped with all its rows") {
  const auto each = ps::generated(6,
                                  [](std::uint64_t x) {
                                    return std::vector<std::uint64_t>{x, x + 10, x + 20};
                                  }) |
                    ps::unbatch | ps::map([](std::uint64_t x) {
                      if (x == 22) throw ps::error(ps::errc::format, "the last part of sample 2");
                      return std::vector<std::uint64_t>(x % 2 + 1, x);
                    });
  for (const unsigned workers : {0u, 2u}) {
    const auto got = look(each | bad::skip(1) | ps::batch(100, ps::ragged) | ps::workers(workers));
    REQUIRE(got.elements.size() == 1);
    CHECK_THAT(got.elements[0], penstock_test::contains("(21 21 )@1 (3 3 )@3"));
    CHECK_THAT(got.elements[0], !penstock_test::contains("@2"));
    const auto other = look(each | bad::replace(1) | ps::batch(100, ps::ragged) | ps::workers(workers));
    REQUIRE(other.elements.size() == 1);
    CHECK(other.counts.replaced == 1);
    CHECK_THAT(other.elements[0], penstock_test::contains("@2"));
    CHECK_THAT(other.elements[0], !penstock_test::contains("(2 )"));
  }
}

}  // namespace stage_bad_samples_test
