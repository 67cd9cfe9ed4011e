// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/pipe.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1::mistakes {

struct two_bad_samples {
  using penstock_mistake = about_expression_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: bad_samples twice; a pipeline has one answer to bad samples, remove one of "
                  "them");
  }
};
struct replace_on_forward {
  using penstock_mistake = about_expression_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: bad_samples::replace draws another sample, and this source can only be read "
                  "forward; write bad_samples::skip(n), or use a source with an index");
  }
};

}  // namespace penstock::inline v0_1::mistakes

/// What becomes of a sample whose bytes are bad: `bad_samples::fatal()`, `skip(budget)`, `replace(budget)`.
namespace penstock::inline v0_1::bad_samples {

/// A budget that is a part of a rank's samples of an epoch: `fraction(0.001)`. From 0 to 1. Behind
/// `batch_by` that of an equal share of the epoch.
struct fraction {
  double value;
  explicit fraction(double part);
  /// As it is written, with the shortest decimal that reads back as it.
  [[nodiscard]] std::string describe() const;
};

/// How many bad samples a rank may have in an epoch: a count, or a `fraction`.
class budget {
 public:
  template <std::integral T>
  budget(T count) : budget(static_cast<std::uint64_t>(count), count < T{0}) {}
  budget(fraction part) : part_(part.value) {}

  /// The count, for so many samples in an epoch: of a fraction the nearest one, and at least 1 unless the
  /// fraction is 0. Where nobody knows how many there are, or there is no end of them, a fraction is an
  /// error.
  [[nodiscard]] std::uint64_t limit(std::optional<std::uint64_t> samples) const;
  [[nodiscard]] std::string describe() const;

 private:
  budget(std::uint64_t count, bool negative);

  std::uint64_t count_ = 0;
  std::optional<double> part_;
};

/// A file to which a line is added for each bad sample. `{rank}` in the name becomes the rank's number; of
/// several ranks, each writes its own: a name without it gets ".rank3" before its extension. Of replicas,
/// which get the same batches, the first writes.
struct ledger {
  std::string path;
  ledger() = default;
  explicit ledger(std::string name) : path(std::move(name)) {}
};

/// What a plan does with bad samples: an annotation of which a plan has at most one, wherever it stands. Made
/// by `bad_samples::fatal()`, `bad_samples::skip(budget, ledger)` and `bad_samples::replace(budget, ledger)`.
///
///     auto labels = samples | decode<field<"cls", integer>>;
///     auto fewer = labels | bad_samples::skip(100) | batch(256);
///     auto as_many = labels | bad_samples::replace(bad_samples::fraction(0.001),
///                                                  bad_samples::ledger("bad.jsonl")) | batch(256);
///
/// A sample is bad when making it fails with an error that depends on the bytes alone: `errc::format`,
/// `checksum`, `missing`, `limit` or `shape`. Others (`io`, exceptions that are not ours) stay fatal, and so
/// does what a source that is read forward says of itself.
///
/// `fatal`, which a plan without the stage has too: the error is thrown when the batch is asked for that
/// holds the sample.
///
/// `skip`: its slot in the batch stays and holds nothing: zeros, or an empty row, and `valid()` is 0 there.
/// No later sample takes its place, so all ranks do the same steps and nobody's other slots change. Behind
/// filter and unbatch, over forward sources and in loops without batches it is dropped as a filter drops one,
/// with all that unbatch made of it: batches there are filled with what survives.
///
/// `replace`: another sample of the epoch stands in its slot. Substitute j of position p is drawn evenly from
/// the other positions of the epoch, with the address (seed, epoch, p, j): the same on every rank and any
/// number of them.
/// Random stages see position p, and `positions()` and `keys()` say p. After 16 bad substitutes the sample is
/// fatal. A compile-time mistake over a source that can only be read forward.
///
/// Where `batch` cannot put shapes together, those that most slots of the batch have count (of several, the
/// first), and a sample of another one is bad; behind filter, unbatch and forward sources it leaves a hole
/// under `replace` too.
///
/// The budget is of one rank and epoch. Bad samples count when they are delivered, in order, so the count is
/// the same for any number of workers; it is part of the state. The one that exceeds the budget is thrown as
/// `fatal` would, with a sentence that says so; other ranks are not told, and nothing waits for them here. On
/// another number of ranks each begins with its share of (ranks before x count), rounded up. Where `shard`
/// stands behind filter or unbatch every rank makes all samples, and counts all bad ones.
///
/// The ledger gets a line of JSON for each bad sample that was delivered, added and flushed before the batch
/// is handed out: rank, epoch and index of the position, source index, key, file, offset, stage, code,
/// reason, what was done, substitute. A run that goes on from a state adds to it; what it delivers again it
/// writes again. A line that cannot be written is `errc::io` and ends the run.
///
/// Keeps all five guarantees. Cost: none for good samples; a bad one costs two exceptions, and a draw of
/// `replace` what finding one position costs, with a few allocations.
template <bool Tolerates, bool Replaces>
struct policy_stage {
  using penstock_part = bad_samples_tag;
  static constexpr std::string_view stage_name = "bad_samples";
  static constexpr bool tolerates = Tolerates, replaces = Replaces;
  static constexpr bool varies_by_epoch = Replaces;  // what stands in is drawn in each epoch

  budget most = 0;
  std::string path;

  [[nodiscard]] std::string describe() const {
    if (!tolerates) return "bad_samples::fatal";
    return detail::text({"bad_samples::", (replaces ? "replace(" : "skip("), most.describe(),
                         (path.empty() ? "" : ", ledger "), path, ")"});
  }
  template <class Context>
  static consteval auto diagnose() {
    if constexpr (Context::facts.bad_samples)
      return mistakes::two_bad_samples{};
    else if constexpr (replaces && Context::facts.forward)
      return mistakes::replace_on_forward{};
    else
      return mistakes::none{};
  }
};

/// Bad samples end the run: what a plan without `bad_samples` does.
[[nodiscard]] inline policy_stage<false, false> fatal() { return {}; }
/// Bad samples leave a hole, at most `most` of them on each rank in an epoch.
[[nodiscard]] inline policy_stage<true, false> skip(budget most, ledger log = {}) {
  return {most, std::move(log.path)};
}
/// Another sample stands in for each bad one, at most `most` of them on each rank in an epoch.
[[nodiscard]] inline policy_stage<true, true> replace(budget most, ledger log = {}) {
  return {most, std::move(log.path)};
}

}  // namespace penstock::inline v0_1::bad_samples

#ifndef PENSTOCK_COMPILED
#include <penstock/stage/bad_samples.ipp>
#endif
