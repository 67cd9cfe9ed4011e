// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/inspection/detail/plan_view.hpp>
#include <penstock/run/bad/bad_entry.hpp>
#include <penstock/source/concepts.hpp>

#include <map>

namespace penstock::inline v0_1 {

/// The result of `prove_ledger`. A sample that was delivered again after a restart counts once.
struct ledger_proof {
  struct counts {
    std::uint64_t skipped = 0, replaced = 0;
    friend bool operator==(const counts&, const counts&) = default;
  };

  counts all;
  std::map<std::uint64_t, counts> by_rank;   ///< of the first line that names a sample
  std::map<std::uint64_t, counts> by_shard;  ///< of the bad sample
  std::uint64_t again = 0;                   ///< lines that repeat a sample
  std::uint64_t damaged_shards = 0;          ///< lines about shards of which only a part is in the dataset
  std::uint64_t extra = 0;                   ///< stand-in samples that were also delivered in their own place
  std::vector<std::string> violations;       ///< the first hundred, one sentence each

  [[nodiscard]] bool holds() const noexcept { return violations.empty(); }
};

namespace detail {

/// Type-erased access to the keys of a source; `find` is null if samples have none.
struct key_lookup {
  const void* reader = nullptr;
  std::string (*find)(const void* reader, position at) = nullptr;
};

/// The implementation of `prove_ledger`.
[[nodiscard]] ledger_proof proof_of_ledger(plan_view plan, std::uint64_t seed, const key_lookup& keys,
                                           std::span<const bad_entry> entries);

}  // namespace detail

/// Counts the samples that ledgers of `bad_samples` name, per rank and per shard, and checks that they belong
/// to this plan: each is at its position, in a step; each stand-in is a sample that `replace` would draw, and
/// is not itself named as bad in that epoch; and no position was delivered with two outcomes.
///
/// In: the lines of the ledgers of all ranks, in any order, from any number of starts. Reads keys, but no
/// samples; works for the plans that `prove` accepts. The plan needs no `bad_samples`; if the ledger's plan
/// had a `seed`, this one needs the same seed. Cost per line: finding up to 18 positions; memory: O(lines).
/// Thread-safe. Throws what the source and the orders throw.
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
  using reader = typename Source::reader;
  detail::viewed_plan<plan_type> viewed(p);
  const reader opened(connect_source(p.source(), projection::none()));
  detail::key_lookup keys;
  if constexpr (has_keys<reader>) {
    keys = {&opened,
            [](const void* source, position at) { return key_of(*static_cast<const reader*>(source), at); }};
  }
  return detail::proof_of_ledger(viewed.view(), *options_of(p).seed, keys, entries);
}

/// The result as text for people: counts, then ranks, then shards, named by `shard_name(number)`, then
/// violations.
[[nodiscard]] std::string to_string(const ledger_proof& p, const auto& shard_name) {
  const auto words = [](const ledger_proof::counts& c) {
    return detail::text({c.skipped, " skipped, ", c.replaced, " replaced"});
  };
  std::string report = detail::text({"substitutions: ", words(p.all), "; ", p.extra,
                                     " replacements were also delivered in their own place"});
  if (p.damaged_shards != 0) detail::append(report, {"; ", p.damaged_shards, " lines name a damaged shard"});
  if (p.again != 0) detail::append(report, {"; ", p.again, " lines name a sample again"});
  report += '\n';
  for (const auto& [rank, c] : p.by_rank) detail::append(report, {"rank ", rank, ": ", words(c), '\n'});
  for (const auto& [number, c] : p.by_shard)
    detail::append(report, {"shard ", shard_name(number), ": ", words(c), '\n'});
  for (const std::string& violation : p.violations) detail::append(report, {"violation: ", violation, '\n'});
  return report += p.holds() ? "the ledger holds\n" : "the ledger does not hold\n";
}

[[nodiscard]] std::string to_string(const ledger_proof& p);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/inspection/ledger_proof.ipp>
#endif
