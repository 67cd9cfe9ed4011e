// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/state.hpp>

#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"
#include "support/resume_test.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace state_test {

namespace ps = penstock;
using namespace engine_test;

TEST_CASE("run/state: a refused state names the reason") {
  const penstock_test::deadline guard("refused");
  const auto source = ps::generated(50, identity) | ps::shuffle(ps::seed(3));
  const auto plan = source | ps::batch(4) | ps::workers(1);
  const auto state_of = [](const auto& p) {
    auto run = p.open();
    auto b = run.next();
    return run.state();
  };
  const auto refused = [](const auto& p, const ps::state& s, const char* why) {
    try {
      auto run = p.open(s);
      FAIL("was accepted, and should be refused: " << why);
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::state);
      CHECK_THAT(e.what(), penstock_test::contains(why));
    }
  };
  const ps::state good = state_of(plan);
  CHECK(state_of(plan) == good);
  refused(ps::generated(51, identity) | ps::shuffle(ps::seed(3)) | ps::batch(4), good,
          "another dataset: it has generated(50)");
  refused(ps::generated(50, identity) | ps::shuffle(ps::seed(4)) | ps::batch(4), good,
          "another sequence: it has shuffle(seed 3) where this plan has shuffle(seed 4)");
  refused(source | ps::batch(5), good, "another sequence");
  refused(source | ps::batch(4, ps::tail::drop), good, "another sequence");
  refused(source | ps::take(40) | ps::batch(4), good, "another sequence");
  refused(source | ps::filter(odd_thirds) | ps::batch(4), good, "another sequence");
  refused(source | ps::shuffle_buffer(9) | ps::batch(4), good, "another sequence");
  refused(source | ps::batch(4) | ps::seed(99), good, "another sequence");
  refused(source | ps::shuffle_buffer(9) | ps::shard(0, 2) | ps::batch(4),
          state_of(source | ps::shard(0, 2) | ps::shuffle_buffer(9) | ps::batch(4)), "another sequence");
  refused(source | ps::filter(odd_thirds) | ps::shard(0, 2) | ps::batch(4) | ps::steps(2),
          state_of(source | ps::shard(0, 2) | ps::filter(odd_thirds) | ps::batch(4) | ps::steps(2)),
          "another sequence");
  refused(source | ps::shard(0, 1) | ps::shuffle_buffer(9) | ps::batch(4),
          state_of(source | ps::shard(0, 2) | ps::shuffle_buffer(9) | ps::batch(2)), "not elastic");
  const auto noise = [](std::uint64_t x, ps::rng& random) { return x + random.below(3); };
  refused(source | ps::map(noise) | ps::batch(4), good,
          "it has batch of 4 in all, tail keep where this plan has map with random numbers");
  refused(source | ps::batch(4), state_of(source | ps::map(noise) | ps::batch(4)),
          "it has map with random numbers where this plan has batch of 4 in all");
  refused(source | ps::map(noise) | ps::batch(4),
          state_of(source | ps::map(noise, ps::key("crop")) | ps::batch(4)),
          "map with random numbers of key");
  refused(ps::plan(counting_source(9)) | ps::batch(2), state_of(ps::plan(counting_source(9)) | ps::batch(2)),
          "read forward");

  const auto edited = [&](auto change) {
    ps::state s = good;
    change(s);
    return s;
  };
  refused(plan, edited([](auto& s) { s.step = 14; }), "more steps");
  refused(plan, edited([](auto& s) { s.rank = 1; }), "rank 1 of 1");
  refused(plan, edited([](auto& s) { s.world = 0; }), "of 0");
  refused(plan, edited([](auto& s) { s.world = 3; }), "does not divide");
  refused(plan, edited([](auto& s) { s.epoch = ~std::uint64_t{0}; }), "no epoch");
  refused(plan, edited([](auto& s) { s.rows = 1; }), "counts samples");
  refused(plan, edited([](auto& s) { s.taken = 1, s.held = {0}; }), "shuffle_buffer");
  refused(plan, edited([](auto& s) { s.version = 4; }), "version 4");

  const auto mixed = source | ps::shuffle_buffer(9) | ps::batch(4);
  const ps::state held = state_of(mixed);
  for (int how = 0; how < 6; ++how) {
    ps::state s = held;
    if (how == 0) s.held[0] = 1'000'000;
    if (how == 1) s.held[0] = s.held[1];
    if (how == 2) s.held.pop_back();
    if (how == 3) s.taken = 1'000'000;
    if (how == 4) ++s.step;
    if (how == 5) s.held.clear();
    refused(mixed, s, "shuffle_buffer");
  }
  const auto kept = source | ps::filter(odd_thirds) | ps::batch(4);
  ps::state s = state_of(kept);
  s.ordinal = 1000;
  refused(kept, s, "more samples");
  s = state_of(kept);
  s.rows = s.survivors + 1;
  refused(kept, s, "more rows");
}

