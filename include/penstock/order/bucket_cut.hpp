// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/bucket_edges.hpp>
#include <penstock/order/cost_cut.hpp>
#include <penstock/order/schedule.hpp>
#include <penstock/order/step_cut.hpp>

#include <chrono>
#include <exception>

namespace penstock::inline v0_1 {

/// What a batch of `bucket_by` holds at most; give one of the first two, or both.
struct bucket_options {
  /// Tokens with padding: the number of samples times the longest. 0: no limit. A function of `position` is
  /// asked once for each step, when the step gets its first sample, with the number of steps that are full by
  /// then. Their random order moves a step by less than `window` from there.
  schedule max_tokens = 0;
  /// The same where lengths are durations in milliseconds, as those of `audio_manifest` are; write one of
  /// both.
  std::chrono::milliseconds max_duration{0};
  /// Samples. 0: no limit.
  std::uint64_t max_samples = 0;
  /// With q other than 0, a sample of n tokens counts as n + n * n / q, because attention costs more for long
  /// ones: Lhotse's `quadratic_duration`. n is below 2^32 then.
  std::uint64_t quadratic = 0;
  /// Of the order of steps; the plan's seed if there is none.
  std::optional<std::uint64_t> seed = {};
  /// The steps that are permuted with each other; 0: all of an epoch.
  std::uint64_t window = 1024;
};

namespace detail {

/// The limits of a step in the terms of its padded batches.
struct bucket_limits {
  bucket_options given;
  std::uint64_t multiple = 1;  ///< lengths are rounded up to one of it
  std::uint64_t ranks = 1;     ///< among which a step is divided evenly; 1 if the limits are over all of them

  /// What `max_tokens` is at a step.
  [[nodiscard]] std::uint64_t max_tokens(position step) const;

  /// What a sample of this length counts as, the most there is if that is absurd.
  [[nodiscard]] std::uint64_t tokens(std::uint64_t length) const noexcept;
  /// How many samples a step has if the longest counts as so many tokens; 0: not one.
  [[nodiscard]] std::uint64_t room(std::uint64_t tokens, std::uint64_t max_tokens) const noexcept;
  /// Throws if such a cut is impossible.
  void check(std::uint64_t positions) const;
};

/// Where a step's first sample stands, and how many samples the steps before it have.
struct bucket_step {
  std::uint64_t first = 0, before = 0;
};

/// One epoch cut into steps of one bucket each: a byte for each position, and 16 bytes for each step.
struct bucket_steps {
  std::vector<std::uint8_t> buckets;  // of each position
  std::vector<bucket_step> steps;     // those that are full, then the others; one more at the end
  std::uint64_t full = 0;
  std::optional<costly_sample> too_long;  // there is one step, which cannot be made
  std::uint64_t max_tokens = 0;           // and for how many it is too long
  std::exception_ptr failure;             // the same; thrown by the length of a sample

  [[nodiscard]] bool fails() const noexcept { return too_long || failure; }
};

/// Fills one step for each bucket at a time, in the order of the epoch.
class bucket_filler {
 public:
  bucket_filler(const bucket_limits& limits, std::uint64_t epoch, std::uint64_t positions,
                std::uint64_t buckets);

  /// The bucket of each position, to be written before it is added.
  [[nodiscard]] std::uint8_t* buckets() noexcept { return made_.buckets.data(); }
  /// Adds the positions from `first` on, which have these lengths. Returns how many were added: all, or those
  /// before one that is too long for a step of `max_tokens()`.
  [[nodiscard]] std::size_t add(std::uint64_t first, const std::uint64_t* lengths, std::size_t count);
  /// What the last step that was begun holds.
  [[nodiscard]] std::uint64_t max_tokens() const noexcept { return last_limit_; }
  /// The full steps in an order of this key, and then those that are not full, by bucket.
  [[nodiscard]] bucket_steps done(std::uint64_t key);

 private:
  struct open_step {
    std::uint64_t first = 0, count = 0, max_tokens = 0;
    std::uint64_t longest = 0, room = 0;  // in tokens, and how many samples of that many
  };
  void close(open_step& step);

