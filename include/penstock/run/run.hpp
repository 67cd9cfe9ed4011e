// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/whole.hpp>
#include <penstock/run/delivery/delivery.hpp>
#include <penstock/run/detail/opening.hpp>
#include <penstock/run/detail/run_ranges.hpp>
#include <penstock/run/state.hpp>

#include <concepts>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

/// The result of `run.next()`: a value, the end, or a failure that was not thrown.
template <class T>
struct next_result {
  std::optional<T> value;
  std::exception_ptr failure;

  [[nodiscard]] explicit operator bool() const noexcept { return value.has_value(); }
  /// Without a value, throws the failure, or an `errc::argument` after the end.
  [[nodiscard]] T& operator*() {
    if (!value) [[unlikely]]
      detail::refuse_no_value(failure);
    return *value;
  }
  [[nodiscard]] T* operator->() { return &**this; }
  /// Whether the run has ended without a failure.
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

/// A run: what `plan.open()` returns. It owns threads and buffers, is move-only, and stops cleanly when you
/// destroy it or ask it to.
///
///     auto run = loader.open();
///     for (auto epoch : run.epochs(90))
///       for (auto&& b : epoch) train(b);
///
/// An element is a `batch_handle`; in a loop without batches, it is a reference to a whole sample, valid
/// until you request the next one.
///
/// Workers persist across epochs, and read-ahead continues past the end of an epoch. `state()` is where the
/// consumer stands; `plan.open(state)` resumes there. An exception from a stage is thrown when you request
/// the batch that holds its position, after all earlier batches, the lowest position first; the run is then
/// stopped, and its state is the one before that batch. Use a run from one thread at a time; you may call
/// `request_stop` and `adjust` from any thread. After `fork()` a run belongs to the parent: in the child,
/// requesting an element is an error, and destroying the run neither waits nor frees; open the plan again in
/// the child.
///
/// Ranges and iterators refer to the run: moving it invalidates them. What is asked of a run that was moved
/// from is an `errc::argument`. Only one loop over a run is in progress: if another one begins inside it, the
/// outer one throws `errc::argument` when it goes on.
template <class Plan>
class run {
  using parts = plan_parts<Plan>;
  using core_type = delivery<Plan>;
  using row_type = typename detail::row_of_plan<Plan>::type;
  friend class detail::run_iterator<run>;
  friend class detail::run_epoch<run>;
  friend class detail::run_epochs<run>;
  static_assert(!parts::packed || parts::batched,
                "penstock: pack makes rows, which only batch gives to a loop; write batch(n) behind it");
  static_assert(!parts::packed || parts::packs_online || !parts::replaces,
                "penstock: a substitute is not as long as the place in its row, so bad_samples::replace does "
                "not go with pack; write bad_samples::skip, whose places are padding");

 public:
  using plan_type = Plan;
  /// What an iterator refers to: a batch, or a whole sample.
  using value_type = std::conditional_t<parts::batched, typename core_type::batch_type, row_type>;

  using iterator = detail::run_iterator<run>;
  using epoch_range = detail::run_epoch<run>;
  using epochs_range = detail::run_epochs<run>;

  run(const Plan& p, const run_options& options, const std::stop_token& token)
      : run(unopened{}, p, options, token) {
    open(p, options);
  }
  /// Resumes at a state.
  run(const Plan& p, const run_options& options, const std::stop_token& token, const penstock::state& where)
      : run(unopened{}, p, options, token) {
    restore(where);
    open(p, options);
  }
  run(run&&) noexcept = default;
  run(const run&) = delete;  // penstock: a run is moved, never copied; write auto& second = run
  run& operator=(run&& other) noexcept {
    if (this == &other) return *this;
    close();
    common_state_ = std::move(other.common_state_);
    is_known_ = std::exchange(other.is_known_, false);
    core_ = std::move(other.core_);
    batch_ = std::move(other.batch_);
    row_ = std::exchange(other.row_, nullptr);
    epoch_ = other.epoch_;
    last_epoch_ = other.last_epoch_;
    allowed_ = other.allowed_, planned_ = other.planned_, first_epoch_ = other.first_epoch_;
    at_end_ = other.at_end_;
    pending_ = other.pending_, begun_ = other.begun_, resumes_ = other.resumes_;
    loop_ = other.loop_, epochs_loop_ = other.epochs_loop_;
    return *this;
  }
  ~run() { close(); }

