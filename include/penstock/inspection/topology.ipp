// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/topology.hpp>

#include <penstock/core/message.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::string to_string(const proof& p) {
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
