// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Run on several processes by tests/mpi.cmake, after integration/mpi.test.cpp, in one program.

#include <penstock/integration/mpi.hpp>
#include <penstock/integration/serve_rank_metrics.hpp>

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include "support/catch.hpp"
#include "support/sockets.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;

TEST_CASE("integration/mpi: every process gets the texts of all") {
  const ps::mpi::exchange all(MPI_COMM_WORLD, 20s);
  const auto said = all(std::string(all.rank(), 'x') + "\n");
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  REQUIRE(said.size() == static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < said.size(); ++i) CHECK(said[i] == std::string(i, 'x') + "\n");
}

TEST_CASE("integration/mpi: the metrics of all processes are on the page of the first") {
  const ps::mpi::exchange all(MPI_COMM_WORLD, 20s);
  auto run = (ps::from(std::vector<int>(12)) | ps::batch(4)).open();
  for (std::uint64_t i = 0; i < all.rank(); ++i)
    for (auto&& b : run.epoch(i)) static_cast<void>(b);
  const std::uint16_t port = 0;
  const auto served = ps::serve_metrics(run, ps::mpi::exchange(MPI_COMM_WORLD), {.port = port});
  std::string page;
  if (all.rank() == 0) page = penstock_test::plain_client(served.port()).get("/metrics").body;
  const auto said = all(page);  // the others serve until here
  for (std::size_t i = 0; i < said.size(); ++i) {
    const std::string of_rank = "{rank=\"" + std::to_string(i) + "\"} ";
    CHECK(said[0].find("penstock_rank_up" + of_rank + "1\n") != std::string::npos);
    CHECK(said[0].find("penstock_batches_delivered_total" + of_rank + std::to_string(3 * i) + "\n") !=
          std::string::npos);
  }
}
