// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/position_list.hpp>
#include <penstock/order/step_cut.hpp>

#include <exception>

namespace penstock::inline v0_1 {

namespace detail {

/// A sample too costly for any batch.
struct costly_sample {
  position at;
  std::uint64_t sample = 0, cost = 0;
};

/// The start of each batch of an epoch, 8 bytes each, and finally the end of the last. Covers the batches of
/// all ranks.
struct batch_starts {
  std::vector<std::uint64_t> starts;
  std::optional<costly_sample> too_costly;  // the batches end before it
  std::exception_ptr failure;               // thrown by the cost of the sample that the batches end before

  [[nodiscard]] bool fails() const noexcept { return too_costly || failure; }
};

/// Assigns positions to batches, one after another. In a `padded` batch every sample costs as much as the
/// most costly one.
class batch_filler {
 public:
  explicit batch_filler(std::uint64_t limit, bool padded = false) : limit_(limit), padded_(padded) {
    made_.starts.push_back(0);
  }

  /// Adds the next position to this batch or starts a new one; returns false if neither has room.
  [[nodiscard]] bool add(std::uint64_t cost) {
    if (!has_room(cost) || size_ == maximum) {
      if (cost > limit_) return false;
      close();
    }
    sum_ = padded_ ? std::max(sum_, cost) : sum_ + cost;
    ++size_;
    return true;
  }
  [[nodiscard]] batch_starts done(std::optional<costly_sample> too_costly = std::nullopt,
                                  std::exception_ptr failure = nullptr) {
    if (size_ != 0) close();
    made_.too_costly = too_costly;
    made_.failure = std::move(failure);
    made_.starts.shrink_to_fit();
    return std::move(made_);
  }

 private:
  static constexpr std::uint64_t maximum = 0xffffffffu;

  [[nodiscard]] bool has_room(std::uint64_t cost) const noexcept {
    if (!padded_) return cost <= limit_ - sum_;
    return std::max(sum_, cost) <= limit_ / (size_ + 1);
  }
  void close() {
    made_.starts.push_back(made_.starts.back() + size_);
    sum_ = size_ = 0;
  }

  std::uint64_t limit_;
  bool padded_;
  std::uint64_t sum_ = 0, size_ = 0;  // padded: the highest cost
  batch_starts made_;
};

}  // namespace detail

/// An `epoch_cut` of an epoch into batches of any lengths, dealt to the ranks in turn.
///
/// Batch k is a run of consecutive positions, identical on any number of ranks; rank r of W takes batch s W +
/// r in step s. If the last step has fewer batches than ranks, `tail::keep` gives empty batches to the
/// remaining ranks and `tail::drop` leaves the step out.
class dealt_batches {
 public:
  dealt_batches(std::shared_ptr<const detail::batch_starts> batches, std::uint64_t limit, std::uint64_t world,
                std::uint64_t rank, tail policy)
      : batches_(std::move(batches)), limit_(limit), world_(world), rank_(rank), policy_(policy) {}

  /// The epoch's batches on all ranks, including any that are dropped.
  [[nodiscard]] std::uint64_t batches() const noexcept { return batches_->starts.size() - 1; }

  [[nodiscard]] std::uint64_t steps() const noexcept {
    const bool part = batches_->fails() || (policy_ != tail::drop && batches() % world_ != 0);
    return batches() / world_ + (part ? 1 : 0);
  }
  [[nodiscard]] std::uint64_t before(std::uint64_t step) const noexcept {
    const std::uint64_t before_it = std::min(step, steps());
    return start(before_it > batches() / world_ ? batches() : before_it * world_);
  }
  [[nodiscard]] std::uint64_t count(std::uint64_t step) const noexcept {
    return step >= steps() ? 0 : before(step + 1) - before(step);
  }
  /// The slots of a step. In the step of a sample that costs more than the limit, throws
  /// `error(errc::argument)` on all ranks; in the step of a sample whose cost function threw, rethrows that
  /// exception.
  [[nodiscard]] step_view at(std::uint64_t step) const {
    if (batches_->fails() && step == batches() / world_) refuse();
    const std::uint64_t mine = std::min(step * world_ + rank_, batches());
    return {start(mine), start(std::min(mine + 1, batches())) - start(mine)};
  }
  void check() const {
    if (batches_->fails()) refuse();
  }

