// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/workers/evaluator.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace evaluator_test {

namespace ps = penstock;
using namespace engine_test;

namespace {

constexpr auto identity = [](std::uint64_t i) { return i; };

/// Throws for the given positions while `faulty` is on.
struct fault {
  std::vector<std::uint64_t> at;
  const std::atomic<bool>* faulty;
  void look(std::uint64_t x) const {
    dawdle(x);
    for (const std::uint64_t bad : at)
      if (x == bad && faulty->load())
        throw ps::error(ps::errc::format, "sample " + std::to_string(x) + " is broken").in_stage("test");
  }
};

/// The values before the failure, its message, and the position of the run after it.
struct outcome {
  numbers delivered;
  std::string what;
  std::optional<ps::position> at;
  ps::state left;
};
template <class Plan>
outcome run_to_failure(const Plan& plan) {
  outcome result;
  auto run = plan.open();
  try {
    for (auto epoch : run.epochs(2)) {
      for (auto&& b : epoch) {
        if constexpr (requires { b.valid_size(); }) {
          const numbers values = values_of(b);
          result.delivered.insert(result.delivered.end(), values.begin(), values.end());
        } else {
          result.delivered.push_back(static_cast<std::uint64_t>(b));
        }
      }
    }
  } catch (const ps::error& e) {
    result.what = e.what();
    result.at = e.at();
    CHECK(e.code() == ps::errc::format);
  }
  CHECK(run.stopped());
  result.left = run.state();
  if constexpr (requires { run.next(); }) CHECK(run.next().ended());
  return result;
}
/// Checks a plan over samples 0 .. n - 1, twice, of which one breaks; then that the run continues once the
/// fault is off.
template <class Plan>
void check_failure(const Plan& plan, std::atomic<bool>& faulty, std::uint64_t n, ps::position bad,
                   std::uint64_t before) {
  faulty = true;
  const outcome result = run_to_failure(plan);
  INFO(result.what);
  CHECK(result.at == bad);
  CHECK_THAT(result.what, penstock_test::contains("[stage test, position " + std::to_string(bad.epoch) + ":" +
                                                  std::to_string(bad.index) + "]"));
  numbers all = iota(n);
  for (const std::uint64_t x : iota(n)) all.push_back(x);
  CHECK(result.delivered == numbers(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(before)));
  faulty = false;
  auto again = plan.open(ps::state_from_string(to_string(result.left)));
  numbers rest;
  for (auto epoch : again.epochs(2)) {
    for (auto&& b : epoch) {
      if constexpr (requires { b.valid_size(); }) {
        const numbers values = values_of(b);
        rest.insert(rest.end(), values.begin(), values.end());
      } else {
        rest.push_back(static_cast<std::uint64_t>(b));
      }
    }
  }
  CHECK(rest == numbers(all.begin() + static_cast<std::ptrdiff_t>(before), all.end()));
}

}  // namespace

TEST_CASE("run/evaluator: the lowest position that fails is thrown, after all batches before it") {
  const penstock_test::deadline guard("failures", std::chrono::seconds(120));
  std::atomic<bool> faulty{true};
  const fault bad{{37, 38, 41, 60}, &faulty};
  const auto broken = ps::map([bad](std::uint64_t x) {
    bad.look(x);
    return x;
  });
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    for (const std::uint64_t depth : {1u, 4u}) {
      INFO(workers << " workers, depth " << depth + 1);
      const auto end = ps::workers(workers);
      const auto numbers_in = ps::generated(100, identity);
      const auto deep = ps::prefetch(depth);
      // numbers, in place; then through chunks; then with elements that are vectors
      check_failure(numbers_in | broken | ps::batch(4) | deep | end, faulty, 100, {0, 37}, 36);
      check_failure(numbers_in | broken | ps::batch(4) | end, faulty, 100, {0, 37}, 36);
      check_failure(
          numbers_in | broken | ps::filter([](std::uint64_t) { return true; }) | ps::batch(4) | deep | end,
          faulty, 100, {0, 37}, 36);
      check_failure(numbers_in | ps::filter([bad](std::uint64_t x) {
                      bad.look(x);
                      return true;
                    }) | ps::batch(7) |
                        deep | end,
                    faulty, 100, {0, 37}, 35);
      check_failure(numbers_in | broken | end, faulty, 100, {0, 37}, 37);
      check_failure(ps::generated(100,
                                  [bad](std::uint64_t x) {
                                    bad.look(x);
                                    return x;
                                  }) |
                        ps::batch(10) | end,
                    faulty, 100, {0, 37}, 30);
      check_failure(ps::generated(50,
                                  [](std::uint64_t x) {
                                    return std::vector<std::uint64_t>{2 * x, 2 * x + 1};
                                  }) |
                        ps::map([bad](const std::vector<std::uint64_t>& v) {
                          bad.look(v[0]);
                          return v;
                        }) |
                        ps::unbatch | ps::batch(5) | deep | end,
                    faulty, 100, {0, 19}, 35);
    }
  }
}

