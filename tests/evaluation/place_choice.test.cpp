// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/evaluation/place_choice.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstdint>
#include <thread>
#include <vector>

namespace place_choice_test {

namespace ps = penstock;

namespace {

constexpr std::size_t none = 3;

/// Of encoded, decoded and resized samples, in milliseconds and kilobytes.
std::size_t best(std::array<ps::place_cost, 3> places, double whole, std::uint64_t limit,
                 std::uint64_t samples) {
  for (ps::place_cost& one : places) one.saved *= 1e-3, one.bytes *= 1e3;
  return ps::best_place(places, whole * 1e-3, limit, samples);
}

/// A choice among two places, all of whose turns take the same: nanoseconds of place 0, 1 and 2. `shown`:
/// those of samples that are shown later.
ps::kept_choice choose(std::array<std::uint64_t, 3> nanoseconds, bool second_differs = false,
                       std::uint64_t shown = 0) {
  ps::detail::place_choice choice(1 << 20, 1000);
  CHECK(choice.add("files") == 1);
  CHECK(choice.add("decode") == 2);
  choice.begin(0);
  if (second_differs) choice.differs(2);
  for (int i = 0; i < 96; ++i) {
    CHECK(choice.get().chosen == ps::kept_choice::undecided);
    const ps::detail::place_turn turn = choice.next();
    CHECK(turn.tries);
    // a few slow ones do not count
    choice.measured(turn.place, i % 31 == 0 ? 1'000'000'000 : nanoseconds[turn.place],
                    std::uint64_t{100} * turn.place);
  }
  CHECK(!choice.next().tries);
  for (int i = 0; shown != 0 && i < 32; ++i) {
    CHECK(choice.checks());
    choice.shown(shown);
  }
  CHECK(choice.checks() == (shown == 0 && choice.get().chosen != 2));
  return choice.get();
}

}  // namespace

TEST_CASE("evaluation/place_choice: most time in all, under the limit") {
  // all fit: what saves most, whatever it takes
  CHECK(best({{{0.3, 110}, {3.1, 600}, {3.3, 150}}}, 3.4, 1'000'000'000, 1000) == 2);
  CHECK(best({{{0.3, 110}, {3.3, 600}, {3.1, 150}}}, 3.4, 1'000'000'000, 1000) == 1);
  // cheap to decode, large: with room for a tenth of them, encoded ones save more
  CHECK(best({{{0.5, 60}, {0.8, 600}, {0.9, 600}}}, 1, 60'000'000, 1000) == 0);
  // dear to decode, small
  CHECK(best({{{0.1, 100}, {3.0, 50}, {0, 0}}}, 3.2, 10'000'000, 1000) == 1);
  // large photos that become small ones
  CHECK(best({{{0.2, 500}, {9, 6000}, {9.5, 150}}}, 10, 150'000'000, 1000) == 2);
  // as good as the best to 2 %, and smaller
  CHECK(best({{{3.25, 150}, {3.3, 600}, {3.28, 300}}}, 3.4, 1'000'000'000, 1000) == 0);
  // nothing that is worth its memory
  CHECK(best({{{0.001, 100}, {-0.2, 600}, {0.01, 150}}}, 1, 1'000'000'000, 1000) == none);
  CHECK(best({{{-1, 100}, {-2, 600}, {0, 0}}}, 0, 0, 0) == none);
}

TEST_CASE("evaluation/place_choice: decides once every place was tried often enough") {
  const ps::kept_choice decoded = choose({1000, 900, 100});
  CHECK(decoded.chosen == 1);
  CHECK(decoded.places[1].behind == "decode");
  CHECK(decoded.places[1].bytes == 200);
  CHECK(decoded.places[1].saved_seconds > 8.9e-7);
  CHECK(decoded.places[1].saved_seconds < 9.1e-7);
  CHECK(choose({1000, 900, 100}, true).chosen == 0);
  CHECK(choose({1000, 1000, 1200}).chosen == 2);  // none

  // samples that are shown later are not in the processor's cache
  const ps::kept_choice slower = choose({1000, 900, 100}, false, 300);
  CHECK(slower.chosen == 1);
  CHECK(slower.places[1].saved_seconds < 7.1e-7);
  const ps::kept_choice given_up = choose({1000, 900, 100}, false, 1100);
  CHECK(given_up.chosen == 2);
  CHECK(given_up.places[1].saved_seconds < 0);

  ps::detail::place_choice told(1 << 20, 1000);
  told.add("files");
  CHECK_THROWS_AS(told.begin(2), ps::error);
  told.begin(1);
  CHECK(told.next() == ps::detail::place_turn{1, false});
}

TEST_CASE("evaluation/place_choice: workers decide once, together") {
  ps::detail::place_choice choice(1 << 20, 1 << 20);
  choice.add("files");
  choice.begin(0);
  std::array<std::uint32_t, 4> chosen{};
  std::vector<std::thread> threads;
  for (std::uint32_t& mine : chosen)
    threads.emplace_back([&choice, &mine] {
      for (ps::detail::place_turn turn = choice.next();; turn = choice.next()) {
        mine = turn.place;
        if (!turn.tries) return;
        choice.measured(turn.place, turn.place == 0 ? 1000 : 10, 50);
      }
    });
  for (std::thread& one : threads) one.join();
  CHECK(chosen == std::array<std::uint32_t, 4>{1, 1, 1, 1});
}

}  // namespace place_choice_test