  /// One epoch: each loop over it starts at its beginning, even if you left an earlier loop midway. If a
  /// state put the run into the middle of this epoch, the first loop resumes there. If the run stands
  /// elsewhere when a loop starts, it drops what was read ahead.
  [[nodiscard]] epoch_range epoch(any_count which) & {
    const std::uint64_t number = which.of("epoch");
    allow(number + 1);
    return {this, number};
  }
  /// The rest of the current epoch, for a loop that you left; empty once the epoch has ended. Before any
  /// loop, the epoch where the run stands.
  [[nodiscard]] epoch_range rest() & {
    const std::uint64_t number = begun_ ? epoch_ : core().epoch();
    allow(std::max(allowed_, number + 1));
    return {this, number, true};
  }
  template <class T = void>
  [[nodiscard]] epoch_range rest() && {
    mistakes::temporary_run::explain(std::type_identity<T>{});
    return {this, 0};
  }
  template <class T = void>
  [[nodiscard]] epoch_range epoch(any_count) && {
    mistakes::temporary_run::explain(std::type_identity<T>{});
    return {this, 0};
  }

  /// The epochs from where the run stands when a loop over them begins, up to `count`: all of them in a fresh
  /// run. If a state put the run into the middle of an epoch, or an earlier loop was left there, the first
  /// loop over this epoch resumes after the batches that were taken.
  [[nodiscard]] epochs_range epochs(any_count wanted) & {
    const std::uint64_t count = wanted.of("epochs");
    planned_ = count;
    allow(count);
    return {this, count};
  }
  template <class T = void>
  [[nodiscard]] epochs_range epochs(any_count) && {
    static_assert(!std::is_void_v<T>,
                  "penstock: epochs() of a temporary run; give the run a name: auto run = plan.open();");
    return {this, 0};
  }

  /// A run is an input range: of what is left of the epochs you asked for with `epochs(n)` or `epoch(e)`, or
  /// else of the epoch where it stands.
  [[nodiscard]] iterator begin() {
    if (allowed_ != 0 && core().epoch() >= allowed_) return ++loop_, at_end_ = true, iterator(this);
    begin_epoch(core().epoch(), std::max(allowed_, core().epoch() + 1));
    return iterator(this);
  }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

