// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace penstock::inline v0_1 {

/// Who takes part in the run, and which of them we are.
///
/// `rank` and `size` count processes; `local_rank` and `local_size` those on this machine; `node` and `nodes`
/// the machines. Where a launcher does not name the node, ranks are taken to fill one machine after another.
/// `launcher` says where it was read from.
///
///     const auto here = penstock::world::from_environment();
///     auto loader = source | shuffle(7) | shard(here) | batch(256);
struct world {
  std::uint64_t rank = 0;
  std::uint64_t size = 1;
  std::uint64_t local_rank = 0;
  std::uint64_t local_size = 1;
  std::uint64_t node = 0;
  std::uint64_t nodes = 1;
  std::string_view launcher = "none";

  /// Throws `error(errc::argument)` where rank, local rank or node is not below its number.
  void check() const;

  /// The world in which groups of k consecutive ranks get the same samples, as the members of a
  /// tensor-parallel group want.
  [[nodiscard]] world replicated(std::uint64_t k) const;

  /// The world that the launcher describes in the environment; alone where there is none.
  ///
  /// The first family that is there wins, and all numbers come from it: torchrun (RANK with WORLD_SIZE), Open
  /// MPI, MVAPICH, PMI (Hydra, MPICH, Intel MPI), Flux, Slurm (inside a step only: in a batch script
  /// SLURM_PROCID is 0 on whatever number of tasks). torchrun comes first, since under `srun torchrun`
  /// SLURM_PROCID numbers machines.
  /// Throws `error(errc::argument)` when a family is there in half (RANK without WORLD_SIZE), when a number
  /// cannot be read or does not fit, and when a launcher gives a rank and no size (PMIx, PALS, an indexed
  /// Kubernetes job): say `shard(rank, size)` then.
  [[nodiscard]] static world from_environment() {
    return from_environment([](const char* name) { return static_cast<const char*>(std::getenv(name)); });
  }

  /// The same with another way to look names up: `lookup(name)` gives a C string, null when the name is not
  /// set.
  template <class Lookup>
  [[nodiscard]] static world from_environment(const Lookup& lookup);

  friend bool operator==(const world&, const world&) = default;
};

inline void world::check() const {
  const auto below = [](std::uint64_t number, std::uint64_t limit, const char* what, const char* of) {
    if (number < limit) return;
    throw error(errc::argument,
                {what, " ", number, " is not below the ", of, " ", limit, "; they count from 0"})
        .in_stage("world");
  };
  below(rank, size, "rank", "world's size");
  below(local_rank, local_size, "local rank", "local size");
  below(node, nodes, "node", "number of nodes");
}

inline world world::replicated(std::uint64_t k) const {
  if (k == 0 || size % k != 0) {
    throw error(errc::argument, {size, " ranks cannot be divided into groups of ", k}).in_stage("world");
  }
  world made = *this;
  made.rank = rank / k;
  made.size = size / k;
  return made;
}

namespace detail {

/// Reads numbers of one launcher from the environment.
template <class Lookup>
struct world_reader {
  const Lookup& lookup;

  [[nodiscard]] bool has(const char* name) const { return lookup(name) != nullptr; }

  [[nodiscard]] std::optional<std::uint64_t> find(const char* name) const {
    const char* text = lookup(name);
    if (text == nullptr) return std::nullopt;
    const std::string_view digits(text);
    std::uint64_t number = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failure != std::errc{} || end != digits.data() + digits.size()) {
      throw error(errc::argument,
                  {"the environment says ", name, "=", digits.substr(0, 80), ", which is not a whole number"})
          .in_stage("world");
    }
    return number;
  }

  [[nodiscard]] std::uint64_t need(const char* name, const char* because) const {
    if (const auto number = find(name)) return *number;
    throw error(errc::argument,
                {"the environment has ", because, " without ", name, "; set both or say shard(rank, size)"})
        .in_stage("world");
  }

  /// A family with a name for each number; null where it has none.
  struct family {
    const char* launcher;
    const char *rank, *size, *local_rank, *local_size, *node, *nodes;
  };

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

  /// Fills what the launcher left out: without a local size there is one process a machine, or as many as the
  /// local rank needs.
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

/// Tasks on node number `node` of a Slurm list such as `2(x3),1`: 2 each on three nodes, then 1.
template <class = void>
[[nodiscard]] std::optional<std::uint64_t> slurm_tasks(std::string_view list, std::uint64_t node) {
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

}  // namespace detail

template <class Lookup>
world world::from_environment(const Lookup& lookup) {
  using reader = detail::world_reader<Lookup>;
  const reader environment{lookup};
  using family = typename reader::family;
  if (environment.has("RANK")) {
    return environment.read(family{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                   "GROUP_RANK", "GROUP_WORLD_SIZE"});
  }
  for (const family& names :
       {family{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
               "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr},
        family{"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
               "MV2_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr},
        family{"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, nullptr},
        family{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", nullptr, nullptr,
               "FLUX_JOB_NNODES"}}) {
    if (environment.has(names.rank)) return environment.read(names);
  }
  // Slurm gives its batch, extern and interactive steps numbers at the top of 32 bits; none of them is a
  // parallel step.
  const auto step = environment.find("SLURM_STEP_ID");
  if (step && *step < 0xfffffff0u && environment.has("SLURM_PROCID")) {
    world made;
    made.launcher = "Slurm";
    made.rank = environment.need("SLURM_PROCID", "SLURM_STEP_ID");
    const auto tasks = environment.find("SLURM_STEP_NUM_TASKS");
    made.size = tasks ? *tasks : environment.need("SLURM_NTASKS", "SLURM_PROCID");
    const auto node = environment.find("SLURM_NODEID");
    const auto step_nodes = environment.find("SLURM_STEP_NUM_NODES");
    const char* list = lookup("SLURM_STEP_TASKS_PER_NODE");
    reader::complete(made, environment.find("SLURM_LOCALID"),
                     list ? detail::slurm_tasks(list, node.value_or(0)) : std::nullopt, node,
                     step_nodes ? step_nodes : environment.find("SLURM_NNODES"));
    return made;
  }
  for (const char* name : {"PMIX_RANK", "PALS_RANKID", "JOB_COMPLETION_INDEX"}) {
    if (!environment.has(name)) continue;
    throw error(errc::argument,
                {"the environment has ", name, " and no size of the world; say shard(rank, size)"})
        .in_stage("world");
  }
  if (const auto size = environment.find("WORLD_SIZE"); size && *size > 1)
    static_cast<void>(environment.need("RANK", "WORLD_SIZE"));
  return {};
}

}  // namespace penstock::inline v0_1