TEST_CASE("run/state: where pack stands is written if it stands within windows") {
  ps::state s;
  CHECK(to_string(s).find("packed") == std::string::npos);
  s.packed = {3, 17};
  const std::string text = to_string(s);
  CHECK(text.find("\"packed\": [\"3\",\"17\"]") != std::string::npos);
  CHECK(ps::state_from_string(text) == s);
  for (const auto& wrong : {std::vector<std::uint64_t>{3}, std::vector<std::uint64_t>{3, 1, 7}}) {
    s.packed = wrong;
    CHECK_THROWS_WITH(ps::state_from_string(to_string(s)),
                      penstock_test::contains("two numbers in \"packed\""));
  }
  s.begin_epoch(2);
  CHECK(s.packed.empty());
}

TEST_CASE("run/state: a stream gets the text of a state") {
  const auto plan = ps::from(std::vector<int>{1, 2, 3, 4}) | ps::batch(2);
  auto run = plan.open();
  std::ostringstream out;
  out << run.state() << '!';
  CHECK(out.str() == to_string(run.state()) + "!");
}

TEST_CASE("run/state: a text that was cut or edited is refused, with the place") {
  const auto mixed = ps::generated(50, identity) | ps::shuffle_buffer(9) | ps::batch(4);
  auto run = mixed.open();
  auto b = run.next();
  const ps::state s = run.state();
  const std::string text = to_string(s);
  CHECK(ps::state_from_string(text) == s);
  CHECK(text.substr(0, 24) == "{\"penstock_state\": \"3\", ");
  for (std::size_t length = 0; length < text.size(); ++length)
    CHECK_THROWS_AS(ps::state_from_string(text.substr(0, length)), ps::error);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = changed[at] == '#' ? '%' : '#';
    CHECK_THROWS_AS(ps::state_from_string(changed), ps::error);
  }
  CHECK_THROWS_AS(ps::state_from_string(text + "x"), ps::error);
  // Other programs' states, and text that is no state, are also one sentence, and never open a run.
  for (const std::string& foreign :
       {std::string(), std::string("{}"), std::string("\x80\x04\x95\0\0", 5), text.substr(0, 40),
        std::string(R"({"_snapshot": {"_snapshot_step": 7}, "_steps_since_snapshot": 0})"),
        std::string(R"({"epoch": 1, "sample_in_epoch": 640, "num_canonical_nodes": 2})"),
        std::string("[1, 2, 3]")}) {
    try {
      static_cast<void>(mixed.open(ps::state_from_string(foreign)));
      FAIL("a foreign state was opened");
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::state);
      CHECK_THAT(e.what(), penstock_test::contains("no state of a penstock run, or it was cut or edited") &&
                               penstock_test::contains("offset"));
      CHECK(std::string(e.what()).find('\n') == std::string::npos);
    }
  }
  CHECK(ps::state_from_string("\n " + text + " \n") == s);
  for (const std::string version : {"0", "2", "4"}) {
    try {
      (void)ps::state_from_string("{\"penstock_state\": \"" + version + "\", \"other\": 1}");
      FAIL("another version was read");
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::state);
      CHECK_THAT(e.what(), penstock_test::contains("version " + version) &&
                               penstock_test::contains("reads version 3; use the library that wrote it"));
      CHECK((std::string(e.what()).find("newer") != std::string::npos) == (version == "4"));
    }
  }
  // The error names the fault and its place.
  const auto wrong = [](const std::string& edited, std::string_view why) {
    CHECK_THROWS_WITH(ps::state_from_string(edited), penstock_test::contains(std::string(why)));
  };
  wrong("{\"penstock_state\": 2", "expected '\"' [offset 19]");
  wrong("{\"dataset\": \"2\"", "expected the name \"penstock_state\" [offset 1]");
  wrong("{\"penstock_state\": \"3\", \"dataset\": \"x\"",
        "expected a number of 64 bits as a string [offset 36]");
  wrong(text + "x", "expected the end [offset " + std::to_string(text.size()) + "]");
  CHECK_THROWS_AS(ps::state_from_string("{\"penstock_state\": \"99999999999999999999\"}"), ps::error);
  CHECK_THROWS_AS(ps::state_from_string("{\"penstock_state\": \"-1\"}"), ps::error);
}

