// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/pipe.hpp>

#include <algorithm>
#include <concepts>
#include <optional>
#include <utility>

namespace penstock::inline v0_1::mistakes {

struct two_bad_samples : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: bad_samples twice; a pipeline has one answer to bad samples, remove one of "
                  "them");
  }
};
struct replace_on_forward : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: bad_samples::replace draws another sample, and this source can only be read "
                  "forward; write bad_samples::skip(n), or use a source with an index");
  }
};

}  // namespace penstock::inline v0_1::mistakes

/// What to do with a sample whose bytes are bad: `bad_samples::fatal()`, `skip(budget)`, `replace(budget)`.
namespace penstock::inline v0_1::bad_samples {

/// A budget as a fraction of a rank's samples per epoch, from 0 to 1: `fraction(0.001)`. After `batch_by`, of
/// an equal share of the epoch.
struct fraction {
  double value;
  explicit fraction(double part) : value(part) {
    if (!(part >= 0 && part <= 1))
      throw error(errc::argument, {"bad_samples: ", describe(),
                                   " is not between 0 and 1; write fraction(0.001) for one in a thousand"})
          .in_stage("bad_samples");
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"fraction(", detail::number_text(value), ")"});
  }
};

/// How many bad samples a rank may have in an epoch: a count, or a `fraction`.
class budget {
 public:
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  budget(T count) : budget(static_cast<std::uint64_t>(count), count < T{0}) {}
  template <std::same_as<bool> T>
  budget(T) {
    static_assert(never<T>,
                  "penstock: a budget is a count of bad samples or a fraction, and this is a bool; write "
                  "bad_samples::skip(100) or bad_samples::skip(bad_samples::fraction(0.001))");
  }
  budget(fraction part) : part_(part.value) {}

  /// The count for so many samples per epoch: a fraction is rounded to the nearest count, and to at least 1
  /// unless it is 0. If the number of samples is unknown or infinite, a fraction is an error.
  [[nodiscard]] std::uint64_t limit(std::optional<std::uint64_t> samples) const {
    if (!part_) return count_;
    if (*part_ == 0) return 0;
    if (!samples)
      throw error(errc::argument,
                  "bad_samples: the number of samples per epoch is unknown after a source that is read "
                  "forward, with steps(n) after filter and unbatch, or if an epoch has no end; give a count "
                  "instead of a fraction")
          .in_stage("bad_samples");
    return std::max<std::uint64_t>(1,
                                   static_cast<std::uint64_t>(*part_ * static_cast<double>(*samples) + 0.5));
  }
  [[nodiscard]] std::string describe() const {
    if (!part_) return std::to_string(count_);
    return fraction(*part_).describe();
  }

 private:
  budget(std::uint64_t count, bool negative) : count_(count) {
    if (negative)
      throw error(errc::argument, "bad_samples: a budget cannot be negative").in_stage("bad_samples");
  }

  std::uint64_t count_ = 0;
  std::optional<double> part_;
};

/// A file that gets a line for each bad sample. `{rank}` in the name is replaced by the rank's number; each
/// of several ranks writes its own file, so a name without `{rank}` gets ".rank3" before its extension. Of
/// replicas, which get the same batches, only the first writes.
struct ledger {
  std::string path;
  ledger() = default;
  explicit ledger(std::string name) : path(std::move(name)) {}
};

