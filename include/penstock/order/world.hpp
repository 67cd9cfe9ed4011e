// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

#include <concepts>
#include <optional>

namespace penstock::inline v0_1 {

/// Options of `world::from_environment`.
struct world_options {
  /// The number of processes in the world, for launchers that give a rank but no size, as the variable
  /// PENSTOCK_WORLD_SIZE. If the launcher gives a size, the two must agree.
  std::optional<std::uint64_t> size = {};
  /// Counts the tasks of a Slurm job array as ranks too, each with all the ranks of its own world. Use this
  /// for work that can be divided into independent parts, such as indexing shards: the tasks of an array may
  /// run one after another, so they cannot train together.
  bool slurm_array = false;
};

/// The processes that take part in the run, and which of them this one is.
///
/// `rank` and `size` count those that get different samples, which are the processes unless ranks are
/// replicated: `replica` and `replicas` count those that get the samples of this rank. `local_rank` and
/// `local_size` count the processes on this machine; `node` and `nodes` count the machines. If a launcher
/// does not name the node, ranks are assumed to fill one machine after another. `launcher` names the source
/// of the numbers. docs/worlds.md describes the launchers, their traps, and how to use MPI.
///
///     const auto here = world::from_environment();
///     auto loader = source | shuffle(seed(7)) | shard(here) | batch(256);
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

  /// Throws `error(errc::argument)` if rank, local rank, node or replica is not below its count.
  void check() const;

  /// The world in which groups of k consecutive ranks get the same samples, as the members of a
  /// tensor-parallel group need. Throws `error(errc::argument)` if k does not divide the ranks.
  [[nodiscard]] world replicated(std::uint64_t k) const;

  /// The data-parallel world of a model that is split into `tensor` x `pipeline` parts: all processes that
  /// hold a part of one copy of the model get the same samples.
  ///
  /// Ranks are numbered as Megatron-LM does by default: consecutive ranks form a tensor-parallel group, then
  /// come the data-parallel ones, and pipeline stages are furthest apart. Of 16 ranks with tensor 2 and
  /// pipeline 4, ranks 0, 1, 4, 5, 8, 9, 12 and 13 hold one copy. In Megatron-LM, context parallelism comes
  /// between tensor and data, and its members share samples too: pass tensor x context as `tensor`.
  /// Throws `error(errc::argument)` if the product does not divide the ranks.
  /// Source: Megatron-LM, megatron/core/parallel_state.py, initialize_model_parallel.
  [[nodiscard]] world model_parallel(std::uint64_t tensor, std::uint64_t pipeline) const;

  /// The world that the launcher describes in the environment; a world of one process if there is none.
  ///
  /// The first launcher family found wins, and all numbers come from it: torchrun (RANK with WORLD_SIZE),
  /// Open MPI, MVAPICH, PMI (Hydra, MPICH, Intel MPI), Flux, PMIx, PALS, Slurm (only inside a step: in a
  /// batch script SLURM_PROCID is 0 for any number of tasks), and the index of a Kubernetes job. torchrun
  /// comes first because under `srun torchrun` SLURM_PROCID numbers machines. PMIx, PALS and Kubernetes give
  /// a rank but no size: the size comes from `options.size` or PENSTOCK_WORLD_SIZE, and for PMIx also from
  /// the Slurm step that gives this process the same number.
  /// Throws `error(errc::argument)` if a family is incomplete (RANK without WORLD_SIZE), if a number cannot
  /// be read or does not fit, if there is no size or it differs from the requested one, and if RANK counts
  /// pods of several processes (PET_NPROC_PER_NODE above 1 without LOCAL_RANK).
  [[nodiscard]] static world from_environment(const world_options& options = {});

  /// Like `from_environment(options)`, but looks names up with `lookup(name)`, which returns a C string, or
  /// null if the name is not set.
  template <std::invocable<const char*> Lookup>
  [[nodiscard]] static world from_environment(const Lookup& lookup, const world_options& options = {});

  friend bool operator==(const world&, const world&) = default;
};

namespace detail {

/// The caller's look-up of environment variables, without its type.
struct world_lookup {
  const void* caller;
  const char* (*get)(const void* caller, const char* name);

  [[nodiscard]] const char* operator()(const char* name) const { return get(caller, name); }
};

/// The tasks on node number `node` of a Slurm list such as `2(x3),1`: 2 each on three nodes, then 1.
[[nodiscard]] std::optional<std::uint64_t> slurm_tasks(std::string_view list, std::uint64_t node);

/// The result of `world::from_environment` for this look-up.
[[nodiscard]] world world_of(const world_lookup& lookup, const world_options& options);

}  // namespace detail

template <std::invocable<const char*> Lookup>
world world::from_environment(const Lookup& lookup, const world_options& options) {
  const Lookup* const called = &lookup;  // a pointer, because it may be a function
  const auto get = [](const void* caller, const char* name) -> const char* {
    return (**static_cast<const Lookup* const*>(caller))(name);
  };
  return detail::world_of({&called, get}, options);
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/world.ipp>
#endif
