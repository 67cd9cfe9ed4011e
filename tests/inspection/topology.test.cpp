// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/inspection/topology.hpp>

#include "support/catch.hpp"

#include <string>

namespace topology_test {

TEST_CASE("inspection/topology: a proof in words") {
  CHECK(penstock::topology{4, 8}.ranks() == 32);
  penstock::proof found;
  found.positions = 100;
  found.samples = 98;
  found.shards = 7;
  found.pads = 2;
  found.global = 8;
  penstock::topology_proof& one = found.topologies.emplace_back();
  one.shape = {2, 4};
  one.steps = 12;
  one.delivered = 96;
  one.dropped = 4;
  one.min_shards = 4;
  one.max_shards = 5;
  one.sum = 9;
  CHECK(found.holds());
  CHECK(to_string(found) ==
        "100 positions of 98 samples in 7 shards, 8 in a global step\n"
        "2 positions are padding: repeated samples, to fill up\n"
        "2 x 4 ranks: 12 steps, 96 samples, 4 dropped, 0 padded, shards touched by a node: 4 to 5, 4 on "
        "average\n"
        "holds\n");
  found.violations.push_back("epoch 0: sample 3 is at two positions");
  CHECK_FALSE(found.holds());
  CHECK(to_string(found).find("violation: epoch 0: sample 3 is at two positions\ndoes not hold\n") !=
        std::string::npos);
}

}  // namespace topology_test
