// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/detail/plan_view.hpp>
#include <penstock/inspection/topology.hpp>
#include <penstock/order/tail.hpp>

#include <compare>
#include <exception>
#include <mutex>

namespace penstock::inline v0_1::detail {

/// The type-erased callback of `prove` for a proved topology.
struct proof_listener {
  void* who;
  void (*tell)(void* who, const proof_part& part);
};

/// The implementation of `prove`.
class prover {
 public:
  prover(plan_view plan, std::span<const topology> shapes, const proof_options& options);

  [[nodiscard]] proof result(const proof_listener& done);

 private:
  /// A position at which the order repeats a sample.
  struct pad {
    std::uint64_t index = 0, sample = 0;
    friend auto operator<=>(const pad&, const pad&) = default;
  };
  /// The totals of a topology's steps.
  struct step_sums {
    std::uint64_t delivered = 0, padded = 0;
  };

  using sentences = std::vector<std::string>;
  static constexpr std::size_t max_violations = 100;

  void violation(sentences& all, std::initializer_list<piece> what);
  void order_violation(std::initializer_list<piece> what);

  void run_threads(void (prover::*work)());

  /// Checks that the order takes each sample once, and notes the shard of each position.
  void prepare_epoch(bool first);
  /// Finds the source epochs that contain this epoch's positions.
  void find_source_epochs();
  /// Accounts for samples of which later stages kept only the padding.
  void settle_pads();
  [[nodiscard]] std::uint64_t pads_in(std::uint64_t begin, std::uint64_t end) const;
  /// The ordinal that is delivered at a position; they differ after a shuffle_buffer.
  [[nodiscard]] std::uint64_t ordinal(std::uint64_t index) const;
  [[nodiscard]] std::uint32_t shard_at(std::uint64_t sample) const;

  void prove_order();
  void prove_sample(std::uint64_t index, position at, bool padding);
  void prove_inverse(std::uint64_t index, position at);

  void prove_topologies();
  /// `touched`: by node, the shards whose samples it gets.
  void count_touched(const std::vector<bit_set>& touched, topology_proof& found) const;
  topology_proof prove_one(std::size_t which, sentences& wrong);
  /// Proves a topology whose batches have no fixed number of samples.
  topology_proof prove_uneven(std::size_t which, sentences& wrong);
  /// Checks that the steps of these ranks are where a state of another number of ranks resumes.
  void prove_elastic(const std::vector<any_epoch_cut>& ranks, sentences& wrong);
  /// Computes the counts of an epoch of which only some steps were checked.
  void count_by_size(topology_proof& found) const;
  /// Checks that the ranks' parts of a step cover each of its positions once.
  void prove_step(sentences& wrong, const std::vector<cut>& ranks, std::uint64_t step,
                  std::vector<bit_set>& touched, bit_set& offsets, step_sums& sums, const topology& shape);
  /// Checks a state of this topology on the next one.
  void prove_stop(sentences& wrong, std::size_t which, std::uint64_t stop);

  plan_view plan_;
  std::span<const topology> shapes_;
  proof_options options_;
  std::vector<std::uint64_t> numbers_;  // of the topologies to prove
  proof made_;
  sentences order_violations_;  // of the current epoch
  std::uint64_t epoch_ = 0, source_epoch_ = 0, source_epochs_ = 1;
  std::vector<std::uint64_t> drawn_;
  bit_set seen_;
  std::vector<position> listed_;  // replaces `seen_` if that would be larger
  std::vector<std::uint32_t> shard_of_;
  std::vector<pad> pads_;
  std::atomic<std::uint64_t> next_{0};
  std::mutex guard_;
  std::exception_ptr failure_;
  const proof_listener* done_ = nullptr;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/inspection/detail/prover.ipp>
#endif
