// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/plan.hpp>
#include <penstock/inspection/detail/prover.hpp>

/// Proofs about a plan's order, by arithmetic alone, without reading samples.
namespace penstock::inline v0_1 {

/// Checks a plan for each topology by running its arithmetic. Every epoch contains each sample of the order
/// once (except with `class_balanced` and `weighted`, which repeat samples; the samples that
/// `distributed_sampler` and `mosaic` repeat to fill up an epoch count as padding). Each global step is the
/// same set of positions, each on exactly one rank. All ranks have the same number of steps, and parts that
/// differ by at most one slot. A state of one topology is the same place on the next. Counts the samples that
/// are dropped, padded and left out, and the shards that each node touches.
///
/// The plan must be elastic, and its batches must follow from positions alone: no filter, no unbatch, no
/// forward source. Its `shard` determines how large a global step of `batch(b)` is; the ranks are those of
/// the topologies.
/// With `batch_by`, the ranks' parts differ like batches do, and each topology has its own global steps: the
/// same batches in the same order, dealt to different numbers of ranks. `stops` are not checked there: a
/// state records how many samples precede it, and a topology resumes it if one of its steps starts at that
/// sample. Where the positions of steps are listed and a state may resume on any number of ranks, as with
/// `global_bucket_by`, the samples before each step are proved to be those that one rank alone has had.
/// Reads no sample. Memory: 5 bytes per position (21 if an epoch has few positions of many samples), with
/// `sampled` O(shards). Time: about 0.1 us per position and topology, divided over `threads`. Throws
/// `error(errc::argument)` if there are more ranks than a global step has samples, and if no topology or no
/// epoch is given.
///
///     const auto found = prove(loader, std::vector<topology>{{1, 8}, {4, 8}, {3, 7}});
///     if (!found.holds()) std::cerr << to_string(found);
///
/// Calls `done(proof_part)` when a topology of an epoch is proved, from one thread at a time: this lets you
/// resume a long proof after it was stopped. An exception from `done` ends the proof.
template <class Source, class... Stages, class Done>
[[nodiscard]] proof prove(const plan<Source, Stages...>& p, std::span<const topology> shapes,
                          const proof_options& options, Done done) {
  using plan_type = plan<Source, Stages...>;
  static_assert(
      plan_parts<plan_type>::direct,
      "penstock: prove needs batches that are known without reading samples: no filter, unbatch, forward "
      "source or pack without lengths, and a batch");
  static_assert(elastic<plan_type>,
                "penstock: prove needs a plan that keeps `elastic`; put shuffle_buffer before shard");
  detail::viewed_plan<plan_type> viewed(p);
  const auto tell = [](void* who, const proof_part& part) { (*static_cast<Done*>(who))(part); };
  return detail::prover(viewed.view(), shapes, options).result({&done, tell});
}
template <class Source, class... Stages>
[[nodiscard]] proof prove(const plan<Source, Stages...>& p, std::span<const topology> shapes,
                          const proof_options& options = {}) {
  return prove(p, shapes, options, [](const proof_part&) {});
}

}  // namespace penstock::inline v0_1