  bucket_limits limits_;
  std::uint64_t epoch_, last_limit_ = 0;
  std::vector<open_step> open_;
  bucket_steps made_;
};

/// An epoch that has no step but one that cannot be made.
[[nodiscard]] bucket_steps no_bucket_steps(const costly_sample& too_long, std::uint64_t max_tokens);
[[nodiscard]] bucket_steps no_bucket_steps(std::exception_ptr failure);
/// The key of the order of an epoch's steps.
[[nodiscard]] constexpr std::uint64_t bucket_key(std::uint64_t seed, std::uint64_t epoch) noexcept {
  constexpr std::uint64_t stream = 0x6275'636b'6574'7300;  // "buckets"
  return rng(seed, epoch, 0, stream)();
}
/// Call in a catch handler: adds the sample whose length failed to the error and rethrows it.
[[noreturn, gnu::cold]] void rethrow_length(error& e, position at, std::uint64_t sample);

}  // namespace detail

/// An `epoch_cut` of an epoch into steps of one bucket each: a `listing_cut`.
///
/// A step has consecutive samples of its bucket, in the order of the epoch. Rank r of W takes those from
/// ceil(m r / W) up to ceil(m (r + 1) / W) of its m samples. Steps that are not full come last; `tail::drop`
/// leaves them out. A step's positions are found by looking through the buckets from its first one on.
class bucketed_steps {
 public:
  bucketed_steps(std::shared_ptr<const detail::bucket_steps> made, bool global, std::uint64_t world,
                 std::uint64_t rank, tail policy)
      : made_(std::move(made)), global_(global), world_(world), rank_(rank), policy_(policy) {}

  [[nodiscard]] std::uint64_t steps() const noexcept {
    return policy_ == tail::drop && !made_->fails() ? made_->full : made_->steps.size() - 1;
  }
  [[nodiscard]] std::uint64_t before(std::uint64_t step) const noexcept {
    return made_->steps[detail::to_size(std::min(step, steps()))].before;
  }
  [[nodiscard]] std::uint64_t count(std::uint64_t step) const noexcept {
    return step >= steps() ? 0 : before(step + 1) - before(step);
  }
  /// The bucket of a step, which must have samples: the number of edges below their lengths.
  [[nodiscard]] std::uint64_t bucket(std::uint64_t step) const noexcept {
    return made_->buckets[detail::to_size(made_->steps[detail::to_size(step)].first)];
  }
  /// The slots of a step. If the epoch has a sample that no batch holds, throws `error(errc::argument)`; if a
  /// length could not be had, rethrows that exception.
  [[nodiscard]] step_view at(std::uint64_t step) const {
    if (made_->fails()) refuse();
    return {0, first_of(step, rank_ + 1) - first_of(step, rank_)};
  }
  void list(std::uint64_t step, std::vector<std::uint64_t>& into) const;
  void check() const {
    if (made_->fails()) refuse();
  }
  /// Whether steps are the same on any number of ranks.
  [[nodiscard]] bool elastic() const noexcept { return global_; }

 private:
  /// The first of a step's samples that a rank has.
  [[nodiscard]] std::uint64_t first_of(std::uint64_t step, std::uint64_t rank) const noexcept {
    const std::uint64_t samples = count(step);
    return samples - detail::share(samples, world_ - rank, world_);
  }
  [[noreturn, gnu::cold]] void refuse() const;

  std::shared_ptr<const detail::bucket_steps> made_;
  bool global_;
  std::uint64_t world_, rank_;
  tail policy_;
};

/// The cut of `bucket_by`, see `bucketed_steps`: a `step_cut`. `Keys` tells the bucket and the length of a
/// sample: `key(sample)`, `length(key)`, and `table(orders, samples, stop)`, a pointer to what has
/// `buckets()`
/// and `bucket(key)`.
///
/// The first caller that needs an epoch makes one pass over it, and copies share the result: a byte for each
/// position, and 16 bytes for each step. If the length of a sample cannot be had, or no batch holds it, the
/// epoch has one step, which throws every time it is asked for.
template <class Orders, class Keys>
class bucket_cut {
 public:
  bucket_cut(Orders orders, Keys keys, const detail::bucket_limits& limits, bool global, tail policy,
             const cut_input& in)
      : orders_(std::move(orders)),
        keys_(std::move(keys)),
        limits_(limits),
        global_(global),
        seed_(limits.given.seed.value_or(in.seed)),
        samples_(in.samples),
        world_(in.world),
        rank_(in.rank),
        policy_(policy) {
    limits_.ranks = global ? 1 : in.world;
    limits_.check(orders_.size());
  }