TEST_CASE("run/state: it is small") {
  const auto source = ps::generated(100'000'000'000, identity);
  auto large = (source | ps::shuffle_buffer(10'000) | ps::batch(64)).open();
  auto small = (source | ps::shuffle(ps::seed(1)) | ps::batch(64)).open();
  for (int i = 0; i < 3; ++i) CHECK((large.next() && small.next()));
  CHECK(to_string(large.state()).size() < 200'000);
  CHECK(to_string(small.state()).size() < 4'000);
}

TEST_CASE("run/state: the states of all ranks become one, which every rank opens") {
  const auto source = ps::generated(100, identity) | ps::shuffle(ps::seed(3));
  const auto states_of = [](const auto& make, std::uint64_t world, int steps) {
    std::vector<ps::state> all;
    for (std::uint64_t rank = world; rank-- != 0;) {  // ranks in any order
      auto run = make(rank, world).open();
      for (int i = 0; i < steps; ++i) CHECK(run.next());
      all.push_back(run.state());
    }
    return all;
  };
  SECTION("for an elastic plan one is enough") {
    const auto make = [&](std::uint64_t rank, std::uint64_t world) {
      return source | ps::shard(rank, world) | ps::global_batch(10);
    };
    const ps::state merged = ps::merge(states_of(make, 3, 2));
    CHECK(merged.ranks.empty());
    CHECK(merged.rank == 0);
    auto run = make(4, 5).open(merged);
    CHECK(run.next()->step() == 2);
  }
  SECTION("for other plans each rank finds its own") {
    const auto make = [&](std::uint64_t rank, std::uint64_t world) {
      return source | ps::shard(rank, world) | ps::shuffle_buffer(9) | ps::batch(12 / world);
    };
    const ps::state merged = ps::merge(states_of(make, 3, 2));
    CHECK(merged.ranks.size() == 3);
    const ps::state again = ps::state_from_string(to_string(merged));
    CHECK(again == merged);
    for (std::uint64_t rank = 0; rank < 3; ++rank) {
      const trace whole = follow(make(rank, 3), 1, false), rest = follow(make(rank, 3), 1, false, again);
      CHECK(rest.elements == std::vector<numbers>(whole.elements.begin() + 2, whole.elements.end()));
    }
    CHECK_THROWS_WITH(make(0, 2).open(again),
                      penstock_test::contains("it is of 3 ranks, this is rank 0 of 2"));
    ps::state cut = merged;
    cut.ranks.pop_back();
    CHECK_THROWS_WITH(make(0, 3).open(cut), penstock_test::contains("merged of 2 ranks and says 3"));
  }
  SECTION("states that do not belong together are refused") {
    const auto make = [&](std::uint64_t rank, std::uint64_t world) {
      return source | ps::shard(rank, world) | ps::batch(4);
    };
    const auto refused = [&](auto change, const char* why) {
      std::vector<ps::state> all = states_of(make, 3, 1);
      change(all);
      CHECK_THROWS_WITH(ps::merge(all), penstock_test::contains(why));
    };
    refused([](auto& all) { all.clear(); }, "there is none");
    refused([](auto& all) { all.pop_back(); }, "there are 2, and one is from rank 2 of 3");
    refused([](auto& all) { all[1].rank = 2; }, "two are from rank 2");
    refused([](auto& all) { all[1].rank = 3; }, "rank 3 of 3");
    refused([](auto& all) { ++all[1].step; }, "rank 1 is at step 2 of epoch 0, rank 2 at step 1");
    refused([](auto& all) { ++all[1].dataset; }, "rank 1 reads other data");
    refused([](auto& all) { all[2].world = 4; }, "rank 0 is of 4 ranks, rank 2 of 3");
    refused([](auto& all) { all[2].ranks.push_back(all[0]); }, "already merged");
  }
}

TEST_CASE("run/state: it may be reformatted, but not changed") {
  const auto plan = ps::generated(50, identity) | ps::shuffle(ps::seed(3)) | ps::batch(4);
  auto run = plan.open();
  auto b = run.next();
  ps::state s = run.state();
  CHECK(s.plan == std::vector<std::string>{"generated(50)", "shuffle(seed 3)", "batch of 4 in all, tail keep",
                                           "seed(3)"});
  s.plan.emplace_back("a \"name\" with \\ and \n, \xc3\xa9 and \x7f | )( ]");
  s.plan.emplace_back();
  const std::string text = to_string(s);
  CHECK(ps::state_from_string(text) == s);
  std::string wide;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool quote = text[i] == '"' && (i == 0 || text[i - 1] != '\\');
    if (quote && !inside) wide += "\n\t ";
    if (quote) inside = !inside;
    wide += text[i];
    if (quote && !inside) wide += " \r\n";
  }
  CHECK(ps::state_from_string(wide) == s);
  // with one digit changed it would still be a state of this plan
  std::string edited = text;
  edited.replace(edited.find("\"step\": \"1\""), 11, "\"step\": \"2\"");
  CHECK_THROWS_WITH(ps::state_from_string(edited), penstock_test::contains("cut or edited"));
}

}  // namespace state_test