TEST_CASE("run/evaluator: a failure in a later epoch, in a codec, in the source's reading") {
  const penstock_test::deadline guard("other failures");
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.push_back(i == 21 ? "x" : std::to_string(i));
  const auto decoded = ps::from(texts) | ps::decode<ps::integer> | ps::batch(8) | ps::workers(3);
  auto run = decoded.open();
  std::size_t batches = 0;
  try {
    for (auto&& b : run.epoch(0)) batches += b.size() / 8;
    FAIL("nothing was thrown");
  } catch (const ps::error& e) {
    CHECK(e.at() == ps::position{0, 21});
    CHECK_THAT(std::string(e.stage()), penstock_test::contains("decode<integer>"));
  }
  CHECK(batches == 2);

  for (const unsigned workers : {0u, 1u, 3u}) {
    for (const std::uint64_t breaks : {0u, 5u, 40u}) {
      auto forward = (ps::plan(counting_source(100, breaks)) | ps::batch(4) | ps::workers(workers)).open();
      std::uint64_t got = 0;
      try {
        for (auto&& b : forward.epoch(0)) got += b.size();
        FAIL("nothing was thrown");
      } catch (const ps::error& e) {
        CHECK(e.code() == ps::errc::io);
        CHECK(e.at() == ps::position{0, breaks});
      }
      CHECK(got == breaks / 4 * 4);
      // all rows that unbatch made of earlier samples come before the failure
      auto rows = (ps::plan(counting_source(100, breaks)) |
                   ps::map([](std::uint64_t x) { return std::vector<std::uint64_t>(5, x); }) | ps::unbatch |
                   ps::workers(workers))
                      .open();
      std::uint64_t count = 0;
      CHECK_THROWS_AS(
          [&] {
            for (auto&& x : rows.epoch(0)) count += x < 100;
          }(),
          ps::error);
      CHECK(count == breaks * 5);
    }
  }
}

TEST_CASE("run/evaluator: differing shapes are an error at the position, earlier batches are complete") {
  const penstock_test::deadline guard("shapes");
  const auto vectors = [](std::size_t odd) {
    std::vector<std::vector<float>> all(50, std::vector<float>(6, 1.5f));
    all[odd].resize(5);
    return all;
  };
  for (const unsigned workers : {0u, 2u}) {
    for (const std::size_t odd : {std::size_t{0}, std::size_t{1}, std::size_t{32}, std::size_t{33}}) {
      const auto check = [&](const auto& plan) {
        auto run = (plan | ps::workers(workers)).open();
        std::size_t good = 0;
        try {
          for (auto&& b : run.epoch(0)) {
            CHECK(b.values().shape() == ps::extents(8, 6));
            ++good;
          }
          FAIL("nothing was thrown");
        } catch (const ps::error& e) {
          CHECK(e.code() == ps::errc::shape);
          // and not at one of the seven others, also if it is the first
          CHECK(e.at() == ps::position{0, odd});
          CHECK_THAT(e.what(), penstock_test::contains("(5,)") && penstock_test::contains("(6,)") &&
                                   penstock_test::contains("batch"));
        }
        CHECK(good == odd / 8);
        CHECK(run.state().step == odd / 8);
      };
      check(ps::from(vectors(odd)) | ps::batch(8));
      check(ps::from(vectors(odd)) | ps::filter([](const std::vector<float>&) { return true; }) |
            ps::batch(8));
    }
  }
}

TEST_CASE("run/evaluator: exceptions of other types are inside an error; next() returns them") {
  const penstock_test::deadline guard("foreign exceptions");
  struct theirs {
    int number;
  };
  const auto plan = ps::generated(20, identity) | ps::map([](std::uint64_t x) -> std::uint64_t {
                      if (x == 9) throw theirs{42};
                      return x;
                    }) |
                    ps::batch(4) | ps::workers(2);
  auto run = plan.open();
  for (int i = 0; i < 2; ++i) CHECK(static_cast<bool>(run.next()));
  auto failed = run.next();
  CHECK_FALSE(static_cast<bool>(failed));
  CHECK_FALSE(failed.ended());
  try {
    std::rethrow_exception(failed.failure);
    FAIL("nothing was thrown");
  } catch (const ps::nested_error& e) {
    REQUIRE(e.as<theirs>() != nullptr);
    CHECK(e.as<theirs>()->number == 42);
  }
  CHECK(run.next().ended());
  CHECK(run.state().step == 2);
}

namespace {

/// A codec whose scratch throws on construction when told to.
struct reluctant {
  static inline std::atomic<int> left{0};
  struct scratch {
    scratch() {
      if (left.fetch_sub(1) <= 0) throw ps::error(ps::errc::io, "no scratch");
    }
  };
  static constexpr std::string_view codec_name = "reluctant";
  template <class Bytes>
  std::uint64_t decode(const Bytes& in, scratch&) const {
    return ps::as_bytes(in).size();
  }
};

}  // namespace

TEST_CASE("run/evaluator: if a worker's scratch cannot be made, open throws") {
  const penstock_test::deadline guard("scratch");
  const std::vector<std::string> texts(20, "text");
  for (const unsigned workers : {0u, 1u, 4u}) {
    const auto plan = ps::from(texts) | ps::decode<reluctant> | ps::batch(4) | ps::workers(workers);
    for (int enough = 0; enough < static_cast<int>(std::max(1u, workers)); ++enough) {
      reluctant::left = enough;
      CHECK_THROWS_WITH(plan.open(), penstock_test::contains("no scratch"));
    }
    reluctant::left = 100;
    std::uint64_t sum = 0;
    for (auto&& b : plan)
      for (const std::uint64_t length : b) sum += length;
    CHECK(sum == 80);
  }
}

}  // namespace evaluator_test
