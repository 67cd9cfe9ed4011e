// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/error.hpp>
#include <penstock/order/world.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace ps = penstock;

namespace {

ps::world read(const std::map<std::string, std::string>& environment, const ps::world_options& options = {}) {
  return ps::world::from_environment(
      [&](const char* name) -> const char* {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      options);
}

ps::world expected(std::uint64_t rank, std::uint64_t size, std::uint64_t local_rank, std::uint64_t local_size,
                   std::uint64_t node, std::uint64_t nodes, std::string_view launcher) {
  return {rank, size, local_rank, local_size, node, nodes, launcher, 0, 1};
}

/// The message of the error, without its facts; empty if there is none.
std::string refused(const std::map<std::string, std::string>& environment,
                    const ps::world_options& options = {}) {
  try {
    static_cast<void>(read(environment, options));
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
    return std::string(e.message());
  }
  return "";
}

}  // namespace

TEST_CASE("order/world: alone if no launcher says otherwise") {
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

TEST_CASE("order/world: RANK without WORLD_SIZE, and vice versa, are errors that say what to set") {
  CHECK_THAT(refused({{"RANK", "1"}}),
             penstock_test::contains("RANK") && penstock_test::contains("WORLD_SIZE"));
  CHECK_THAT(refused({{"WORLD_SIZE", "4"}}), penstock_test::contains("WORLD_SIZE without RANK"));
  // A size in a batch script's environment does no harm if the Slurm step gives the rank.
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

TEST_CASE("order/world: a Slurm batch script is not a step") {
  CHECK(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "64"}}) == ps::world{});
  for (const char* special : {"4294967290", "4294967291", "4294967292"}) {
    CHECK(read({{"SLURM_STEP_ID", special}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "64"}}) == ps::world{});
  }
}

TEST_CASE("order/world: a launcher that gives a rank but no size is an error, not a world of one") {
  for (const char* name : {"PMIX_RANK", "PALS_RANKID", "JOB_COMPLETION_INDEX"}) {
    CHECK_THAT(refused({{name, "0"}}), penstock_test::contains(name) &&
                                           penstock_test::contains("shard(rank, size)") &&
                                           penstock_test::contains("PENSTOCK_WORLD_SIZE"));
  }
}

TEST_CASE("order/world: the size that a launcher does not give comes from the program or the environment") {
  for (const auto& [name, launcher] : {std::pair{"PMIX_RANK", "PMIx"}, std::pair{"PALS_RANKID", "PALS"},
                                       std::pair{"JOB_COMPLETION_INDEX", "Kubernetes"}}) {
    CAPTURE(name);
    const auto here = expected(2, 5, 0, 1, 2, 5, launcher);
    CHECK(read({{name, "2"}}, {.size = 5}) == here);
    CHECK(read({{name, "2"}, {"PENSTOCK_WORLD_SIZE", "5"}}) == here);
    CHECK(read({{name, "2"}, {"PENSTOCK_WORLD_SIZE", "9"}}, {.size = 5}) == here);
    CHECK_THAT(refused({{name, "5"}}, {.size = 5}), penstock_test::contains("rank 5 is not below"));
    // WORLD_SIZE belongs with RANK, and may count pods.
    CHECK_THAT(refused({{name, "2"}, {"WORLD_SIZE", "5"}}), penstock_test::contains("no size"));
  }
  CHECK(
      read({{"PALS_RANKID", "6"}, {"PALS_LOCAL_RANKID", "2"}, {"PALS_LOCAL_SIZE", "4"}, {"PALS_NODEID", "1"}},
           {.size = 8}) == expected(6, 8, 2, 4, 1, 2, "PALS"));
}

TEST_CASE("order/world: a requested size must match the launcher's") {
  const std::map<std::string, std::string> four{{"RANK", "1"}, {"WORLD_SIZE", "4"}};
  CHECK(read(four, {.size = 4}).size == 4);
  CHECK_THAT(refused(four, {.size = 5}),
             penstock_test::contains("torchrun says") && penstock_test::contains("the program says 5"));
  auto with_name = four;
  with_name["PENSTOCK_WORLD_SIZE"] = "3";
  CHECK_THAT(refused(with_name), penstock_test::contains("PENSTOCK_WORLD_SIZE says 3"));
  CHECK(read({}, {.size = 1}) == ps::world{});
  CHECK_THAT(refused({}, {.size = 2}), penstock_test::contains("which rank"));
  CHECK_THAT(refused({{"PENSTOCK_WORLD_SIZE", "two"}}), penstock_test::contains("not a whole number"));
}

