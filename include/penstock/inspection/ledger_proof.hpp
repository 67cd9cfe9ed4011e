// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/flat_json.hpp>
#include <penstock/core/message.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/run/bad/bad_entry.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/feed/feed.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// What `prove_ledger` found. A sample that was delivered again, after a restart, counts once.
struct ledger_proof {
  struct counts {
    std::uint64_t skipped = 0, replaced = 0;
    friend bool operator==(const counts&, const counts&) = default;
  };

  counts all;
  std::map<std::uint64_t, counts> by_rank;   ///< of the line that names a sample first
  std::map<std::uint64_t, counts> by_shard;  ///< of the bad sample
  std::uint64_t again = 0;                   ///< lines that name a sample once more
  std::uint64_t extra = 0;              ///< samples that stood in and were delivered in their own place too
  std::vector<std::string> violations;  ///< the first hundred, a sentence each

  [[nodiscard]] bool holds() const noexcept { return violations.empty(); }
};

namespace detail {

/// The work of `prove_ledger`.
template <class Plan>
class ledger_prover {
  using parts = plan_parts<Plan>;
  using orders_type = sample_orders_of<Plan>;
  using reader_type = typename Plan::source_type::reader;

 public:
  explicit ledger_prover(const Plan& p)
      : plan_(p),
        orders_(make_sample_orders(p)),
        mine_(make_feed_facts(p, orders_).mine),
        reader_(p.source().open()),
        draws_{&orders_, *options_of(p).seed} {
    if (const auto starts = p.source().starts()) starts_ = *starts;
    if (starts_.size() < 2) starts_ = {0, p.source().size()};
  }

  ledger_proof result(std::span<const bad_entry> entries) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, const bad_entry*> first;  // in the order of positions
    for (const bad_entry& one : entries) {
      const auto [known, fresh] = first.try_emplace({one.epoch, one.index}, &one);
      if (fresh) continue;
      ++made_.again;
      const auto &a = known->second->substitute, &b = one.substitute;
      if (a.has_value() != b.has_value() || (a && a->index != b->index))
        violation(one, {"it is named as ", done(*known->second), " and as ", done(one)});
    }
    for (const auto& [at, one] : first) look_at(*one);
    // Whoever stands in was made from good bytes. A shape is good or bad in its batch only.
    for (const auto& [at, one] : first)
      if (one->substitute && one->substitute->source)
        if (bad_.contains({at.first, *one->substitute->source}))
          violation(*one, {"what stands in for it, at position ", one->substitute->index,
                           ", is a bad sample itself"});
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
    add(made_.by_shard[last_not_above(starts_.data(), starts_.size() - 1, sample->index)], one);
    if (one.code != "shape") bad_.insert({one.epoch, sample->index});
    if (!delivered(one.index))
      violation(one, {"it is in no step of this plan, and cannot have been delivered"});
    if (!one.substitute) return;
    const bad_entry::substitute_place& other = *one.substitute;
    if (!sample_of(one, other.index, other.source, other.key, "what stands in for it")) return;
    if (delivered(other.index)) ++made_.extra;
    if (!drawn(one))
      violation(one, {"position ", other.index,
                      " is none of those that could stand in for it; is the plan's "
                      "seed another?"});
  }

  /// The sample at a position; nothing where it is not this plan's, which is a violation.
  std::optional<position> sample_of(const bad_entry& one, std::uint64_t index,
                                    const std::optional<std::uint64_t>& source, std::string_view key,
                                    std::string_view who) {
    if (index >= orders_.size()) {
      violation(one, {who, " is at position ", index, ", and an epoch has ", orders_.size()});
      return std::nullopt;
    }
    orders_.rebind(binding_, one.epoch, index, index + 1);
    const position found = binding_(index);
    if (source && *source != found.index) {
      violation(one, {who, " is sample ", *source, " of the source, and in this plan sample ", found.index});
      return std::nullopt;
    }
    if constexpr (has_keys<reader_type>) {
      const std::string mine = key_of(reader_, found);
      if (!key.empty() && as_utf8(mine) != as_utf8(key)) {  // as a ledger has it
        violation(one, {who, " has the key ", json_quoted(key), ", and in this plan ", json_quoted(mine)});
        return std::nullopt;
      }
    }
    return found;
  }
  /// Behind a shuffle_buffer it is not known which step a position comes to.
  [[nodiscard]] bool delivered(std::uint64_t index) const {
    if constexpr (parts::has_cursor)
      return true;
    else
      return mine_.slot_of(index).has_value();
  }
  [[nodiscard]] bool drawn(const bad_entry& one) const {
    if (orders_.size() < 2) return false;
    for (std::uint32_t j = 0; j < draws_.most; ++j)
      if (draws_.draw({one.epoch, one.index}, j).index == one.substitute->index) return true;
    return false;
  }

  const Plan& plan_;
  orders_type orders_;
  cut mine_;
  reader_type reader_;
  bad_is_replaced<orders_type> draws_;
  typename orders_type::binding binding_;
  std::vector<std::uint64_t> starts_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> bad_;  // epoch, sample
  ledger_proof made_;
};

}  // namespace detail

/// Counts the samples that ledgers of `bad_samples` name, for each rank and each shard, and checks that they
/// are this plan's: each stands at its position, in a step; what stands in for one is a sample that `replace`
/// would draw for it, and is not named as bad itself in that epoch; and no position was delivered with two
/// outcomes.
///
/// In: the lines of the ledgers of all ranks, in any order, of any number of starts. Reads keys, no samples;
/// works for the plans of `prove`. The plan needs no `bad_samples`; where it has a `seed`, this one needs the
/// same. Cost: what finding up to 18 positions costs a line, O(lines) memory. Free for all threads.
/// Throws what the source and the orders throw.
///
///     const auto found = prove_ledger(loader, read_bad_ledger("bad.jsonl").all);
///     if (!found.holds()) std::cerr << to_string(found);
template <class Source, class... Stages>
[[nodiscard]] ledger_proof prove_ledger(const plan<Source, Stages...>& p,
                                        std::span<const bad_entry> entries) {
  using plan_type = plan<Source, Stages...>;
  static_assert(plan_parts<plan_type>::direct,
                "penstock: prove_ledger needs batches that are known without reading samples: no filter, "
                "unbatch or forward source, and a batch");
  return detail::ledger_prover<plan_type>(p).result(entries);
}

/// What was found, as lines for people: counts, then ranks, then shards, which `shard_name` names by their
/// numbers, then violations.
template <class ShardName>
[[nodiscard]] std::string to_string(const ledger_proof& p, ShardName shard_name) {
  const auto words = [](const ledger_proof::counts& c) {
    return detail::text({c.skipped, " skipped, ", c.replaced, " replaced"});
  };
  std::string report = detail::text({"substitutions: ", words(p.all), "; ", p.extra,
                                     " samples that stood in were had in their own place too"});
  if (p.again != 0) detail::append(report, {"; ", p.again, " lines name a sample once more"});
  report += '\n';
  for (const auto& [rank, c] : p.by_rank) detail::append(report, {"rank ", rank, ": ", words(c), '\n'});
  for (const auto& [number, c] : p.by_shard)
    detail::append(report, {"shard ", shard_name(number), ": ", words(c), '\n'});
  for (const std::string& violation : p.violations) detail::append(report, {"violation: ", violation, '\n'});
  return report += p.holds() ? "the ledger holds\n" : "the ledger does not hold\n";
}
template <class = void>
[[nodiscard]] std::string to_string(const ledger_proof& p) {
  return to_string(p, [](std::uint64_t number) { return number; });
}

}  // namespace penstock::inline v0_1