/// What a plan does with bad samples: an annotation, at most one per plan, anywhere in it. Made by
/// `bad_samples::fatal()`, `bad_samples::skip(budget, ledger)` and `bad_samples::replace(budget, ledger)`.
///
///     auto labels = samples | decode<field<"cls", integer>>;
///     auto fewer = labels | bad_samples::skip(100, bad_samples::ledger("bad.jsonl")) | batch(256);
///
/// A sample is bad if making it fails with an error that depends only on its bytes: `errc::format`,
/// `checksum`, `missing`, `limit` or `shape`. Other errors (`io`, exceptions of other types) stay fatal, and
/// so do errors that a forward-only source reports about itself.
///
/// `fatal`, the default: the error is thrown when you request the batch that holds the sample.
///
/// `skip`: the sample's slot stays in the batch and is empty: zeros, or an empty row, with `valid()` 0 there.
/// No later sample takes its place, so all ranks do the same steps and no other slot changes. After filter
/// and unbatch, over forward sources and in loops without batches the sample is dropped as a filter would
/// drop it, with everything that unbatch made of it; there, batches are filled with what survives.
///
/// `replace`: another sample of the epoch takes the slot. Substitute j of position p is drawn uniformly from
/// the other positions of the epoch, with the address (seed, epoch, p, j): the same on every rank, whatever
/// the number of ranks. Random stages see position p, and `positions()` and `keys()` report p. After 16 bad
/// substitutes the sample is fatal. A compile-time mistake over a source that can only be read forward.
///
/// Where `batch` cannot collate the shapes of a batch, the shape of the first good sample of the global step
/// counts, by position, and samples of any other shape are bad, whatever the number of ranks; after filter,
/// unbatch and forward sources such a sample leaves a hole even under `replace`. In plans that are not
/// elastic, and after `batch_by`, the first good sample of each batch counts. A step without a good one has
/// the shape of the nearest one before it, or else of the next one behind it.
///
/// The budget is per rank and epoch. Bad samples count when they are delivered, in order, so the count is the
/// same for any number of workers; it is part of the state. The one that exceeds the budget is thrown as
/// under `fatal`, with a message that says so; other ranks are not told, and nothing here waits for them. If
/// you resume on another number of ranks, each starts with its share of (ranks before x count), rounded up.
/// If `shard` comes after filter or unbatch, every rank makes all samples, and counts all bad ones.
///
/// The ledger gets a line of JSON for each bad sample delivered, written and flushed before the batch is
/// delivered: rank, epoch and index of the position, source index, key, file, offset, stage, code, reason,
/// what was done, substitute. A run that resumes from a state appends to it, and writes again what it
/// delivers again. When a run opens, the ledger of rank 0 gets a line for each shard of which a source that
/// was told `on_damaged_shard::take_what_is_there` has taken only a part. A line that cannot be written is
/// `errc::io` and ends the run.
///
/// Keeps all five guarantees. Cost: none for good samples; two exceptions for a bad one; a draw of `replace`
/// costs as much as looking up one position, with a few allocations. With several ranks, and a column whose
/// shapes only samples tell and that is not ragged, each rank evaluates one sample more per step: the first
/// one, unless it has it. Images that `resize` or `random_resized_crop` makes equal do not cost that.
template <bool Tolerates, bool Replaces>
struct policy_stage {
  using penstock_part = bad_samples_tag;
  static constexpr std::string_view stage_name = "bad_samples";
  static constexpr bool tolerates = Tolerates, replaces = Replaces;
  static constexpr bool varies_by_epoch = Replaces;  // each epoch draws its own substitutes

  budget max_bad = 0;
  std::string path;

  [[nodiscard]] std::string describe() const {
    if (!tolerates) return "bad_samples::fatal";
    return detail::text({"bad_samples::", (replaces ? "replace(" : "skip("), max_bad.describe(),
                         (path.empty() ? "" : ", ledger "), path, ")"});
  }
  template <class Context>
  static consteval auto diagnose() {
    constexpr auto facts = Context::facts;
    return typename detail::first_mistake<
        mistakes::unless<!facts.bad_samples, mistakes::two_bad_samples>,
        mistakes::unless<!(replaces && facts.forward), mistakes::replace_on_forward>>::type{};
  }
};

/// Bad samples end the run, as in a plan without `bad_samples`.
[[nodiscard]] inline policy_stage<false, false> fatal() { return {}; }
/// Each bad sample leaves a hole, up to `max_bad` on each rank per epoch.
[[nodiscard]] inline policy_stage<true, false> skip(budget max_bad, ledger log = {}) {
  return {max_bad, std::move(log.path)};
}
/// Another sample takes the place of each bad one, up to `max_bad` on each rank per epoch.
[[nodiscard]] inline policy_stage<true, true> replace(budget max_bad, ledger log = {}) {
  return {max_bad, std::move(log.path)};
}

}  // namespace penstock::inline v0_1::bad_samples