TEST_CASE("order/world: PMIx in a Slurm step takes the step's size if both give one rank") {
  const std::map<std::string, std::string> step{
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}};
  auto both = step;
  both["PMIX_RANK"] = "1";
  CHECK(read(both) == read(step));
  CHECK(read(both, {.size = 4}).launcher == "Slurm");
  // Another launcher, started by hand in the step: all its processes inherit one SLURM_PROCID.
  both["PMIX_RANK"] = "3";
  CHECK_THAT(refused(both), penstock_test::contains("PMIX_RANK"));
  CHECK(read(both, {.size = 8}) == expected(3, 8, 0, 1, 3, 8, "PMIx"));
}

TEST_CASE("order/world: the first family of variables that is set wins, and gives all numbers") {
  // In the order of precedence, each with a rank of its own.
  const std::vector<std::pair<std::string, std::map<std::string, std::string>>> families{
      {"torchrun", {{"RANK", "0"}, {"WORLD_SIZE", "20"}}},
      {"Open MPI", {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "21"}}},
      {"MVAPICH", {{"MV2_COMM_WORLD_RANK", "2"}, {"MV2_COMM_WORLD_SIZE", "22"}}},
      {"PMI", {{"PMI_RANK", "3"}, {"PMI_SIZE", "23"}}},
      {"Flux", {{"FLUX_TASK_RANK", "4"}, {"FLUX_JOB_SIZE", "24"}}},
      {"PMIx", {{"PMIX_RANK", "5"}}},
      {"PALS", {{"PALS_RANKID", "6"}}},
      {"Slurm", {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "7"}, {"SLURM_NTASKS", "27"}}},
      {"Kubernetes", {{"JOB_COMPLETION_INDEX", "8"}}}};
  for (std::size_t first = 0; first < families.size(); ++first) {
    const auto& name = families[first].first;
    CAPTURE(name);
    std::map<std::string, std::string> environment;
    for (std::size_t i = first; i < families.size(); ++i)
      environment.insert(families[i].second.begin(), families[i].second.end());
    const bool sized = name != "PMIx" && name != "PALS" && name != "Kubernetes";
    const std::uint64_t size = sized ? 20 + first : 40;
    const auto here = sized ? read(environment) : read(environment, {.size = size});
    CHECK(here.launcher == name);
    CHECK(here.rank == first);
    CHECK(here.size == size);
  }
}

TEST_CASE("order/world: RANK that counts pods of several processes is refused") {
  const std::map<std::string, std::string> pod{
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"PET_NPROC_PER_NODE", "8"}, {"PET_NNODES", "2"}};
  CHECK_THAT(refused(pod), penstock_test::contains("count pods") && penstock_test::contains("torchrun"));
  auto one = pod;
  one["PET_NPROC_PER_NODE"] = "1";
  CHECK(read(one).size == 2);
  auto process = pod;  // the variables that torchrun sets
  process["RANK"] = "11";
  process["WORLD_SIZE"] = "16";
  process["LOCAL_RANK"] = "3";
  CHECK(read(process).rank == 11);
  auto by_machine = pod;
  by_machine["PET_NPROC_PER_NODE"] = "gpu";
  CHECK_THAT(refused(by_machine), penstock_test::contains("PET_NPROC_PER_NODE=gpu"));
}

TEST_CASE("order/world: a Slurm job array is a world on request") {
  const auto task = [](int id, int count, int first, int last, int by) {
    return std::map<std::string, std::string>{{"SLURM_ARRAY_TASK_ID", std::to_string(id)},
                                              {"SLURM_ARRAY_TASK_COUNT", std::to_string(count)},
                                              {"SLURM_ARRAY_TASK_MIN", std::to_string(first)},
                                              {"SLURM_ARRAY_TASK_MAX", std::to_string(last)},
                                              {"SLURM_ARRAY_TASK_STEP", std::to_string(by)},
                                              {"SLURM_PROCID", "0"},
                                              {"SLURM_NTASKS", "1"}};
  };
  const ps::world_options array{.slurm_array = true};
  CHECK(read(task(3, 4, 0, 3, 1)) == ps::world{});
  CHECK(read(task(3, 4, 0, 3, 1), array).rank == 3);
  CHECK(read(task(3, 4, 0, 3, 1), array).size == 4);
  CHECK(read({}, array) == ps::world{});
  SECTION("that does not start at 0, and has a step") {
    CHECK(read(task(5, 4, 5, 8, 1), array).rank == 0);
    CHECK(read(task(9, 3, 1, 9, 4), array).rank == 2);
    CHECK(read(task(9, 3, 1, 10, 4), array).size == 3);
  }
  SECTION("whose tasks run steps of several ranks") {
    auto step = task(2, 3, 1, 3, 1);
    step["SLURM_STEP_ID"] = "0";
    step["SLURM_PROCID"] = "3";
    step["SLURM_NTASKS"] = "4";
    CHECK(read(step, array).rank == 7);
    CHECK(read(step, array).size == 12);
    CHECK(read(step, {.size = 12, .slurm_array = true}).size == 12);
    CHECK_THAT(refused(step, {.size = 4, .slurm_array = true}), penstock_test::contains("Slurm array says"));
    CHECK(read(step).rank == 3);
  }
  SECTION("but not one of irregular numbers") {
    CHECK_THAT(refused(task(2, 3, 1, 9, 1), array), penstock_test::contains("--array=0-N"));
    CHECK_THAT(refused(task(2, 3, 1, 9, 4), array), penstock_test::contains("task 2 has no rank"));
    CHECK_THAT(refused(task(0, 3, 1, 3, 1), array), penstock_test::contains("task 0"));
    CHECK_THAT(refused(task(1, 3, 1, 3, 0), array), penstock_test::contains("by 0"));
    CHECK_THAT(refused({{"SLURM_ARRAY_TASK_ID", "1"}}, array),
               penstock_test::contains("SLURM_ARRAY_TASK_COUNT"));
  }
}

