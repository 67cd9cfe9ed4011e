// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/observe/counters.hpp>
#include <penstock/order/world.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/source/concepts.hpp>

#include <atomic>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// The name of a rank's ledger: `{rank}` is replaced by the rank's number. A name without it, when there are
/// several ranks, gets ".rank3" before the extension.
[[nodiscard]] std::string ledger_name(std::string name, std::uint64_t rank, std::uint64_t world);

/// A file that lines are appended to, each in a single write. One thread. Throws `errc::io`, with the file.
class bad_ledger {
 public:
  bad_ledger() = default;
  /// Opens a file, creating it if necessary; an empty name opens nothing. An unfinished last line is
  /// terminated first.
  explicit bad_ledger(std::string path);

  [[nodiscard]] explicit operator bool() const noexcept { return file_ != nullptr; }
  /// Appends a line and flushes it to the system.
  void write(std::string line);

 private:
  [[noreturn]] void fail(std::string_view what);

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
};

/// Where a sample comes from, for a ledger; unknown parts are left out.
struct sample_place {
  std::optional<std::uint64_t> source;
  std::string key, file;
};

/// A rank's share of a number of bad samples when a state resumes with another number of ranks, assuming that
/// each rank had as many before; rounded up.
[[nodiscard]] constexpr std::uint64_t share_of_bad(std::uint64_t bad, std::uint64_t before,
                                                   std::uint64_t after) noexcept {
  if (before == after || bad == 0) return bad;
  if (bad > std::numeric_limits<std::uint64_t>::max() / before) return bad;  // no run has had so many
  return (bad * before - 1) / after + 1;
}

/// The ledger line of a bad sample: where it comes from, and its substitute if there is one.
[[nodiscard, gnu::cold]] std::string ledger_line(const bad_slot& one, const world& share,
                                                 const sample_place& mine, const sample_place& other = {});

/// The ledger line of a damaged shard of which what is there was taken.
[[nodiscard, gnu::cold]] std::string ledger_line(const damaged_shard& one, const world& share);

/// The consumer's account of the bad samples it was given: their number, the budget and the ledger.
/// One thread.
///
/// Call `see` for each bad sample found on the way to the next delivery, then `commit` when it is delivered,
/// or `drop`. Nothing is written or counted before `commit`.
class tolerant_tally {
 public:
  /// `policy` is its name in errors; the ledger's `path` may be empty.
  tolerant_tally(const world& share, std::string policy, std::uint64_t max_bad, const std::string& path);

  /// Writes lines for shards that are damaged, in the ledger of rank 0: all ranks know them.
  void note(std::span<const damaged_shard> damaged);

  /// Throws if the budget is spent.
  void see(std::uint64_t epoch, const bad_slot& one);
  /// `place_of(plan, position)` finds where a sample comes from.
  void commit(std::uint64_t epoch, sample_place (*place_of)(void* plan, position), void* plan);
  void drop() noexcept { pending_.clear(); }
  [[nodiscard]] bool pending() const noexcept { return !pending_.empty(); }

  /// How many there were in an epoch; 0 for any but the current one.
  [[nodiscard]] std::uint64_t count(std::uint64_t epoch) const noexcept {
    return epoch == epoch_ ? in_epoch_ : 0;
  }
  void restore(std::uint64_t epoch, std::uint64_t count) noexcept {
    epoch_ = epoch;
    in_epoch_ = count;
  }
  [[nodiscard]] bad_sample_counts counts(std::uint64_t epoch) const noexcept {
    return {skipped(), replaced(), epoch, count(epoch), limit_};
  }
  /// Any thread.
  [[nodiscard]] std::uint64_t skipped() const noexcept { return skipped_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t replaced() const noexcept { return replaced_.load(std::memory_order_relaxed); }

 private:
  world share_;
  std::string policy_;
  bad_ledger ledger_;
  std::vector<bad_slot> pending_;
  std::uint64_t limit_ = 0, epoch_ = 0, in_epoch_ = 0;
  std::atomic<std::uint64_t> skipped_{0}, replaced_{0};
};

/// What a hand-out's shell does with a tally. Only a plan that tolerates bad samples names `tally_functions`,
/// so that other programs need not compile them.
struct tally_calls {
  void (tolerant_tally::*see)(std::uint64_t epoch, const bad_slot& one);
  void (tolerant_tally::*commit)(std::uint64_t epoch, sample_place (*place_of)(void* plan, position),
                                 void* plan);
  void (bad_slots::*sort)() noexcept;
};
inline constexpr tally_calls tally_functions{&tolerant_tally::see, &tolerant_tally::commit, &bad_slots::sort};

/// The tally of a plan that tolerates bad samples.
template <class Plan, bool Tolerant = plan_parts<Plan>::tolerant>
class bad_tally : public tolerant_tally {
 public:
  bad_tally(const Plan& p, std::optional<std::uint64_t> samples)
      : bad_tally(world_of(p), detail::at<plan_parts<Plan>::in::template place<bad_samples_tag>>(p.stages()),
                  samples) {
    if constexpr (requires { this->note(p.source().damaged_shards()); })
      this->note(p.source().damaged_shards());
  }

 private:
  template <class Policy>
  bad_tally(const world& share, const Policy& policy, std::optional<std::uint64_t> samples)
      : tolerant_tally(share, policy.describe(), policy.max_bad.limit(samples), policy.path) {}
};

/// Null if bad samples are fatal.
template <class Plan>
[[nodiscard]] constexpr const tally_calls* tally_functions_of() noexcept {
  if constexpr (plan_parts<Plan>::tolerant)
    return &tally_functions;
  else
    return nullptr;
}

/// The tally of a plan whose bad samples are fatal is empty.
template <class Plan>
class bad_tally<Plan, false> {
 public:
  bad_tally(const Plan&, std::optional<std::uint64_t>) {}
  [[nodiscard]] static bad_sample_counts counts(std::uint64_t epoch) noexcept { return {.epoch = epoch}; }
  [[nodiscard]] static std::uint64_t skipped() noexcept { return 0; }
  [[nodiscard]] static std::uint64_t replaced() noexcept { return 0; }
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/bad/bad_tally.ipp>
#endif