 private:
  [[nodiscard]] std::uint64_t start(std::uint64_t batch) const noexcept {
    return batches_->starts[detail::to_size(batch)];
  }
  [[noreturn, gnu::cold]] void refuse() const {
    if (batches_->failure) std::rethrow_exception(batches_->failure);
    const detail::costly_sample& found = *batches_->too_costly;
    throw error(errc::argument, {"sample ", found.sample, " costs ", found.cost, ", but a batch holds ",
                                 limit_, " at most; raise the limit, or leave the sample out with subset"})
        .in_stage("batch_by")
        .add_context(found.at);
  }

  std::shared_ptr<const detail::batch_starts> batches_;
  std::uint64_t limit_, world_, rank_;
  tail policy_;
};

namespace detail {

/// Throws if such a cut is impossible.
inline void check_cost_cut(std::uint64_t positions, std::uint64_t limit) {
  const auto refuse = [](std::initializer_list<piece> why) {
    throw error(errc::argument, why).in_stage("batch_by");
  };
  if (limit == 0) refuse({"batch_by with a limit of 0 holds no sample; give it at least 1"});
  if (limit >> 63 != 0)
    refuse(
        {"the limit of batch_by is negative or absurd: ", limit, " as an unsigned number; it is below 2^63"});
  if (positions >> 40 != 0)
    refuse({"batch_by goes through an epoch before its first batch, and this one has ", positions,
            " positions; write repeat(n) or take(n) before it"});
}

/// Call in a catch handler: adds the sample whose cost failed to the error and rethrows it.
[[noreturn, gnu::cold]] inline void rethrow_cost(error& e, position at, std::uint64_t sample) {
  e.in_part(text({"the cost of sample ", sample})).in_stage("batch_by").add_context(at);
  throw;
}

}  // namespace detail

/// The cut of `batch_by(cost, limit)`: batches of consecutive positions whose costs add up to at most
/// `limit`; if they are padded, whose highest cost times their number is at most `limit`. A `step_cut`.
///
/// `cost(sample)` takes the number of a sample in the source. The first caller that needs an epoch makes one
/// pass over it, and copies share the result: 8 bytes per batch. An exception from `cost` is recorded too,
/// and is thrown in the step of that sample every time that step is requested.
template <class Orders, class Cost>
class cost_cut {
 public:
  cost_cut(Orders orders, Cost cost, std::uint64_t limit, tail policy, const cut_input& in,
           bool padded = false)
      : orders_(std::move(orders)),
        cost_(std::move(cost)),
        limit_(limit),
        world_(in.world),
        rank_(in.rank),
        policy_(policy),
        padded_(padded) {
    detail::check_cost_cut(orders_.size(), limit);
  }

