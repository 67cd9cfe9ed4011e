// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/arrow_ipc.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/format_peers.hpp"
#include "support/temp_dir.hpp"

#include <penstock/codec/identity.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include <cstddef>
#include <string>

namespace ps = penstock;

namespace datasets_agreement_test {

constexpr int seeds = 24;

}  // namespace datasets_agreement_test

TEST_CASE("source/arrow_ipc: what Hugging Face's datasets save, value for value") {
  const auto peer = penstock_test::format_peer::find("datasets");
  if (!peer) return;
  const penstock_test::temp_dir dir;
  peer->run("write datasets", dir.path(), 0, datasets_agreement_test::seeds);
  for (int seed = 0; seed < datasets_agreement_test::seeds; ++seed) {
    INFO("seed " << seed);
    const std::string expected = penstock_test::peer_values(dir.path(), seed, ".expected");
    REQUIRE_FALSE(expected.empty());
    const auto rows = ps::arrow_ipc((dir / std::to_string(seed)).string());
    for (const std::size_t workers : {0u, 2u})
      CHECK(penstock_test::first_difference(penstock_test::arrow_rows_text(rows, workers), expected) == "");
  }
}
