// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// What `prove` is asked and what it answers.
namespace penstock::inline v0_1 {

/// Machines and the ranks on each that get different samples; what `prove` tries.
struct topology {
  std::uint64_t nodes = 1, ranks_per_node = 1;
  [[nodiscard]] std::uint64_t ranks() const noexcept { return nodes * ranks_per_node; }
};

/// What `prove` looks at.
struct proof_options {
  std::uint64_t first_epoch = 0, epochs = 1;
  /// Steps after which each topology is stopped and the next one in the list goes on.
  std::vector<std::uint64_t> stops = {};
  /// Epochs of more positions than this are looked at in `looks` random positions and steps, not in all.
  std::uint64_t most_positions = std::uint64_t{1} << 28;
  std::uint64_t looks = 1'000'000;
  unsigned threads = 1;
  /// Numbers of the topologies that are proved; none: all. The others are there for stops to go on with.
  std::vector<std::uint64_t> only = {};
};

/// What was found for one topology.
struct topology_proof {
  topology shape;
  std::uint64_t steps = 0;                     ///< per epoch, on every rank
  std::uint64_t delivered = 0;                 ///< samples of the first epoch, over all ranks
  std::uint64_t dropped = 0;                   ///< positions of it that are in no step
  std::uint64_t padded = 0;                    ///< slots without a sample, or with one of `proof::pads`
  std::uint64_t least = 0, most = 0, sum = 0;  ///< shards that a node touches; sum over the nodes
};

/// What `prove` found.
struct proof {
  std::uint64_t positions = 0;  ///< of an epoch
  std::uint64_t samples = 0;    ///< of the source
  std::uint64_t shards = 0;
  std::uint64_t left_out = 0;  ///< samples that stand at no position of the first epoch
  std::uint64_t pads = 0;      ///< positions of it with a sample once more, to fill up; 0 where `sampled`
  std::uint64_t global = 0;    ///< samples of a global step; 0 where steps have no fixed number
  bool sampled = false;        ///< random positions and steps, not all
  std::vector<topology_proof> topologies;
  std::vector<std::string> violations;  ///< the first hundred, a sentence each

  [[nodiscard]] bool holds() const noexcept { return violations.empty(); }
};

/// A topology of an epoch that is proved: what `prove` tells on its way.
struct proof_part {
  std::uint64_t epoch = 0, number = 0;         ///< number: of the topology, in the list that was given
  const topology_proof& found;                 ///< its counts are of the first epoch
  const std::vector<std::string>& violations;  ///< of this topology, and of the epoch's order
  const proof& whole;                          ///< what is known of all; its topologies may not be proved yet
};

/// What was found, as a table for people and the violations, a line each.
[[nodiscard]] std::string to_string(const proof& p);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/inspection/topology.ipp>
#endif
