// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/run/block/whole.hpp>
#include <penstock/run/detail/opening.hpp>
#include <penstock/run/hand_out/hand_out.hpp>
#include <penstock/run/state.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

/// What `run.next()` gives: a value, the end, or a failure that was not thrown.
template <class T>
struct next_result {
  std::optional<T> value;
  std::exception_ptr failure;

  [[nodiscard]] explicit operator bool() const noexcept { return value.has_value(); }
  [[nodiscard]] T& operator*() noexcept { return *value; }
  [[nodiscard]] T* operator->() noexcept { return &*value; }
  /// Nothing more comes and nothing went wrong.
  [[nodiscard]] bool ended() const noexcept { return !value && failure == nullptr; }
};

namespace detail {

template <class Plan, bool Batched = plan_parts<Plan>::batched>
struct row_of_plan {
  using type = int;
};
template <class Plan>
struct row_of_plan<Plan, false> {
  using type = whole<typename Plan::element>;
};

}  // namespace detail

/// A run: what `plan.open()` gives. It owns threads and buffers, is move-only, and stops cleanly whenever it
/// is destroyed or told to.
///
///     auto run = loader.open();
///     for (auto epoch : run.epochs(90))
///       for (auto&& b : epoch) train(b);
///
/// An element is a `batch_handle`, or in a loop without batches a reference to a whole sample, valid until
/// the next one is asked for.
///
/// Workers live across epochs and read-ahead crosses the end of an epoch. `state()` is where the consumer
/// stands; `plan.open(state)` goes on there. An exception of the chain is thrown when the consumer asks for
/// the batch that holds its position, after all earlier batches, the lowest position first; the run is then
/// stopped and its state is the one before that batch. One thread at a time uses a run;
/// `request_stop` may be called from any. After `fork()` a run belongs to the parent: in the child, asking it
/// for an element is an error, and destroying it neither waits nor frees; the child opens the plan itself.
///
/// Ranges and iterators refer to the run: moving it ends them.
template <class Plan>
class run {
  using parts = plan_parts<Plan>;
  using core_type = hand_out<Plan>;
  using row_type = typename detail::row_of_plan<Plan>::type;

 public:
  /// What an iterator gives: a batch, or a whole sample.
  using value_type = std::conditional_t<parts::batched, typename core_type::batch_type, row_type>;

  /// Walks over one epoch, or over all that the run was given; one copyable pointer.
  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = run::value_type;
    using difference_type = std::ptrdiff_t;