  /// The next element of the run's epochs, without exceptions.
  [[nodiscard]] next_result<value_type> next()
    requires(parts::batched)
  {
    next_result<value_type> result;
    try {
      core().engine.home().check();
      const std::uint64_t last = allowed_ != 0 ? allowed_ : first_epoch_ + 1;
      while (core().epoch() < last && !stopped()) {
        if (auto b = core().next_batch(core().epoch())) {
          resumes_ = false;
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

  /// Batches per epoch, equal on all ranks; for plans that keep `lockstep`. After `batch_by`, those of the
  /// epoch of the latest batch, or of the current epoch if there was none.
  [[nodiscard]] std::uint64_t steps_per_epoch() const
    requires(parts::batched && lockstep<Plan>)
  {
    if constexpr (parts::direct)
      return core().engine.delivered_feed().latest_steps();
    else
      return *core().engine.leading().fixed_steps();
  }

  /// Where the consumer stands: after the elements it has requested. Does not disturb the workers.
  [[nodiscard]] penstock::state state() const {
    penstock::state s = known();
    core().write_state(s);
    return s;
  }

  [[nodiscard]] run_counters counters() const { return core().counters(); }
  /// The counters for other threads, at any time, also after the run has ended.
  [[nodiscard]] run_monitor monitor() const { return core().monitor(); }
  /// How many bad samples `bad_samples` has tolerated on this rank.
  [[nodiscard]] bad_sample_counts bad_samples() const { return core().tally.counts(core().epoch()); }
  [[nodiscard]] const run_options& options() const { return core().engine.options(); }
  [[nodiscard]] const Plan& plan() const { return core().engine.plan(); }

  /// Changes limits while the run works, up to the values it was opened with: active threads, batches in
  /// flight, samples requested ahead, requests in flight; see `run_limits`. A worker beyond the limit rests
  /// after its grain. A lower depth takes effect as batches are delivered; the host memory of blocks that it
  /// leaves idle is released when you request the next batch. The sequence does not change. If a limit is out
  /// of range, throws errc::argument and changes nothing. Any thread, in the process that opened the run.
  void adjust(const run_limits& wanted) { core().engine.adjust(wanted); }
  /// The current limits; a fresh run has the highest, or with `autotune` the defaults.
  [[nodiscard]] run_limits limits() const { return core().engine.limits(); }

  /// Ends the work: waiting calls return, loops end. Any thread.
  void request_stop() noexcept {
    if (core_) core().engine.request_stop();
  }
  /// A run that was moved from counts as stopped.
  [[nodiscard]] bool stopped() const noexcept { return !core_ || core().engine.stopped(); }

 private:
  struct unopened {};

  run(unopened, const Plan& p, const run_options& options, const std::stop_token& token)
      : core_(delivery_shell::kept(new core_type(p, options, token), [](delivery_shell* made) noexcept {
          delete static_cast<core_type*>(made);
        })) {
    detail::check_lockstep(p);
  }
  void open(const Plan& p, const run_options& options) {
    const feed& leading = core().engine.leading();
    try {
      detail::check_batches(p, leading.mine(), leading.check_epoch(), options.allow_empty);
    } catch (error& e) {
      core().add_sample(e);
      throw;
    }
    core().engine.open_more();
  }

  [[nodiscard]] core_type& core() const {
    if (!core_) [[unlikely]]
      detail::refuse_moved_run();
    return static_cast<core_type&>(*core_);
  }

  /// What all states of this run have in common; found out when the first is asked for.
  [[nodiscard]] const penstock::state& known() const {
    if (!is_known_) {
      const Plan& p = plan();
      const world share = world_of(p);
      common_state_.dataset = p.source().fingerprint();
      common_state_.sequence = sequence_fingerprint(p);
      common_state_.random = random_fingerprint(p);
      common_state_.world = share.size;
      common_state_.rank = share.rank;
      common_state_.elastic = elastic<Plan> ? 1 : 0;
      common_state_.plan = sequence_words(p);
      is_known_ = true;
    }
    return common_state_;
  }

  void close() noexcept {
    if (!core_) return;
    if (!core().engine.home().here()) return abandon();
    core().end_monitors();
    batch_.reset();
    core().engine.stop();
    core().drop();
    core_ = nullptr;
  }

  /// In a child after fork: neither joins nor frees.
  void abandon() noexcept {
    if constexpr (parts::batched) (void)batch_.forget();
    core().keep_forever();
    core_ = nullptr;
  }

  void allow(std::uint64_t epochs) {
    core().engine.home().check();
    allowed_ = epochs;
    limit(std::max(epochs, core().epoch() + 1));
  }

  void limit(std::uint64_t epochs) { core().engine.limit(epochs, planned_ >= epochs); }

  [[nodiscard]] bool steps_are_zero() const {
    if constexpr (parts::facts.uneven) return core().engine.leading().mine().size == 0;
    if constexpr (parts::direct) return core().engine.leading().steps_per_epoch() == 0;
    return false;
  }

  /// Starts one loop over an epoch.
  void loop_over(std::uint64_t number) {
    core().engine.home().check();
    release();
    const bool resumes = resumes_ && core().epoch() == number;
    if (!resumes && !core().is_at_beginning_of(number)) core().go_to_epoch(number);
    begin_epoch(number, number + 1);
  }
  void loop_over_rest(std::uint64_t number) {
    core().engine.home().check();
    ++loop_;
    if (core().epoch() == number) return begin_epoch(number, number + 1);
    release();
    at_end_ = true;
  }
  [[nodiscard]] std::uint64_t loops_over_epochs() const noexcept { return epochs_loop_; }
  /// Where a loop over epochs begins: its first epoch resumes.
  std::uint64_t resume_here() {
    core().engine.home().check();
    release();
    core().leave_finished_epoch();
    resumes_ = true;
    ++epochs_loop_;
    return core().epoch();
  }
  void begin_epoch(std::uint64_t number, std::uint64_t last) {
    core().engine.home().check();
    ++loop_;
    release();
    if (core().epoch() != number) core().go_to_epoch(number);
    limit(std::max(allowed_, last));
    epoch_ = number;
    last_epoch_ = last;
    begun_ = true;
    resumes_ = false;
    at_end_ = false;
    fetch();
  }

  void release() {
    if constexpr (parts::batched)
      core().take_back(batch_);
    else
      row_ = nullptr;
  }

  void move_on(std::uint64_t loop) {
    if (loop != loop_) [[unlikely]]
      detail::refuse_outer_loop("run");
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
      core().engine.home().check();
      while (true) {
        if constexpr (parts::batched) {
          batch_ = core().next_batch(epoch_);
          if (batch_) return;
        } else {
          row_ = core().next_row(epoch_);
          if (row_ != nullptr) return;
        }
        if (stopped() || epoch_ + 1 >= last_epoch_) break;
        if (core().epoch() == epoch_) break;
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
    const penstock::state& mine = known();
    const penstock::state& s = detail::state_that_fits(plan(), given, mine);
    if (const std::string_view wrong = core().engine.leading().wrong_with(s); !wrong.empty())
      detail::refuse_state({wrong, "; it was edited"});
    if (!s.packed.empty() && (!parts::packs_online || s.packed.size() != 2))
      detail::refuse_state({"it tells of windows of pack that this plan does not have; it was edited"});
    if constexpr (parts::facts.uneven) {
      if (!core().engine.leading().step_of(s))
        detail::refuse_state(
            {"it stands after ", s.ordinal, " samples, and no step of ", mine.world,
             s.world == mine.world
                 ? " ranks starts there: the batches are cut differently now, or it was edited"
                 : " ranks starts there; resume on another number of ranks"});
    }
    core().seek(s);
    first_epoch_ = core().epoch();
    core().engine.limit(first_epoch_ + 1);
    resumes_ = true;
  }

  mutable penstock::state common_state_;  // common to all states of this run
  mutable bool is_known_ = false;
  shared<delivery_shell> core_;
  std::conditional_t<parts::batched, value_type, std::optional<int>> batch_{};
  row_type* row_ = nullptr;
  std::uint64_t epoch_ = 0, last_epoch_ = 1, allowed_ = 0, first_epoch_ = 0;
  std::uint64_t planned_ = 0;                 // by epochs(n)
  std::uint64_t loop_ = 0, epochs_loop_ = 0;  // how many have begun: over batches, over epochs
  bool at_end_ = false, pending_ = false;
  bool begun_ = false;    // whether a loop has begun, in epoch_
  bool resumes_ = false;  // the next loop over the epoch where the run stands goes on from there
};

/// Opens a plan: `plan.open()`, `plan.open(state)`, `plan.open(stop_token)`, or both. Opens files and starts
/// threads; refuses a plan whose ranks would run different numbers of batches.
template <class Source, class... Stages, class... Options>
[[nodiscard]] auto open_run(const plan<Source, Stages...>& p, Options&&... options) {
  using run_type = run<plan<Source, Stages...>>;
  constexpr bool resumes = (std::derived_from<std::remove_cvref_t<Options>, state> || ...);
  detail::open_arguments given;
  (given.take(std::forward<Options>(options)), ...);
  if constexpr (resumes)
    return run_type(p, options_of(p), given.token, *given.where);
  else
    return run_type(p, options_of(p), given.token);
}

/// Iterates over one epoch of a plan, in its own run.
template <class Plan>
class pass_iterator : public run<Plan>::iterator {
  using basis = typename run<Plan>::iterator;

 public:
  pass_iterator(std::unique_ptr<run<Plan>> owned, std::uint64_t epoch)
      : basis(owned->epoch(epoch).begin()), run_(std::move(owned)) {}
  pass_iterator& operator++() {
    basis::operator++();
    return *this;
  }
  void operator++(int) { basis::operator++(); }

 private:
  std::unique_ptr<run<Plan>> run_;
};

/// One pass over an epoch of a plan: what `plan.epoch(e)` returns. Each loop over it opens the plan.
template <class Plan>
class plan_epoch {
 public:
  plan_epoch(Plan p, std::uint64_t number) : plan_(std::move(p)), number_(number) {}
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] pass_iterator<Plan> begin() const {
    return {std::make_unique<run<Plan>>(plan_, options_of(plan_), std::stop_token{}), number_};
  }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  Plan plan_;
  std::uint64_t number_;
};

template <class Source, class... Stages>
[[nodiscard]] plan_epoch<plan<Source, Stages...>> epoch_of(const plan<Source, Stages...>& p,
                                                           std::uint64_t number) {
  return {p, number};
}

}  // namespace penstock::inline v0_1
