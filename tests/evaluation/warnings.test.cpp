// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/evaluation/stage_chain.hpp>

#include <penstock/codec/text.hpp>
#include <penstock/core/call.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

struct warning_scratch {
  std::uint64_t warnings = 0;
};
struct other_scratch {
  std::vector<std::string> warnings;  // of another kind
};

/// Warns of odd numbers.
struct warns_of_odd {
  using accepts_call = void;
  using scratch = warning_scratch;
  int operator()(int x, const ps::call<scratch>& c) const {
    if (x % 2 == 1) ++c.scratch.warnings;
    return x;
  }
};
struct warns_otherwise {
  using accepts_call = void;
  using scratch = other_scratch;
  int operator()(int x, const ps::call<scratch>&) const { return x; }
};
/// Warns of every text.
struct warning_text : ps::text {
  static constexpr std::string_view codec_name = "warning_text";
  using scratch = std::tuple<ps::no_scratch, warning_scratch>;
  template <class In>
  auto decode(const In& in, scratch& s) const {
    ++std::get<1>(s).warnings;
    return ps::text::decode(in, std::get<0>(s));
  }
};

template <class Plan>
std::uint64_t warned(const Plan& plan, std::uint64_t epochs = 1) {
  auto run = plan.open();
  for (auto epoch : run.epochs(epochs))
    for (auto&& b : epoch) static_cast<void>(b);
  return run.counters().warnings;
}

struct root_worker {
  ps::detail::worker_root root;
};
template <class Scratch>
struct stage_worker {
  root_worker up;
  Scratch own;
};

}  // namespace

TEST_CASE("evaluation/warnings: only a member of the right type counts, also within packs and tuples") {
  static_assert(!ps::can_warn<root_worker>());
  static_assert(ps::can_warn<stage_worker<warning_scratch>>());
  static_assert(!ps::can_warn<stage_worker<other_scratch>>());
  static_assert(!ps::can_warn<stage_worker<std::tuple<int, ps::light_tuple<other_scratch, double>>>>());
  static_assert(
      ps::can_warn<stage_worker<std::tuple<int, ps::light_tuple<other_scratch, warning_scratch>>>>());

  stage_worker<std::tuple<warning_scratch, ps::light_tuple<warning_scratch, int, warning_scratch>>> w;
  CHECK(ps::warnings_of(w) == 0);
  std::get<0>(w.own).warnings = 1;
  ps::detail::at<0>(std::get<1>(w.own)).warnings = 20;
  ps::detail::at<2>(std::get<1>(w.own)).warnings = 300;
  CHECK(ps::warnings_of(w) == 321);
  CHECK(ps::warnings_of(stage_worker<other_scratch>{}) == 0);
}

TEST_CASE(
    "evaluation/warnings: the run's counters have those of all stages, whatever the number of workers") {
  const std::vector<std::string> words = {"a", "b", "c", "d", "e"};
  for (const unsigned workers : {0u, 1u, 3u}) {
    INFO(workers << " workers");
    const auto with = [&](const auto& plan) { return plan | ps::workers(workers); };
    const auto odd = ps::map(warns_of_odd{});
    CHECK(warned(with(ps::from(first_ints(1000)) | odd | ps::batch(50))) == 500);
    CHECK(warned(with(ps::from(first_ints(1000)) | ps::shuffle(ps::seed(3)) | odd | odd | ps::batch(50)),
                 2) == 2000);
    CHECK(warned(with(ps::from(first_ints(1000)) | ps::map(warns_otherwise{}, warns_of_odd{}) |
                      ps::filter([](int x) { return x % 3 == 0; }) | ps::batch(7))) == 500);
    CHECK(warned(with(ps::from(first_ints(100)) | odd)) == 50);
    CHECK(warned(with(ps::from(first_ints(100)) | ps::map(warns_otherwise{}) | ps::batch(10))) == 0);
    CHECK(warned(with(ps::from(words) | ps::decode<warning_text> | ps::batch(2, ps::ragged))) == 5);
    CHECK(warned(with(ps::from(std::list<int>{1, 2, 3, 4, 5}) | odd | ps::batch(2))) == 3);
  }
}

TEST_CASE("evaluation/warnings: what was evaluated ahead and is not delivered does not count") {
  for (const unsigned workers : {0u, 2u}) {
    auto run =
        (ps::from(first_ints(100'000)) | ps::map(warns_of_odd{}) | ps::batch(500) | ps::workers(workers))
            .open();
    CHECK(run.counters().warnings == 0);
    for (auto&& b : run.epoch(0)) {
      CHECK(b.size() == 500);
      break;
    }
    const std::uint64_t seen = run.counters().warnings;  // of the block that the batch is in
    CHECK(seen >= 250);
    CHECK(seen < 25'000);
    for (auto&& b : run.epoch(7)) CHECK(b.epoch() == 7);
    CHECK(run.counters().warnings == seen + 50'000);
  }
}