    iterator() = default;
    explicit iterator(run* owner) : owner_(owner) {}
    [[nodiscard]] run::value_type& operator*() const { return owner_->current(); }
    /// Lets the element go; the next one is asked for when somebody looks: `run | std::views::take(3)` asks
    /// for three.
    iterator& operator++() {
      owner_->move_on();
      return *this;
    }
    void operator++(int) { owner_->move_on(); }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.done(); }

   private:
    [[nodiscard]] bool done() const { return owner_->is_at_end(); }
    run* owner_ = nullptr;
  };

  /// One epoch of a run: a range of what is left of it.
  class epoch_range {
   public:
    epoch_range(run* owner, std::uint64_t number) : owner_(owner), number_(number) {}
    [[nodiscard]] std::uint64_t number() const { return number_; }
    [[nodiscard]] iterator begin() const {
      owner_->begin_epoch(number_, number_ + 1);
      return iterator(owner_);
    }
    [[nodiscard]] std::default_sentinel_t end() const { return {}; }

   private:
    run* owner_;
    std::uint64_t number_;
  };

  /// The epochs from where the run stands up to a number.
  class epochs_range {
   public:
    class iterator {
     public:
      using value_type = epoch_range;
      using difference_type = std::ptrdiff_t;
      iterator() = default;
      iterator(run* owner, std::uint64_t number) : owner_(owner), number_(number) {}
      [[nodiscard]] epoch_range operator*() const { return {owner_, number_}; }
      iterator& operator++() {
        ++number_;
        return *this;
      }
      iterator operator++(int) {
        auto before = *this;
        ++number_;
        return before;
      }
      friend bool operator==(const iterator& a, const iterator& b) { return a.number_ >= b.number_; }

     private:
      run* owner_ = nullptr;
      std::uint64_t number_ = 0;
    };
    epochs_range(run* owner, std::uint64_t first, std::uint64_t last)
        : owner_(owner), first_(first), last_(last) {}
    [[nodiscard]] iterator begin() const { return {owner_, first_}; }
    [[nodiscard]] iterator end() const { return {owner_, last_}; }

   private:
    run* owner_;
    std::uint64_t first_, last_;
  };

  run(const Plan& p, run_options options, const penstock::state* where, std::stop_token token)
      : core_(new core_type(p, options, std::move(token))) {
    detail::check_lockstep(p);
    const world share = world_of(p);
    known_.dataset = p.source().fingerprint();
    known_.sequence = sequence_fingerprint(p);
    known_.world = share.size;
    known_.rank = share.rank;
    known_.elastic = elastic<Plan> ? 1 : 0;
    known_.plan = sequence_words(p);
    if (where != nullptr) restore(*where);
    core_->engine.open_more();
  }
  run(run&&) noexcept = default;
  run& operator=(run&& other) noexcept {
    if (this == &other) return *this;
    close();
    known_ = std::move(other.known_);
    core_ = std::move(other.core_);
    batch_ = std::move(other.batch_);
    row_ = std::exchange(other.row_, nullptr);
    epoch_ = other.epoch_;
    last_epoch_ = other.last_epoch_;
    allowed_ = other.allowed_;
    first_epoch_ = other.first_epoch_;
    at_end_ = other.at_end_;
    pending_ = other.pending_;
    return *this;
  }
  ~run() { close(); }

  /// The rest of one epoch. Going to another epoch than the one where the run stands drops what was read
  /// ahead.
  [[nodiscard]] epoch_range epoch(std::uint64_t number) & {
    allow(number + 1);
    return {this, number};
  }
  template <class T = void>
  [[nodiscard]] epoch_range epoch(std::uint64_t) && {
    static_assert(
        !std::is_void_v<T>,
        "penstock: epoch() of a run that is about to go; give the run a name: auto run = plan.open();");
    return {this, 0};
  }

  /// The epochs up to `count`, beginning where the run stands: all of them in a fresh run, the rest in a
  /// restored one.
  [[nodiscard]] epochs_range epochs(std::uint64_t count) & {
    allow(count);
    return {this, core_->epoch(), count};
  }
  template <class T = void>
  [[nodiscard]] epochs_range epochs(std::uint64_t) && {
    static_assert(
        !std::is_void_v<T>,
        "penstock: epochs() of a run that is about to go; give the run a name: auto run = plan.open();");
    return {this, 0, 0};
  }

  /// A run is an input range of what is left of the epochs it was given (one, unless `epochs(n)` said more).
  [[nodiscard]] iterator begin() {
    if (allowed_ != 0 && first_epoch_ >= allowed_) return at_end_ = true, iterator(this);
    begin_epoch(core_->epoch(), std::max(allowed_, core_->epoch() + 1));
    return iterator(this);
  }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

  /// The next element of the epochs the run was given, without exceptions.
  [[nodiscard]] next_result<value_type> next()
    requires(parts::batched)
  {
    next_result<value_type> result;
    try {
      core_->engine.home().check();
      const std::uint64_t last = allowed_ != 0 ? allowed_ : first_epoch_ + 1;
      while (core_->epoch() < last && !stopped()) {
        if (auto b = core_->next_batch(core_->epoch())) {
          result.value.emplace(std::move(b));
          break;
        }
        if (steps_are_zero()) break;
      }
    } catch (...) {
      result.failure = std::current_exception();
    }
    return result;
  }

  /// Batches per epoch, equal on all ranks; for plans that keep `lockstep`.
  [[nodiscard]] std::uint64_t steps_per_epoch() const
    requires(parts::batched && lockstep<Plan>)
  {
    if constexpr (parts::direct)
      return core_->engine.leading().steps_per_epoch();
    else
      return *core_->engine.leading().fixed_steps();
  }

  /// Where the consumer stands: after the elements that it has asked for. Does not disturb the workers.
  [[nodiscard]] penstock::state state() const {
    penstock::state s = known_;
    core_->write_state(s);
    return s;
  }

  [[nodiscard]] run_counters counters() const {
    run_counters all = core_->engine.counters();
    all.skipped = bad_samples().skipped;
    all.replaced = bad_samples().replaced;
    return all;
  }
  /// How many bad samples `bad_samples` has let through on this rank.
  [[nodiscard]] bad_sample_counts bad_samples() const { return core_->tally.counts(core_->epoch()); }
  [[nodiscard]] const run_options& options() const { return core_->engine.options(); }
  [[nodiscard]] const Plan& plan() const { return core_->engine.plan(); }

  /// Ends the work: what waits returns, loops end. Any thread.
  void request_stop() noexcept { core_->engine.request_stop(); }
  [[nodiscard]] bool stopped() const noexcept { return core_->engine.stopped(); }

 private:
  void close() noexcept {
    if (!core_) return;
    if (!core_->engine.home().here()) return abandon();
    batch_.reset();
    core_->engine.stop();
    core_->drop();
    core_.reset();
  }

  /// In a child after fork: neither joins nor frees.
  void abandon() noexcept {
    if constexpr (parts::batched) (void)batch_.forget();
    core_->keep_forever();
    core_.reset();
  }

  void allow(std::uint64_t epochs) {
    core_->engine.home().check();
    allowed_ = epochs;
    core_->engine.limit(std::max(epochs, core_->epoch() + 1));
  }

  [[nodiscard]] bool steps_are_zero() const {
    if constexpr (parts::direct) return core_->engine.leading().steps_per_epoch() == 0;
    return false;
  }

  void begin_epoch(std::uint64_t number, std::uint64_t last) {
    core_->engine.home().check();
    release();
    if (core_->epoch() != number) {
      penstock::state s;
      s.epoch = number;
      core_->seek(s);
    }
    core_->engine.limit(std::max(allowed_, last));
    epoch_ = number;
    last_epoch_ = last;
    at_end_ = false;
    fetch();
  }

  void release() {
    if constexpr (parts::batched)
      core_->take_back(batch_);
    else
      row_ = nullptr;
  }

  void move_on() {
    release();
    pending_ = true;
  }
  [[nodiscard]] bool is_at_end() {
    if (pending_) fetch();
    return at_end_;
  }
  void fetch() {
    release();
    pending_ = false;
    try {
      core_->engine.home().check();
      while (true) {
        if constexpr (parts::batched) {
          batch_ = core_->next_batch(epoch_);
          if (batch_) return;
        } else {
          row_ = core_->next_row(epoch_);
          if (row_ != nullptr) return;
        }
        if (stopped() || epoch_ + 1 >= last_epoch_) break;
        if (core_->epoch() == epoch_) break;
        ++epoch_;
      }
    } catch (...) {
      at_end_ = true;
      throw;
    }
    at_end_ = true;
  }

  [[nodiscard]] value_type& current() {
    if (pending_) fetch();
    if constexpr (parts::batched)
      return batch_;
    else
      return *row_;
  }

  void restore(const penstock::state& given) {
    const penstock::state& s = detail::state_that_fits(core_->engine.plan(), given, known_);
    if (const std::string_view wrong = core_->engine.leading().wrong_with(s); !wrong.empty())
      detail::refuse_state({wrong, "; it was edited"});
    core_->seek(s);
    core_->engine.limit(s.epoch + 1);
    first_epoch_ = s.epoch;
  }

  penstock::state known_;  // what all states of this run have in common
  std::shared_ptr<core_type> core_;
  std::conditional_t<parts::batched, value_type, std::optional<int>> batch_{};
  row_type* row_ = nullptr;
  std::uint64_t epoch_ = 0, last_epoch_ = 1, allowed_ = 0, first_epoch_ = 0;
  bool at_end_ = false, pending_ = false;
};

