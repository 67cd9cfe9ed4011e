// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/observe/counters.hpp>
#include <penstock/order/world.hpp>
#include <penstock/run/bad/bad_ledger.hpp>
#include <penstock/run/bad/bad_slot.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// Where a sample comes from, for a ledger; what is not known is left out.
struct sample_place {
  std::optional<std::uint64_t> source;
  std::string key, file;
};

/// What a rank's share of a number of bad samples is, when a state goes on with another number of ranks: each
/// rank before is taken to have had as many; rounded up.
[[nodiscard]] constexpr std::uint64_t share_of_bad(std::uint64_t bad, std::uint64_t before,
                                                   std::uint64_t after) noexcept {
  if (before == after || bad == 0) return bad;
  if (bad > std::numeric_limits<std::uint64_t>::max() / before) return bad;  // no run has had so many
  return (bad * before - 1) / after + 1;
}

/// The line of a ledger for a bad sample. `place_of(position)` gives a `sample_place`.
template <class PlaceOf>
[[nodiscard, gnu::cold]] std::string ledger_line(const bad_slot& one, const world& part, PlaceOf place_of) {
  std::string line;
  const auto place = [&](position at) {
    const sample_place found = place_of(at);
    detail::append(line, {"\"index\": ", at.index});
    if (found.source) detail::append(line, {", \"source\": ", *found.source});
    return found;
  };
  detail::append(line, {"{\"rank\": ", part.rank, ", \"epoch\": ", one.at.epoch, ", "});
  const sample_place mine = place(one.at);
  const auto text = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) detail::append(line, {", \"", name, "\": ", json_quoted(value)});
  };
  text("key", one.what.key().empty() ? std::string_view(mine.key) : one.what.key());
  text("file", one.what.file().empty() ? std::string_view(mine.file) : one.what.file());
  if (one.what.offset()) detail::append(line, {", \"offset\": ", *one.what.offset()});
  text("stage", one.what.stage());
  text("code", to_string(one.what.code()));
  text("reason", one.what.message());
  text("done", one.substitute ? "replaced" : "skipped");
  if (one.substitute) {
    line += ", \"substitute\": {";
    const sample_place other = place(*one.substitute);
    text("key", other.key);
    text("file", other.file);
    line += '}';
  }
  return line + '}';
}

/// What the consumer knows of the bad samples it was given: how many, whether the budget is spent, and the
/// ledger.
/// One thread.
///
/// `see` one after another those on the way to what is asked for next, then `commit` them when it is handed
/// out, or `drop` them. Nothing is written or counted before.
template <class Plan, bool Tolerant = plan_parts<Plan>::tolerant>
class bad_tally {
 public:
  bad_tally(const Plan& p, std::optional<std::uint64_t> samples) : part_(world_of(p)) {
    const auto& policy = detail::at<plan_parts<Plan>::in::template place<bad_samples_tag>>(p.stages());
    most_ = policy.most.limit(samples);
    policy_ = policy.describe();
    // Replicas of a rank see the same bad samples: one of them writes them down.
    if (part_.replica == 0 && !policy.path.empty())
      ledger_ = bad_ledger(ledger_name(policy.path, part_.rank, part_.size));
  }

  /// Throws the error that says so where the budget is spent.
  void see(std::uint64_t epoch, const bad_slot& one) {
    const std::uint64_t before = count(epoch) + pending_.size();
    if (before >= most_)
      throw detail::error_like(one.what,
                               {policy_, ": rank ", part_.rank, " has spent its budget of ", most_,
                                " bad samples in epoch ", epoch, ", and this is number ", before + 1,
                                "; mend the data or raise the budget: ", one.what.message()});
    pending_.push_back(one);
  }
  template <class PlaceOf>
  void commit(std::uint64_t epoch, PlaceOf place_of) {
    if (pending_.empty()) return;
    if (ledger_)
      for (const bad_slot& one : pending_) ledger_.write(ledger_line(one, part_, place_of));
    for (const bad_slot& one : pending_) ++(one.substitute ? replaced_ : skipped_);
    restore(epoch, count(epoch) + pending_.size());
    pending_.clear();
  }
  void drop() noexcept { pending_.clear(); }
  /// Whether there are some that were seen and not committed.
  [[nodiscard]] bool pending() const noexcept { return !pending_.empty(); }

  /// How many there were in an epoch; of one that is not at hand, none yet.
  [[nodiscard]] std::uint64_t count(std::uint64_t epoch) const noexcept {
    return epoch == epoch_ ? in_epoch_ : 0;
  }
  void restore(std::uint64_t epoch, std::uint64_t count) noexcept {
    epoch_ = epoch;
    in_epoch_ = count;
  }
  [[nodiscard]] bad_sample_counts counts(std::uint64_t epoch) const noexcept {
    return {skipped_, replaced_, epoch, count(epoch), most_};
  }

 private:
  world part_;
  std::string policy_;
  bad_ledger ledger_;
  std::vector<bad_slot> pending_;
  std::uint64_t most_ = 0, epoch_ = 0, in_epoch_ = 0, skipped_ = 0, replaced_ = 0;
};

/// Of a plan whose bad samples are fatal: nothing.
template <class Plan>
class bad_tally<Plan, false> {
 public:
  bad_tally(const Plan&, std::optional<std::uint64_t>) {}
  static void drop() noexcept {}
  [[nodiscard]] static bool pending() noexcept { return false; }
  [[nodiscard]] static bad_sample_counts counts(std::uint64_t epoch) noexcept { return {.epoch = epoch}; }
};

}  // namespace penstock::inline v0_1
