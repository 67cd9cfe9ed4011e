// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/world.hpp>

#include <charconv>
#include <cstdlib>
#include <system_error>

namespace penstock::inline v0_1 {

namespace detail {
PENSTOCK_INLINE error world_error(std::initializer_list<piece> message) {
  return error(errc::argument, message).in_stage("world");
}
}  // namespace detail

PENSTOCK_INLINE void world::check() const {
  const auto below = [](std::uint64_t number, std::uint64_t limit, const char* what, const char* of) {
    if (number < limit) return;
    throw detail::world_error(
        {what, " ", number, " is not below the ", of, " ", limit, "; they count from 0"});
  };
  below(rank, size, "rank", "world's size");
  below(local_rank, local_size, "local rank", "local size");
  below(node, nodes, "node", "number of nodes");
  below(replica, replicas, "replica", "number of replicas");
}

PENSTOCK_INLINE world world::replicated(std::uint64_t k) const {
  check();
  if (k == 0 || size % k != 0) {
    throw detail::world_error(
        {size, " ranks cannot be divided into groups of ", k, "; use a divisor of ", size});
  }
  world made = *this;
  made.rank = rank / k;
  made.size = size / k;
  made.replica = replica + replicas * (rank % k);
  made.replicas = replicas * k;
  return made;
}

PENSTOCK_INLINE world world::model_parallel(std::uint64_t tensor, std::uint64_t pipeline) const {
  check();
  if (tensor == 0 || pipeline == 0 || size % tensor != 0 || size / tensor % pipeline != 0) {
    throw detail::world_error({size, " ranks cannot hold whole models of ", tensor, " x ", pipeline,
                               " parts (tensor x pipeline); use a multiple of their product"});
  }
  world made = *this;
  made.size = size / tensor / pipeline;
  made.rank = rank / tensor % made.size;
  made.replica = replica + replicas * (rank % tensor + tensor * (rank / (tensor * made.size)));
  made.replicas = replicas * tensor * pipeline;
  return made;
}

namespace detail {

PENSTOCK_INLINE std::optional<std::uint64_t> slurm_tasks(std::string_view list, std::uint64_t node) {
  const auto number = [&list]() -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(list.data(), list.data() + list.size(), value);
    if (failure != std::errc{}) return std::nullopt;
    list.remove_prefix(static_cast<std::size_t>(end - list.data()));
    return value;
  };
  while (true) {
    const auto tasks = number();
    if (!tasks) return std::nullopt;
    std::uint64_t times = 1;
    if (list.starts_with("(x")) {
      list.remove_prefix(2);
      const auto repeated = number();
      if (!repeated || !list.starts_with(")")) return std::nullopt;
      times = *repeated;
      list.remove_prefix(1);
    }
    if (node < times) return tasks;
    node -= times;
    if (!list.starts_with(",")) return std::nullopt;
    list.remove_prefix(1);
  }
}

/// Reads the numbers of one launcher from the environment.
struct world_reader {
  const world_lookup& lookup;

  [[nodiscard]] bool has(const char* name) const { return lookup(name) != nullptr; }

  [[nodiscard]] std::optional<std::uint64_t> find(const char* name) const {
    const char* text = lookup(name);
    if (text == nullptr) return std::nullopt;
    const std::string_view digits(text);
    std::uint64_t number = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failure != std::errc{} || end != digits.data() + digits.size()) {
      throw world_error(
          {"the environment says ", name, "=", digits.substr(0, 80), ", which is not a whole number"});
    }
    return number;
  }

  [[nodiscard]] std::uint64_t need(const char* name, const char* because) const {
    if (const auto number = find(name)) return *number;
    throw world_error(
        {"the environment has ", because, " without ", name, "; set both or write shard(rank, size)"});
  }

  /// A launcher family's names for each number; null if it has none.
  struct family {
    const char* launcher;
    const char *rank, *size, *local_rank, *local_size, *node, *nodes;
  };

  [[nodiscard]] std::uint64_t need_size(std::optional<std::uint64_t> wanted, const char* name) const {
    if (wanted) return *wanted;
    throw world_error({"the environment has ", name,
                       " but no size of the world; set PENSTOCK_WORLD_SIZE or write "
                       "from_environment({.size = n}) or shard(rank, size)"});
  }

  [[nodiscard]] world read(const family& names) const {
    world made;
    made.launcher = names.launcher;
    made.rank = need(names.rank, names.size);
    made.size = need(names.size, names.rank);
    complete(made, optional(names.local_rank), optional(names.local_size), optional(names.node),
             optional(names.nodes));
    return made;
  }

  [[nodiscard]] std::optional<std::uint64_t> optional(const char* name) const {
    return name == nullptr ? std::nullopt : find(name);
  }

  /// The current Slurm step; empty in batch, extern and interactive steps, whose numbers are at the top of 32
  /// bits.
  [[nodiscard]] std::optional<world> read_slurm_step() const {
    const auto step = find("SLURM_STEP_ID");
    if (!step || *step >= 0xfffffff0u || !has("SLURM_PROCID")) return std::nullopt;
    world made;
    made.launcher = "Slurm";
    made.rank = need("SLURM_PROCID", "SLURM_STEP_ID");
    const auto tasks = find("SLURM_STEP_NUM_TASKS");
    made.size = tasks ? *tasks : need("SLURM_NTASKS", "SLURM_PROCID");
    const auto node = find("SLURM_NODEID");
    const auto step_nodes = find("SLURM_STEP_NUM_NODES");
    const char* list = lookup("SLURM_STEP_TASKS_PER_NODE");
    complete(made, find("SLURM_LOCALID"), list ? slurm_tasks(list, node.value_or(0)) : std::nullopt, node,
             step_nodes ? step_nodes : find("SLURM_NNODES"));
    return made;
  }