  /// Throws `pass_stopped` if `stop` becomes true while it passes over the epoch.
  [[nodiscard]] dealt_batches bind(std::uint64_t epoch, const std::atomic<bool>* stop = nullptr) const {
    return {tables_.get(epoch, [&] { return filled(epoch, stop); }), limit_, world_, rank_, policy_};
  }
  [[nodiscard]] cost_cut on(std::uint64_t world, std::uint64_t rank) const {
    cost_cut made = *this;
    made.world_ = world;
    made.rank_ = rank;
    return made;
  }
  /// Estimated from the costs of some samples; never more than there are.
  [[nodiscard]] std::uint64_t usual() const {
    constexpr std::uint64_t looks = 64;
    const std::uint64_t n = orders_.size(), each = std::max<std::uint64_t>(1, n / looks);
    double sum = 0, highest = 0, seen = 0;
    typename Orders::binding bound;
    for (std::uint64_t i = 0; i < n && seen < looks; i += each, seen += 1) {
      orders_.rebind(bound, 0, i, i + 1);
      const auto cost = static_cast<double>(cost_of(bound(i).index, {0, i}));
      sum += cost;
      highest = std::max(highest, cost);
    }
    if (padded_) sum = highest * seen;
    if (sum <= 0) return std::min<std::uint64_t>(n, 4096);
    const double slots = static_cast<double>(limit_) / sum * seen;
    const std::uint64_t maximum = std::min<std::uint64_t>(n, 65'536);
    return slots >= static_cast<double>(maximum)
               ? maximum
               : std::max(std::uint64_t{1}, static_cast<std::uint64_t>(slots));
  }

 private:
  [[nodiscard]] std::uint64_t cost_of(std::uint64_t sample, position at) const {
    try {
      return cost_(sample);
    } catch (error& e) {
      detail::rethrow_cost(e, at, sample);
    }
  }
  [[nodiscard]] detail::batch_starts filled(std::uint64_t epoch, const std::atomic<bool>* stop) const {
    constexpr std::uint64_t piece = 4096;
    detail::batch_filler batches(limit_, padded_);
    typename Orders::binding bound;
    const std::uint64_t n = orders_.size();
    for (std::uint64_t first = 0; first < n; first += piece) {
      const std::uint64_t end = std::min(n, first + piece);
      orders_.rebind(bound, epoch, first, end);
      for (std::uint64_t i = first; i < end; ++i) {
        const std::uint64_t sample = bound(i).index;
        std::uint64_t cost = 0;
        if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw pass_stopped{};
        try {
          cost = cost_of(sample, {epoch, i});
        } catch (...) {  // the run reports it in its step
          return batches.done(std::nullopt, std::current_exception());
        }
        if (!batches.add(cost)) return batches.done(detail::costly_sample{{epoch, i}, sample, cost});
      }
    }
    return batches.done();
  }

  Orders orders_;
  Cost cost_;
  std::uint64_t limit_, world_, rank_;
  tail policy_;
  bool padded_;
  detail::epoch_tables<detail::batch_starts> tables_;
};

namespace detail {

/// The costs of samples: from a function, or from values for all of them.
template <class F>
struct costs {
  F given;

  [[nodiscard]] std::uint64_t operator()(std::uint64_t sample) const {
    if constexpr (sample_values<F>)
      return given[sample];
    else
      return given(sample);
  }
  void check([[maybe_unused]] const cut_input& in) const {
    if constexpr (sample_values<F>) {
      order_input places{in.samples};
      places.places.reset(new source_places(in.dataset, in.samples));
      check_places(places, given.size(), given.dataset(), given.describe(), "batch_by");
    }
  }
  [[nodiscard]] std::string describe() const {
    if constexpr (sample_values<F>) return given.describe();
    return {};
  }
  /// Where they are found, for errors.
  [[nodiscard]] std::string where() const {
    if constexpr (requires { given.path(); })
      return given.path();
    else if constexpr (sample_values<F>)
      return given.describe();
    else
      return "the function that was given";
  }
  void fingerprint(auto& h) const {
    if constexpr (requires { given.fingerprint(); }) h.add(given.fingerprint());
  }
};

}  // namespace detail

/// The rule of `batch_by(cost, limit)`; makes a `cost_cut`.
template <class Cost>
struct cost_rule {
  detail::costs<Cost> cost;
  std::uint64_t limit = 1;
  tail at_end = tail::keep;
  bool padded = false;  ///< every sample of a batch costs as much as the most costly one

  template <class Orders>
  [[nodiscard]] cost_cut<Orders, detail::costs<Cost>> make(const Orders& orders, const cut_input& in) const {
    cost.check(in);
    return {orders, cost, limit, at_end, in, padded};
  }
  [[nodiscard]] std::string describe() const {
    const std::string costs = cost.describe();
    return detail::text({"batch_by(", costs, costs.empty() ? "" : ", ", "limit ", limit,
                         padded ? " with padding" : "", ", tail ", to_string(at_end), ")"});
  }
  void fingerprint(auto& h) const {
    h.add(padded ? "padded cost" : "cost", at_end, limit);
    cost.fingerprint(h);
  }
};

}  // namespace penstock::inline v0_1
