// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>

#include <vector>

/// The inputs and results of `prove`.
namespace penstock::inline v0_1 {

/// A number of machines, and the ranks on each that get different samples; `prove` tries each topology.
struct topology {
  std::uint64_t nodes = 1, ranks_per_node = 1;
  [[nodiscard]] std::uint64_t ranks() const noexcept { return nodes * ranks_per_node; }
};

/// The options of `prove`.
struct proof_options {
  std::uint64_t first_epoch = 0, epochs = 1;
  /// Steps after which each topology is stopped and the next one in the list resumes.
  std::vector<std::uint64_t> stops = {};
  /// Epochs of more positions than this are checked at `looks` random positions and steps only.
  std::uint64_t max_positions = std::uint64_t{1} << 28;
  std::uint64_t looks = 1'000'000;
  unsigned threads = 1;
  /// The numbers of the topologies to prove; empty: all. The others serve only to resume after stops.
  std::vector<std::uint64_t> only = {};
};

/// The result for one topology.
struct topology_proof {
  topology shape;
  std::uint64_t steps = 0;      ///< per epoch, on every rank
  std::uint64_t delivered = 0;  ///< samples of the first epoch, over all ranks
  std::uint64_t dropped = 0;    ///< positions of the first epoch that are in no step
  std::uint64_t padded = 0;     ///< slots without a sample, or with one of `proof::pads`
  std::uint64_t min_shards = 0, max_shards = 0, sum = 0;  ///< shards touched per node; sum over all nodes
};

/// The result of `prove`.
struct proof {
  std::uint64_t positions = 0;  ///< per epoch
  std::uint64_t samples = 0;    ///< in the source
  std::uint64_t shards = 0;
  std::uint64_t left_out = 0;  ///< samples without a position in the first epoch
  std::uint64_t pads = 0;      ///< its positions that repeat a sample to fill up; 0 if `sampled`
  std::uint64_t global = 0;    ///< samples per global step; 0 if steps have no fixed number
  bool sampled = false;        ///< only random positions and steps were checked
  std::vector<topology_proof> topologies;
  std::vector<std::string> violations;  ///< the first hundred, one sentence each

  [[nodiscard]] bool holds() const noexcept { return violations.empty(); }
};

/// A proved topology of an epoch, as `prove` reports it on the way.
struct proof_part {
  std::uint64_t epoch = 0, number = 0;         ///< number: the topology's, in the list of shapes
  const topology_proof& found;                 ///< its counts are of the first epoch
  const std::vector<std::string>& violations;  ///< of this topology, and of the epoch's order
  const proof& whole;                          ///< all results so far; some topologies may not be proved yet
};

/// The result as text for people: a table, then the violations, one per line.
[[nodiscard]] inline std::string to_string(const proof& p) {
  std::string report =
      detail::text({p.positions, " positions of ", p.samples, " samples in ", p.shards, " shards, ",
                    p.global == 0 ? std::string("batches without a fixed number of samples")
                                  : detail::text({p.global, " in a global step"}),
                    p.sampled ? "; only random positions and steps were checked\n" : "\n"});
  if (p.left_out != 0) detail::append(report, {p.left_out, " samples have no position\n"});
  if (p.pads != 0) detail::append(report, {p.pads, " positions are padding: repeated samples, to fill up\n"});
  for (const topology_proof& t : p.topologies) {
    detail::append(report, {t.shape.nodes, " x ", t.shape.ranks_per_node, " ranks: ", t.steps, " steps, ",
                            t.delivered, " samples, ", t.dropped, " dropped, ", t.padded, " padded"});
    if (!p.sampled && t.shape.nodes != 0)
      detail::append(report, {", shards touched by a node: ", t.min_shards, " to ", t.max_shards, ", ",
                              t.sum / t.shape.nodes, " on average"});
    report += '\n';
  }
  for (const std::string& violation : p.violations) detail::append(report, {"violation: ", violation, '\n'});
  return report += p.holds() ? "holds\n" : "does not hold\n";
}

}  // namespace penstock::inline v0_1
