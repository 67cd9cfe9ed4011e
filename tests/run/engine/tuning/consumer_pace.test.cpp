// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/tuning/consumer_pace.hpp>

#include "support/catch.hpp"

#include <cstdint>

namespace consumer_pace_test {

namespace ps = penstock;

namespace {

/// A pace, and grains that take as long as they are told.
struct loop {
  explicit loop(std::uint64_t each) : pace(each), of_block(each) {}
  /// Waits so often, each time after the block's grains and a time away.
  void wait(int times, std::uint64_t away, std::uint64_t grain) {
    for (; times != 0; --times) {
      grains += of_block;
      busy += of_block * grain;
      pace.waits(away, grains, busy);
    }
  }
  ps::consumer_pace pace;
  std::uint64_t of_block, grains = 0, busy = 0;
};

}  // namespace

TEST_CASE("run/consumer_pace: a loop is quick after 64 quick waits in a row, until the first that is not") {
  loop at(3);
  at.wait(63, 5'000, 20'000);
  CHECK_FALSE(at.pace.is_quick());
  at.wait(1, 5'000, 20'000);
  CHECK(at.pace.is_quick());
  at.wait(1'000, 5'000, 20'000);
  CHECK(at.pace.is_quick());
  at.wait(1, 3'000'000, 20'000);
  CHECK_FALSE(at.pace.is_quick());
  at.wait(63, 5'000, 20'000);
  CHECK_FALSE(at.pace.is_quick());
  at.wait(1, 5'000, 20'000);
  CHECK(at.pace.is_quick());
}

TEST_CASE("run/consumer_pace: the whole block must be short, not only its grains") {
  loop few(4), many(40);
  few.wait(100, 5'000, 20'000);
  many.wait(100, 5'000, 20'000);
  CHECK(few.pace.is_quick());
  CHECK_FALSE(many.pace.is_quick());
  few.wait(1, 5'000, 60'000);  // the first one that reads a file
  CHECK_FALSE(few.pace.is_quick());
}

TEST_CASE("run/consumer_pace: a wait during which nobody told of a grain is judged by those before") {
  loop at(1);
  at.wait(1, 0, 500'000);
  for (int i = 0; i < 100; ++i) at.pace.waits(0, at.grains, at.busy);
  CHECK_FALSE(at.pace.is_quick());
  at.wait(1, 0, 1'000);
  for (int i = 0; i < 63; ++i) at.pace.waits(0, at.grains, at.busy);
  CHECK(at.pace.is_quick());
}

}  // namespace consumer_pace_test
