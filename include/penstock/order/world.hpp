// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::inline v0_1 {

/// What `world::from_environment` is told besides the environment.
struct world_options {
  /// Processes in the world, for launchers that give a rank and no size; the variable PENSTOCK_WORLD_SIZE
  /// says the same. Where the launcher gives a size, the two must agree.
  std::optional<std::uint64_t> size = {};
  /// The tasks of a Slurm job array are ranks too, each with all the ranks of its own world. For work that is
  /// cut into parts, such as indexing shards; the tasks of an array may run one after the other, so that they
  /// cannot train together.
  bool slurm_array = false;
};

/// Who takes part in the run, and which of them we are.
///
/// `rank` and `size` count those that get different samples, which are the processes unless ranks are
/// replicated; `local_rank` and `local_size` count the processes on this machine; `node` and `nodes` the
/// machines. Where a launcher does not name the node, ranks are taken to fill one machine after another.
/// `launcher` says where it was read from. `replica` and `replicas` count the processes that get the samples
/// of this rank.
/// A value. docs/worlds.md has the launchers, their traps, and what goes with MPI.
///
///     const auto here = world::from_environment();
///     auto loader = source | shuffle(7) | shard(here) | batch(256);
struct world {
  std::uint64_t rank = 0;
  std::uint64_t size = 1;
  std::uint64_t local_rank = 0;
  std::uint64_t local_size = 1;
  std::uint64_t node = 0;
  std::uint64_t nodes = 1;
  std::string_view launcher = "none";
  std::uint64_t replica = 0;
  std::uint64_t replicas = 1;

  /// Throws `error(errc::argument)` where rank, local rank, node or replica is not below its number.
  void check() const;

  /// The world in which groups of k consecutive ranks get the same samples, as the members of a
  /// tensor-parallel group want. Throws `error(errc::argument)` where k does not divide the ranks.
  [[nodiscard]] world replicated(std::uint64_t k) const;

  /// The data-parallel world of a model that is cut into `tensor` x `pipeline` parts: all processes that hold
  /// a part of one copy of the model get the same samples.
  ///
  /// Ranks are numbered as Megatron-LM does by default: consecutive ranks are a tensor-parallel group, then
  /// come the data-parallel ones, and pipeline stages are furthest apart. Of 16 ranks, tensor 2 and pipeline
  /// 4, ranks 0, 1, 4, 5, 8, 9, 12 and 13 are one copy. Context parallelism stands between tensor and data
  /// there and its members share samples too: give tensor x context as `tensor`.
  /// Throws `error(errc::argument)` where the product does not divide the ranks.
  /// Source: Megatron-LM, megatron/core/parallel_state.py, initialize_model_parallel.
  [[nodiscard]] world model_parallel(std::uint64_t tensor, std::uint64_t pipeline) const;

  /// The world that the launcher describes in the environment; alone where there is none.
  ///
  /// The first family that is there wins, and all numbers come from it: torchrun (RANK with WORLD_SIZE), Open
  /// MPI, MVAPICH, PMI (Hydra, MPICH, Intel MPI), Flux, PMIx, PALS, Slurm (inside a step only: in a batch
  /// script SLURM_PROCID is 0 on whatever number of tasks), and the index of a Kubernetes job. torchrun comes
  /// first, since under `srun torchrun` SLURM_PROCID numbers machines. PMIx, PALS and Kubernetes give a rank
  /// and no size: it comes from `options.size` or PENSTOCK_WORLD_SIZE, and for PMIx from the Slurm step that
  /// gives this process the same number.
  /// Throws `error(errc::argument)` when a family is there in half (RANK without WORLD_SIZE), when a number
  /// cannot be read or does not fit, when there is no size, or another than was asked for, and when RANK
  /// counts pods of several processes (PET_NPROC_PER_NODE above 1 without LOCAL_RANK).
  [[nodiscard]] static world from_environment(const world_options& options = {});

  /// The same with another way to look names up: `lookup(name)` gives a C string, null when the name is not
  /// set.
  template <std::invocable<const char*> Lookup>
  [[nodiscard]] static world from_environment(const Lookup& lookup, const world_options& options = {});

  friend bool operator==(const world&, const world&) = default;
};

namespace detail {

/// How a caller looks names up in an environment, whatever the type of what does it.
struct world_lookup {
  const void* caller;
  const char* (*get)(const void* caller, const char* name);

  [[nodiscard]] const char* operator()(const char* name) const { return get(caller, name); }
};

/// Tasks on node number `node` of a Slurm list such as `2(x3),1`: 2 each on three nodes, then 1.
[[nodiscard]] std::optional<std::uint64_t> slurm_tasks(std::string_view list, std::uint64_t node);

/// What `world::from_environment` gives for such a lookup.
[[nodiscard]] world world_of(const world_lookup& lookup, const world_options& options);

}  // namespace detail

template <std::invocable<const char*> Lookup>
world world::from_environment(const Lookup& lookup, const world_options& options) {
  const Lookup* const called = &lookup;  // a pointer to it, since it may be a function
  const auto get = [](const void* caller, const char* name) -> const char* {
    return (**static_cast<const Lookup* const*>(caller))(name);
  };
  return detail::world_of({&called, get}, options);
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/world.ipp>
#endif