TEST_CASE("order/world: text that is not a number, and numbers that do not match, are errors") {
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

TEST_CASE("order/world: groups of ranks that share samples") {
  ps::world here{11, 16, 3, 8, 1, 2, "torchrun"};
  CHECK(here.replicated(4).rank == 2);
  CHECK(here.replicated(4).size == 4);
  CHECK(here.replicated(4).local_rank == 3);
  CHECK_THROWS_WITH(here.replicated(3), penstock_test::contains("groups of 3"));
  CHECK_THROWS_WITH(here.replicated(0), penstock_test::contains("groups of 0"));
}

TEST_CASE("order/world: a member of a group is its replica, however often groups are made") {
  for (std::uint64_t rank = 0; rank < 12; ++rank) {
    ps::world here;
    here.rank = rank;
    here.size = 12;
    const auto once = here.replicated(6);
    CHECK(once.replica == rank % 6);
    CHECK(once.replicas == 6);
    CHECK(here.replicated(2).replicated(3) == once);
    CHECK(here.replicated(1) == here);
  }
  ps::world wrong;
  wrong.replica = 2;
  wrong.replicas = 2;
  CHECK_THROWS_WITH(wrong.check(), penstock_test::contains("replica 2 is not below"));
}

TEST_CASE("order/world: tensor and pipeline groups in the order of Megatron-LM") {
  // 16 ranks, tensor 2, pipeline 4: the groups listed in the documentation of initialize_model_parallel.
  const std::vector<std::set<std::uint64_t>> data_parallel{{0, 2},  {1, 3},  {4, 6},   {5, 7},
                                                           {8, 10}, {9, 11}, {12, 14}, {13, 15}};
  const auto at = [](std::uint64_t rank) {
    ps::world here;
    here.rank = rank;
    here.size = 16;
    return here.model_parallel(2, 4);
  };
  for (const auto& group : data_parallel) {
    std::set<std::uint64_t> ranks, replicas;
    for (const std::uint64_t rank : group) {
      CHECK(at(rank).size == 2);
      CHECK(at(rank).replicas == 8);
      ranks.insert(at(rank).rank);
      replicas.insert(at(rank).replica);
    }
    CHECK(ranks == std::set<std::uint64_t>{0, 1});  // they divide the data among them
    CHECK(replicas.size() == 1);                    // and share a part of the model
  }
  for (const std::uint64_t rank : {0u, 1u, 4u, 5u, 8u, 9u, 12u, 13u}) CHECK(at(rank).rank == 0);
}

TEST_CASE("order/world: for any sizes, ranks and replicas number the processes") {
  for (std::uint64_t size = 1; size <= 24; ++size) {
    for (std::uint64_t tensor = 1; tensor <= size; ++tensor) {
      for (std::uint64_t pipeline = 1; pipeline <= size; ++pipeline) {
        std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
        ps::world here;
        here.size = size;
        if (size % (tensor * pipeline) != 0) {
          CHECK_THROWS_WITH(here.model_parallel(tensor, pipeline), penstock_test::contains("whole models"));
          continue;
        }
        for (here.rank = 0; here.rank < size; ++here.rank) {
          const auto made = here.model_parallel(tensor, pipeline);
          made.check();
          seen.emplace(made.rank, made.replica);
          if (pipeline == 1) CHECK(made == here.replicated(tensor));
        }
        CHECK(seen.size() == size);
      }
    }
  }
  CHECK_THROWS_WITH(ps::world{}.model_parallel(0, 1), penstock_test::contains("whole models of 0 x 1"));
  CHECK_THROWS_WITH(ps::world{}.model_parallel(1, 0), penstock_test::contains("whole models of 1 x 0"));
  ps::world four;
  four.size = 4;
  const std::uint64_t huge = std::uint64_t{1} << 33;  // its square is 2^66
  CHECK_THROWS_WITH(four.model_parallel(huge, huge), penstock_test::contains("whole models"));
}
