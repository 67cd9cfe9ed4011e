// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/workers/lone_samples.hpp>

#include <penstock/core/error.hpp>
#include <penstock/run/bad/bad_slot.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lone_samples_test {

namespace ps = penstock;

namespace {

/// Makes a number of a position in the source, but of multiples of three.
struct chain {
  struct worker {
    ps::detail::worker_root root;
  };
  template <class Sink, class Timing>
  void evaluate(ps::sample_position p, worker& w, Sink&& sink, Timing) const {
    if (p.source.index % 3 == 0) {
      w.root.failed = 0;
      throw ps::error(ps::errc::format, "three times " + std::to_string(p.source.index / 3));
    }
    sink(p.source.index);
  }
};
struct order {
  std::uint64_t count;
  [[nodiscard]] std::uint64_t size() const { return count; }
  [[nodiscard]] ps::position sample_at(ps::position p) const { return {0, p.index * every}; }
  std::uint64_t every = 1;
};
struct row {
  chain::worker& w;
  std::vector<std::uint64_t>& found;
  void operator()(std::uint64_t value) const { found.push_back(value); }
  void take_back() const {}
};
using replacing = ps::bad_is_replaced<order>;

}  // namespace

TEST_CASE(
    "run/lone_samples: a substitute is drawn until one is good, and random numbers are those of its place") {
  const order all{30};
  const ps::lone_samples<chain, replacing> lone({}, {&all, 7}, nullptr);
  chain::worker w;
  std::vector<std::uint64_t> found;
  ps::bad_slot one{0, {2, 9}, ps::error(ps::errc::format, "bad")};
  lone.find_substitute(one, row{w, found});
  REQUIRE(one.substitute.has_value());
  CHECK(one.substitute->epoch == 2);
  CHECK(one.substitute->index % 3 != 0);
  CHECK(found == std::vector<std::uint64_t>{one.substitute->index});
  CHECK(w.root.failed == ps::detail::worker_root::no_stage);
}

TEST_CASE(
    "run/lone_samples: where all are bad, or there is no other, the error keeps the first one's words") {
  const order bad{30, 3}, single{1};
  chain::worker w;
  std::vector<std::uint64_t> found;
  ps::bad_slot one{0, {0, 9}, ps::error(ps::errc::format, "the first")};
  const ps::lone_samples<chain, replacing> lone({}, {&bad, 7}, nullptr);
  CHECK_THROWS_WITH(
      lone.find_substitute(one, row{w, found}),
      penstock_test::contains("16 samples were drawn in place of a bad one, and all are bad; the first is: "
                              "the first"));
  one.tries = 0;
  const ps::lone_samples<chain, replacing> alone({}, {&single, 7}, nullptr);
  CHECK_THROWS_WITH(alone.find_substitute(one, row{w, found}),
                    penstock_test::contains("an epoch of one sample has no other to take: the first"));
  CHECK(found.empty());
}

TEST_CASE("run/lone_samples: the stage that failed is told once") {
  const std::vector<std::string> stages = {"numbers", "halve"};
  const ps::lone_samples<chain, ps::bad_is_fatal> lone({}, {}, &stages);
  chain::worker w;
  w.root.failed = 1;
  CHECK(lone.failed_stage(w) == "halve");
  CHECK(lone.failed_stage(w).empty());
}

}  // namespace lone_samples_test
