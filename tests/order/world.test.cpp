// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/error.hpp>
#include <penstock/order/world.hpp>

#include <cstdint>
#include <map>
#include <string>

#include "support/catch.hpp"

namespace ps = penstock;

namespace {

ps::world read(const std::map<std::string, std::string>& environment) {
  return ps::world::from_environment([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

ps::world expected(std::uint64_t rank, std::uint64_t size, std::uint64_t local_rank, std::uint64_t local_size,
                   std::uint64_t node, std::uint64_t nodes, std::string_view launcher) {
  return {rank, size, local_rank, local_size, node, nodes, launcher};
}

/// The message of the error, without its decoration; empty when there is none.
std::string refused(const std::map<std::string, std::string>& environment) {
  try {
    static_cast<void>(read(environment));
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
    return std::string(e.message());
  }
  return "";
}

}  // namespace

TEST_CASE("order/world: alone where no launcher says otherwise") {
  CHECK(read({}) == ps::world{});
  CHECK(ps::world{}.size == 1);
  CHECK(read({{"WORLD_SIZE", "1"}}) == ps::world{});
  CHECK(read({{"SLURM_JOB_ID", "7"}}) == ps::world{});
}

TEST_CASE("order/world: torchrun") {
  CHECK(read({{"RANK", "11"},
              {"WORLD_SIZE", "16"},
              {"LOCAL_RANK", "3"},
              {"LOCAL_WORLD_SIZE", "8"},
              {"GROUP_RANK", "1"},
              {"GROUP_WORLD_SIZE", "2"}}) == expected(11, 16, 3, 8, 1, 2, "torchrun"));
  CHECK(read({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).rank == 0);
}

TEST_CASE("order/world: torchrun wins over the Slurm step it runs in, where SLURM_PROCID numbers machines") {
  const auto here = read({{"RANK", "11"},
                          {"WORLD_SIZE", "16"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_PROCID", "1"},
                          {"SLURM_NTASKS", "2"},
                          {"OMPI_COMM_WORLD_RANK", "1"},
                          {"OMPI_COMM_WORLD_SIZE", "2"}});
  CHECK(here.rank == 11);
  CHECK(here.launcher == "torchrun");
}

TEST_CASE("order/world: RANK without WORLD_SIZE, and the other way round, are errors that say what to set") {
  CHECK_THAT(refused({{"RANK", "1"}}),
             penstock_test::contains("RANK") && penstock_test::contains("WORLD_SIZE"));
  CHECK_THAT(refused({{"WORLD_SIZE", "4"}}), penstock_test::contains("WORLD_SIZE without RANK"));
  // A size in a batch script's environment does no harm where the step itself says who we are.
  CHECK(read({{"WORLD_SIZE", "4"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}})
            .rank == 1);
}

TEST_CASE("order/world: Open MPI, MVAPICH, PMI and Flux") {
  CHECK(read({{"OMPI_COMM_WORLD_RANK", "5"},
              {"OMPI_COMM_WORLD_SIZE", "8"},
              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
              {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}) == expected(5, 8, 1, 4, 1, 2, "Open MPI"));
  CHECK(read({{"MV2_COMM_WORLD_RANK", "5"},
              {"MV2_COMM_WORLD_SIZE", "8"},
              {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
              {"MV2_COMM_WORLD_LOCAL_SIZE", "4"}}) == expected(5, 8, 1, 4, 1, 2, "MVAPICH"));
  CHECK(read({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}}) ==
        expected(5, 8, 1, 4, 1, 2, "PMI"));
  CHECK(read({{"FLUX_TASK_RANK", "5"},
              {"FLUX_JOB_SIZE", "8"},
              {"FLUX_TASK_LOCAL_ID", "1"},
              {"FLUX_JOB_NNODES", "2"}}) == expected(5, 8, 1, 4, 1, 2, "Flux"));
  CHECK_THAT(refused({{"PMI_RANK", "5"}}), penstock_test::contains("PMI_SIZE"));
}

TEST_CASE("order/world: a Slurm step") {
  CHECK(read({{"SLURM_STEP_ID", "0"},
              {"SLURM_PROCID", "6"},
              {"SLURM_NTASKS", "99"},
              {"SLURM_STEP_NUM_TASKS", "7"},
              {"SLURM_LOCALID", "0"},
              {"SLURM_NODEID", "3"},
              {"SLURM_STEP_NUM_NODES", "4"},
              {"SLURM_NNODES", "9"},
              {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}}) == expected(6, 7, 0, 1, 3, 4, "Slurm"));
}

TEST_CASE("order/world: a Slurm batch script is no step") {
  CHECK(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "64"}}) == ps::world{});
  for (const char* special : {"4294967290", "4294967291", "4294967292"}) {
    CHECK(read({{"SLURM_STEP_ID", special}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "64"}}) == ps::world{});
  }
}

TEST_CASE("order/world: launchers that give a rank and no size are an error, not a world of one") {
  for (const char* name : {"PMIX_RANK", "PALS_RANKID", "JOB_COMPLETION_INDEX"}) {
    CHECK_THAT(refused({{name, "0"}}),
               penstock_test::contains(name) && penstock_test::contains("shard(rank, size)"));
  }
  CHECK(read({{"PMIX_RANK", "1"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}})
            .launcher == "Slurm");
}

TEST_CASE("order/world: numbers that are none, or do not fit, are errors") {
  CHECK_THAT(refused({{"RANK", "-1"}, {"WORLD_SIZE", "4"}}), penstock_test::contains("RANK=-1"));
  CHECK_THAT(refused({{"RANK", "1x"}, {"WORLD_SIZE", "4"}}), penstock_test::contains("not a whole number"));
  CHECK_THAT(refused({{"RANK", ""}, {"WORLD_SIZE", "4"}}), penstock_test::contains("not a whole number"));
  CHECK_THAT(refused({{"RANK", "1"}, {"WORLD_SIZE", "99999999999999999999"}}),
             penstock_test::contains("not a whole number"));
  CHECK_THAT(refused({{"RANK", "4"}, {"WORLD_SIZE", "4"}}),
             penstock_test::contains("rank 4 is not below the world's size 4"));
  CHECK_THAT(refused({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), penstock_test::contains("rank 0"));
  CHECK_THAT(refused({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}),
             penstock_test::contains("local rank 2"));
  CHECK_THAT(refused({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"GROUP_RANK", "2"}, {"GROUP_WORLD_SIZE", "2"}}),
             penstock_test::contains("node 2"));
}

TEST_CASE("order/world: the list of Slurm tasks per node") {
  using ps::detail::slurm_tasks;
  CHECK(slurm_tasks("4", 0) == 4);
  CHECK_FALSE(slurm_tasks("4", 1).has_value());
  CHECK(slurm_tasks("2(x3),1", 2) == 2);
  CHECK(slurm_tasks("2(x3),1", 3) == 1);
  CHECK_FALSE(slurm_tasks("2(x3),1", 4).has_value());
  CHECK(slurm_tasks("8,4(x2),16(x1000)", 500) == 16);
  for (const char* broken :
       {"", "x", "2(", "2(x", "2(x3", "2(x3)1", "2,", "(x3)", "99999999999999999999", "2(x-1)"}) {
    CHECK_FALSE(slurm_tasks(broken, 5).has_value());
  }
}

TEST_CASE("order/world: groups of ranks that get the same samples") {
  ps::world here{11, 16, 3, 8, 1, 2, "torchrun"};
  CHECK(here.replicated(4).rank == 2);
  CHECK(here.replicated(4).size == 4);
  CHECK(here.replicated(4).local_rank == 3);
  CHECK_THROWS_WITH(here.replicated(3), penstock_test::contains("groups of 3"));
  CHECK_THROWS_WITH(here.replicated(0), penstock_test::contains("groups of 0"));
}
