// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/inspection/describe.hpp>

#include <penstock/device/simulated.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/shuffle_buffer.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <string>

namespace describe_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("inspection/describe: stages with their kinds, where guarantees are lost, moves and device") {
  const auto plan = ps::from(first_ints(10)) | ps::shuffle(7) | ps::shard(0, 2) | ps::shuffle_buffer(4) |
                    ps::batch(2) | ps::pin_and_copy;
  const auto text = describe(plan);
  CHECK_THAT(text, contains("shuffle(seed 7)"));
  CHECK_THAT(text, contains("sequencer  loses indexed, loses elastic"));
  CHECK_THAT(text, contains("keeps: deterministic resumable lockstep\n"));
  CHECK_THAT(text, contains("value: 1 move: written in its slot\n"));
  CHECK_THAT(text, contains("device: host\n"));
}

TEST_CASE("inspection/describe: which fields are used, if a source is told that not all are") {
  const auto joint = ps::zip<"x", "y">(ps::from(first_ints(3)), ps::from(first_ints(3)));
  CHECK_THAT(describe(joint | ps::fields<"y"> | ps::batch(1)), contains("\nuses of a sample: y\nkeeps:"));
  CHECK_THAT(describe(joint | ps::shuffle(1) | ps::fields<"y", "x"> | ps::batch(1)),
             contains("uses of a sample: y, x\n"));
  CHECK_THAT(describe(joint | ps::batch(1)), !contains("uses of a sample"));
  CHECK_THAT(describe(ps::from(first_ints(3)) | ps::batch(1)), !contains("uses of a sample"));
}

TEST_CASE("inspection/describe: fields one by one, and one more move after a filter") {
  using sample = ps::record<ps::field<"x", int>, ps::field<"txt", std::string>>;
  const auto plan = ps::from(std::vector<sample>{sample(1, "a")}) |
                    ps::filter([](const auto&) { return true; }) | ps::batch(2, ps::ragged) |
                    ps::pin_and_copy(ps::simulated{});
  const auto text = describe(plan);
  CHECK_THAT(text, contains("decider    loses indexed, loses lockstep"));
  CHECK_THAT(text, contains("field x: 1 move"));
  CHECK_THAT(text, contains("field txt: 2 moves"));
  CHECK_THAT(text, contains("1 move more, from a chunk"));
  CHECK_THAT(text, contains("device: simulated accelerator"));
}

TEST_CASE("inspection/describe: a source alone") {
  CHECK(describe(ps::from(first_ints(3))) ==
        "  from(3 samples in memory)                      indexed\n"
        "keeps: indexed deterministic resumable elastic lockstep\n"
        "device: host\n");
}

}  // namespace describe_test
