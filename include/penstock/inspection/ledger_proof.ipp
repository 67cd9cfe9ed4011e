// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/ledger_proof.hpp>

#include <penstock/run/bad/bad_tally.hpp>

#include <set>

namespace penstock::inline v0_1 {

namespace detail {

class ledger_prover {
  struct epoch_size {
    std::uint64_t positions;
    [[nodiscard]] std::uint64_t size() const noexcept { return positions; }
  };

 public:
  ledger_prover(plan_view plan, std::uint64_t seed, const key_lookup& keys)
      : plan_(std::move(plan)), keys_(keys), size_{plan_.positions}, draws_{&size_, seed} {}
  ledger_prover(const ledger_prover&) = delete;
  ledger_prover& operator=(const ledger_prover&) = delete;

  ledger_proof result(std::span<const bad_entry> entries) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, const bad_entry*> first;  // ordered by position
    for (const bad_entry& one : entries) {
      if (one.shard) {
        ++made_.damaged_shards;
        continue;
      }
      const auto [known, fresh] = first.try_emplace({one.epoch, one.index}, &one);
      if (fresh) continue;
      ++made_.again;
      const auto &a = known->second->substitute, &b = one.substitute;
      if (a.has_value() != b.has_value() || (a && a->index != b->index))
        violation(one, {"it is named as ", done(*known->second), " and as ", done(one)});
    }
    for (const auto& [at, one] : first) look_at(*one);
    // A stand-in was made from good bytes, so it is not bad itself. A shape is good or bad only within
    // its batch.
    for (const auto& [at, one] : first)
      if (one->substitute && one->substitute->source)
        if (bad_.contains({at.first, *one->substitute->source}))
          violation(*one,
                    {"its replacement, at position ", one->substitute->index, ", is a bad sample itself"});
    return std::move(made_);
  }

 private:
  static std::string done(const bad_entry& one) {
    return one.substitute ? text({"replaced by position ", one.substitute->index}) : "skipped";
  }
  void violation(const bad_entry& one, std::initializer_list<piece> what) {
    if (made_.violations.size() < 100)
      made_.violations.push_back(text({"epoch ", one.epoch, ", position ", one.index, ": ", text(what)}));
  }
  static void add(ledger_proof::counts& to, const bad_entry& one) {
    ++(one.substitute ? to.replaced : to.skipped);
  }

  void look_at(const bad_entry& one) {
    add(made_.all, one);
    add(made_.by_rank[one.rank], one);
    const auto sample = sample_of(one, one.index, one.source, one.key, "it");
    if (!sample) return;
    add(made_.by_shard[last_not_above(plan_.starts.data(), plan_.starts.size() - 1, sample->index)], one);
    if (one.code != "shape") bad_.insert({one.epoch, sample->index});
    if (!delivered(one.epoch, one.index))
      violation(one, {"it is in no step of this plan, so it cannot have been delivered"});
    if (!one.substitute) return;
    const bad_entry::substitute_place& other = *one.substitute;
    if (!sample_of(one, other.index, other.source, other.key, "its replacement")) return;
    if (delivered(one.epoch, other.index)) ++made_.extra;
    if (!drawn(one))
      violation(one, {"position ", other.index,
                      " is none of those that could replace it; does the plan "
                      "have another seed?"});
  }

  /// The sample at a position; empty, with a violation, if the position does not belong to this plan.
  std::optional<position> sample_of(const bad_entry& one, std::uint64_t index,
                                    const std::optional<std::uint64_t>& source, std::string_view key,
                                    std::string_view who) {
    if (index >= plan_.positions) {
      violation(one, {who, " is at position ", index, ", and an epoch has ", plan_.positions});
      return std::nullopt;
    }
    position found;
    plan_.look(one.epoch, {&index, 1}, &found);
    if (source && *source != found.index) {
      violation(one, {who, " is sample ", *source, " of the source, and in this plan sample ", found.index});
      return std::nullopt;
    }
    if (keys_.find != nullptr) {
      // as a ledger writes it
      const std::string quoted = detail::json_quoted(keys_.find(keys_.reader, found));
      if (!key.empty() && quoted != detail::json_quoted(key) && unquoted(quoted) != key) {
        violation(one, {who, " has the key ", detail::json_quoted(key), ", and in this plan ", quoted});
        return std::nullopt;
      }
    }
    return found;
  }
  static std::string unquoted(std::string_view quoted) {
    const auto line = bad_entry_from(
        text({"{\"rank\": 0, \"epoch\": 0, \"index\": 0, \"key\": ", quoted, ", \"done\": \"skipped\"}"}));
    return line ? line->key : std::string();
  }
  /// After a shuffle_buffer, the step of a position is unknown.
  [[nodiscard]] bool delivered(std::uint64_t epoch, std::uint64_t index) {
    if (plan_.uneven.any()) {
      if (!ends_ || ends_->epoch != epoch) {
        const any_epoch_cut steps = plan_.uneven.bind(epoch);
        ends_ = {epoch, steps.lists() ? plan_.positions : steps.before(steps.steps())};
      }
      return index < ends_->index;
    }
    return plan_.buffer || plan_.mine.slot_of(index).has_value();
  }
  [[nodiscard]] bool drawn(const bad_entry& one) const {
    if (plan_.positions < 2) return false;
    for (std::uint32_t j = 0; j < draws_.max_tries; ++j)
      if (draws_.draw({one.epoch, one.index}, j).index == one.substitute->index) return true;
    return false;
  }

  plan_view plan_;
  key_lookup keys_;
  epoch_size size_;
  bad_is_replaced<epoch_size> draws_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> bad_;  // epoch, sample
  std::optional<position> ends_;  // end of an epoch's steps that have no fixed number of samples
  ledger_proof made_;
};

PENSTOCK_INLINE ledger_proof proof_of_ledger(plan_view plan, std::uint64_t seed, const key_lookup& keys,
                                             std::span<const bad_entry> entries) {
  return ledger_prover(std::move(plan), seed, keys).result(entries);
}

}  // namespace detail

PENSTOCK_INLINE std::string to_string(const ledger_proof& p) {
  return to_string(p, [](std::uint64_t number) { return number; });
}

}  // namespace penstock::inline v0_1