namespace detail {

struct open_arguments {
  const state* where = nullptr;
  std::stop_token token;

  void take(const state& s) { where = &s; }
  void take(std::stop_token t) { token = std::move(t); }
};

}  // namespace detail

/// Opens a plan: `plan.open()`, `plan.open(state)`, `plan.open(stop_token)`, or both. Files are opened and
/// threads started here; a plan whose ranks would do different numbers of batches is refused here.
template <class Source, class... Stages, class... Options>
[[nodiscard]] auto open_run(const plan<Source, Stages...>& p, Options&&... options) {
  detail::open_arguments given;
  (given.take(std::forward<Options>(options)), ...);
  return run<plan<Source, Stages...>>(p, options_of(p), given.where, given.token);
}

/// Walks over epoch 0 of a plan: what `for (auto&& b : plan)` uses. Owns its run.
template <class Plan>
class pass_iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = typename run<Plan>::value_type;
  using difference_type = std::ptrdiff_t;

  explicit pass_iterator(std::unique_ptr<run<Plan>> owned) : run_(std::move(owned)), at_(run_->begin()) {}
  [[nodiscard]] value_type& operator*() const { return *at_; }
  pass_iterator& operator++() {
    ++at_;
    return *this;
  }
  void operator++(int) { ++at_; }
  friend bool operator==(const pass_iterator& it, std::default_sentinel_t) {
    return it.at_ == std::default_sentinel;
  }

 private:
  std::unique_ptr<run<Plan>> run_;
  typename run<Plan>::iterator at_;
};

template <class Source, class... Stages>
[[nodiscard]] auto begin_pass(const plan<Source, Stages...>& p) {
  using plan_type = plan<Source, Stages...>;
  return pass_iterator<plan_type>(
      std::make_unique<run<plan_type>>(p, options_of(p), nullptr, std::stop_token{}));
}
template <class Source, class... Stages>
[[nodiscard]] std::default_sentinel_t end_pass(const plan<Source, Stages...>&) {
  return {};
}

}  // namespace penstock::inline v0_1