  /// Throws `pass_stopped` if `stop` becomes true while it passes over the epoch.
  [[nodiscard]] bucketed_steps bind(std::uint64_t epoch, const std::atomic<bool>* stop = nullptr) const {
    return {tables_.get({epoch, limits_.ranks}, [&] { return filled(epoch, stop); }), global_, world_, rank_,
            policy_};
  }
  [[nodiscard]] bucket_cut on(std::uint64_t world, std::uint64_t rank) const {
    bucket_cut made = *this;
    made.world_ = world;
    made.rank_ = rank;
    made.limits_.ranks = global_ ? 1 : world;
    return made;
  }
  /// Estimated from the lengths of some samples; never more than there are.
  [[nodiscard]] std::uint64_t usual() const {
    constexpr std::uint64_t looks = 64;
    const std::uint64_t n = orders_.size(), each = std::max<std::uint64_t>(1, n / looks);
    double sum = 0, seen = 0;
    typename Orders::binding bound;
    const std::uint64_t max_tokens = limits_.max_tokens({0, 0});
    for (std::uint64_t i = 0; i < n && seen < looks; i += each) {
      orders_.rebind(bound, 0, i, i + 1);
      const std::uint64_t tokens = limits_.tokens(keys_.length(key_of(bound(i).index, {0, i})));
      const std::uint64_t room = limits_.room(tokens, max_tokens);
      sum += static_cast<double>(std::min(n, room)) / static_cast<double>(limits_.ranks);
      seen += 1;
    }
    const double mean = seen == 0 ? 1 : sum / seen / static_cast<double>(global_ ? world_ : 1);
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(mean), 1, std::uint64_t{65'536});
  }

 private:
  struct table_key {
    std::uint64_t epoch, ranks;
    friend bool operator==(const table_key&, const table_key&) = default;
  };

  [[nodiscard]] auto key_of(std::uint64_t sample, position at) const {
    try {
      return keys_.key(sample);
    } catch (error& e) {
      detail::rethrow_length(e, at, sample);
    }
  }
  [[nodiscard]] detail::bucket_steps filled(std::uint64_t epoch, const std::atomic<bool>* stop) const {
    try {
      const auto table = keys_.table(orders_, samples_, stop);
      return filled(epoch, *table, stop);
    } catch (const pass_stopped&) {
      throw;
    } catch (...) {  // the run reports it in the first step
      return detail::no_bucket_steps(std::current_exception());
    }
  }
  [[nodiscard]] detail::bucket_steps filled(std::uint64_t epoch, const auto& table,
                                            const std::atomic<bool>* stop) const {
    constexpr std::uint64_t piece = 1024;
    const std::uint64_t n = orders_.size();
    detail::bucket_filler steps(limits_, epoch, n, table.buckets());
    typename Orders::binding bound;
    std::uint64_t lengths[piece];
    for (std::uint64_t first = 0; first < n; first += piece) {
      const std::uint64_t end = std::min(n, first + piece);
      orders_.rebind(bound, epoch, first, end);
      for (std::uint64_t i = first; i < end; ++i) {
        if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw pass_stopped{};
        const auto key = key_of(bound(i).index, {epoch, i});
        lengths[i - first] = keys_.length(key);
        steps.buckets()[i] = table.bucket(key);
      }
      const std::uint64_t added = steps.add(first, lengths, detail::to_size(end - first));
      if (added == end - first) continue;
      const position at{epoch, first + added};
      return detail::no_bucket_steps({at, bound(at.index).index, limits_.tokens(lengths[added])},
                                     steps.max_tokens());
    }
    return steps.done(detail::bucket_key(seed_, epoch));
  }

  Orders orders_;
  Keys keys_;
  detail::bucket_limits limits_;
  bool global_;
  std::uint64_t seed_, samples_, world_, rank_;
  tail policy_;
  detail::epoch_tables<detail::bucket_steps, table_key> tables_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/bucket_cut.ipp>
#endif