  /// The world that the launcher gives, without the job array.
  [[nodiscard]] world read_launcher(std::optional<std::uint64_t> wanted) const {
    if (has("RANK")) {
      // Operators that create pods number the pods this way and leave the processes in them to torchrun.
      const char* each = lookup("PET_NPROC_PER_NODE");
      if (each != nullptr && !has("LOCAL_RANK") && std::string_view(each) != "1") {
        throw world_error(
            {"RANK and WORLD_SIZE count pods here, since PET_NPROC_PER_NODE=",
             std::string_view(each).substr(0, 80),
             " asks for several processes in each; start them with torchrun, which numbers them"});
      }
      return read(family{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                         "GROUP_WORLD_SIZE"});
    }
    for (const family& names :
         {family{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                 "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr},
          family{"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
                 "MV2_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr},
          family{"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, nullptr},
          family{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", nullptr, nullptr,
                 "FLUX_JOB_NNODES"}}) {
      if (has(names.rank)) return read(names);
    }
    const auto without_size = [&](const char* launcher, const char* name, std::optional<std::uint64_t> local,
                                  std::optional<std::uint64_t> locals, std::optional<std::uint64_t> node) {
      world made;
      made.launcher = launcher;
      made.rank = *find(name);
      made.size = need_size(wanted, name);
      complete(made, local, locals, node, std::nullopt);
      return made;
    };
    if (has("PMIX_RANK")) {
      // `srun --mpi=pmix` sets both. Under another launcher started inside a step, say by hand in `srun --pty
      // bash`, all processes see the step's single SLURM_PROCID.
      const auto step = read_slurm_step();
      if (step && step->rank == *find("PMIX_RANK") && (!wanted || *wanted == step->size)) return *step;
      return without_size("PMIx", "PMIX_RANK", std::nullopt, std::nullopt, std::nullopt);
    }
    if (has("PALS_RANKID")) {
      return without_size("PALS", "PALS_RANKID", find("PALS_LOCAL_RANKID"), find("PALS_LOCAL_SIZE"),
                          find("PALS_NODEID"));
    }
    if (const auto step = read_slurm_step()) return *step;
    if (has("JOB_COMPLETION_INDEX"))
      return without_size("Kubernetes", "JOB_COMPLETION_INDEX", std::nullopt, std::nullopt, std::nullopt);
    if (const auto size = find("WORLD_SIZE"); size && *size > 1)
      static_cast<void>(need("RANK", "WORLD_SIZE"));
    if (wanted && *wanted != 1) {
      throw world_error({"a world of ", *wanted,
                         " was asked for, but nothing in the environment says which rank of it "
                         "this is; start it with a launcher or write shard(rank, size)"});
    }
    return {};
  }

  /// This task's ranks among those of all tasks of its job array.
  [[nodiscard]] world among_array_tasks(world task) const {
    if (!has("SLURM_ARRAY_TASK_ID")) return task;
    const std::uint64_t id = *find("SLURM_ARRAY_TASK_ID");
    const std::uint64_t count = need("SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_ID");
    const std::uint64_t first = need("SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_ID");
    const std::uint64_t last = need("SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_ID");
    const std::uint64_t by = find("SLURM_ARRAY_TASK_STEP").value_or(1);
    if (by == 0 || id < first || id > last || (id - first) % by != 0 || (last - first) / by + 1 != count) {
      throw world_error({"the ", count, " tasks of this job array, from ", first, " to ", last, " by ", by,
                         ", are not a contiguous range, so task ", id,
                         " has no rank; submit it with --array=0-N"});
    }
    task.rank += (id - first) / by * task.size;
    task.size *= count;
    task.launcher = "Slurm array";
    return task;
  }

  /// Fills in what the launcher left out: without a local size, assumes one process per machine, or as many
  /// as the local rank requires.
  static void complete(world& made, std::optional<std::uint64_t> local_rank,
                       std::optional<std::uint64_t> local_size, std::optional<std::uint64_t> node,
                       std::optional<std::uint64_t> nodes) {
    if (made.rank >= made.size) made.check();
    made.local_rank = local_rank.value_or(0);
    made.local_size =
        local_size.value_or(nodes && *nodes != 0 ? (made.size + *nodes - 1) / *nodes : made.local_rank + 1);
    const std::uint64_t each = made.local_size == 0 ? 1 : made.local_size;
    made.node = node.value_or(made.rank / each);
    made.nodes = nodes.value_or((made.size - 1) / each + 1);
    if (made.node >= made.nodes && !nodes) made.nodes = made.node + 1;
    made.check();
  }
};

PENSTOCK_INLINE world world_of(const world_lookup& lookup, const world_options& options) {
  const world_reader environment{lookup};
  const auto wanted = options.size ? options.size : environment.find("PENSTOCK_WORLD_SIZE");
  world made = environment.read_launcher(options.slurm_array ? std::nullopt : wanted);
  if (options.slurm_array) made = environment.among_array_tasks(made);
  if (wanted && made.size != *wanted) {
    throw world_error({made.launcher, " says that the world has ", made.size, " ranks, but ",
                       options.size ? "the program" : "PENSTOCK_WORLD_SIZE", " says ", *wanted});
  }
  return made;
}

}  // namespace detail

PENSTOCK_INLINE world world::from_environment(const world_options& options) {
  return from_environment([](const char* name) { return static_cast<const char*>(std::getenv(name)); },
                          options);
}

}  // namespace penstock::inline v0_1
