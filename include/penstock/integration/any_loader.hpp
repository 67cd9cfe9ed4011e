// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/observe/counters.hpp>
#include <penstock/run/run.hpp>
#include <penstock/run/state.hpp>

#include <optional>
#include <utility>

namespace penstock::inline v0_1 {

/// A loader of any plan that yields `Batch`, a type of yours. Use it as a class member, or return it from a
/// function in another .cpp file, so that the templates of a plan are compiled only once.
///
/// Construct it from a plan and a function that turns the plan's batch into a `Batch`, usually a struct of
/// views; the loader holds the original batch until you ask for the next one. Move-only. Cost: one indirect
/// call per batch, nothing per sample.
///
/// It has the interface of a run: `epoch(e)` and `epochs(n)` for loops, `state()` and `restore(state)`,
/// `counters()`, `steps_per_epoch()` for a progress bar, `adjust(limits)` and `request_stop()`. Ranges and
/// iterators refer to the loader: moving it invalidates them.
///
/// A loader constructed without a plan, or moved from, is empty and converts to false. You can assign to it,
/// destroy it, and tell it to stop; any other call throws `errc::argument`.
/// Threads: one at a time; any thread may call `adjust`, `limits`, `request_stop` and `stopped`, but not
/// during `restore`.
///
///     any_loader<my_batch> make_loader(std::uint64_t samples) {      // in loader.cpp
///       using sample = record<field<"value", float>, field<"label", std::uint64_t>>;
///       const auto make = [](std::uint64_t i) { return sample(static_cast<float>(i) / 2, i); };
///       return {generated(samples, make) | shuffle(seed(7)) | batch(32), [](auto& b) {
///                 return my_batch{get<"value">(b), get<"label">(b)};
///               }};
///     }
template <class Batch>
class any_loader {
  friend class detail::run_iterator<any_loader>;
  friend class detail::run_epoch<any_loader>;
  friend class detail::run_epochs<any_loader>;

  /// One table of functions per plan: a vtable without inheritance.
  struct table {
    bool (*next)(void*, Batch*&);
    state (*where)(const void*);
    void (*go)(void*, const state&);
    void (*to_epoch)(void*, std::uint64_t, bool rest);
    void (*plan_epoch)(void*, std::uint64_t number);
    void (*plan_epochs)(void*, std::uint64_t count);
    std::uint64_t (*rest_of)(void*);
    std::uint64_t (*resume_here)(void*);
    std::uint64_t (*steps)(const void*);
    run_counters (*counters)(const void*);
    run_monitor (*monitor)(const void*);
    bad_sample_counts (*bad_samples)(const void*);
    void (*adjust)(void*, const run_limits&);
    run_limits (*limits)(const void*);
    void (*stop)(void*) noexcept;
    bool (*stopped)(const void*) noexcept;
    void (*destroy)(void*);
  };

 public:
  using value_type = Batch;
  using iterator = detail::run_iterator<any_loader>;
  using epoch_range = detail::run_epoch<any_loader>;
  using epochs_range = detail::run_epochs<any_loader>;

  /// An empty loader: it converts to false.
  any_loader() = default;
  /// Opens `p`. The loader delivers each batch as `convert(batch)`, valid until the next batch is requested.
  template <class Plan, class Convert>
    requires part_of_kind<Plan, plan_tag>
  any_loader(const Plan& p, Convert convert) : any_loader(made_of(p, std::move(convert))) {}
  /// A mistake: a loader of a source, or of a plan alone.
  template <class Plan, class... Convert>
    requires(part_of_kind<Plan, source_tag> || (part_of_kind<Plan, plan_tag> && sizeof...(Convert) == 0))
  any_loader(const Plan&, const Convert&...) {
    static_assert(never<Plan>,
                  "penstock: any_loader<my_batch> is made of a plan with batches and a function that makes a "
                  "my_batch of one; write any_loader<my_batch>(source | batch(n), [](auto& b) { return "
                  "my_batch{get<\"a\">(b)}; })");
  }
  any_loader(any_loader&& other) noexcept
      : functions_(std::exchange(other.functions_, nullptr)),
        self_(std::exchange(other.self_, nullptr)),
        current_(std::exchange(other.current_, nullptr)),
        loop_(other.loop_) {}
  any_loader& operator=(any_loader&& other) noexcept {
    std::swap(functions_, other.functions_);
    std::swap(self_, other.self_);
    std::swap(current_, other.current_);
    std::swap(loop_, other.loop_);
    return *this;
  }
  ~any_loader() {
    if (self_ != nullptr) functions_->destroy(self_);
  }

  /// Whether the loader has a plan.
  [[nodiscard]] explicit operator bool() const noexcept { return self_ != nullptr; }
  /// One epoch, like `run.epoch(number)`.
  [[nodiscard]] epoch_range epoch(any_count which) & {
    const std::uint64_t number = which.of("epoch");
    functions().plan_epoch(self_, number);
    return {this, number};
  }
  /// The rest of the current epoch, like `run.rest()`.
  [[nodiscard]] epoch_range rest() & { return {this, functions().rest_of(self_), true}; }
  /// The epochs up to `count`, from where the loader stands when a loop over them begins, like
  /// `run.epochs(count)`: all of them in a fresh loader, the remaining ones in a restored one. Batches are
  /// read ahead across the end of an epoch.
  [[nodiscard]] epochs_range epochs(any_count wanted) & {
    const std::uint64_t count = wanted.of("epochs");
    functions().plan_epochs(self_, count);
    return {this, count};
  }
  /// Batches per epoch; 0 if unknown, because the plan does not keep `lockstep`. Pass it to `progress`.
  [[nodiscard]] std::uint64_t steps_per_epoch() const { return functions().steps(self_); }
  /// The consumer's position: after the batches that it has requested.
  [[nodiscard]] penstock::state state() const { return functions().where(self_); }
  /// Resumes from a state by opening the plan again; throws what `plan.open(state)` throws. Call it between
  /// loops: a loop that is still running would deliver batches from there.
  void restore(const penstock::state& s) {
    const table& f = functions();
    current_ = nullptr;
    f.go(self_, s);
  }
  /// The run's counters since it was opened or last restored.
  [[nodiscard]] run_counters counters() const { return functions().counters(self_); }
  /// Like `run::monitor`; it shows the run up to the next `restore`, which opens another one.
  [[nodiscard]] run_monitor monitor() const { return functions().monitor(self_); }
  [[nodiscard]] bad_sample_counts bad_samples() const { return functions().bad_samples(self_); }
  /// Like `run::adjust` and `run::limits`. Limits survive `restore`; no other thread may call these during
  /// it.
  void adjust(const run_limits& wanted) { functions().adjust(self_, wanted); }
  [[nodiscard]] run_limits limits() const { return functions().limits(self_); }
  /// Stops the work: blocked calls return and loops end. Any thread may call it. Does nothing to an empty
  /// loader.
  void request_stop() noexcept {
    if (self_ != nullptr) functions_->stop(self_);
  }
  /// Whether the loader was stopped; an empty one counts as stopped.
  [[nodiscard]] bool stopped() const noexcept { return self_ == nullptr || functions_->stopped(self_); }

 private:
  template <class Plan, class Convert>
  static any_loader made_of(const Plan& p, Convert convert) {
    if constexpr (plan_parts<Plan>::batched) {
      return holder<Plan, Convert>::make(p, std::move(convert));
    } else {
      static_assert(
          never<Plan>,
          "penstock: any_loader hands out batches, and this plan has none; write batch(n) at its end");
      return {};
    }
  }

  template <class Plan, class Convert>
  struct holder {
    using run_type = run<Plan>;
    Plan plan;
    Convert convert;
    run_type running;
    typename run_type::iterator at{};
    bool begun = false;
    std::uint64_t number = 0;
    bool resting = false;
    std::optional<Batch> current;

    holder(const Plan& p, Convert c) : plan(p), convert(std::move(c)), running(plan.open()) {}

    static any_loader make(const Plan& p, Convert c) {
      any_loader made;
      made.self_ = new holder(p, std::move(c));
      made.functions_ = &functions;
      return made;
    }
    static holder& of(void* self) { return *static_cast<holder*>(self); }
    static const holder& of(const void* self) { return *static_cast<const holder*>(self); }

    static bool next(void* self, Batch*& out) {
      holder& h = of(self);
      h.current.reset();
      if (h.begun) {
        ++h.at;
      } else {
        h.at = typename run_type::epoch_range(&h.running, h.number, h.resting).begin();
        h.begun = true;
      }
      if (h.at == std::default_sentinel) return false;
      h.current.emplace(h.convert(*h.at));
      out = &*h.current;
      return true;
    }
    static penstock::state where(const void* self) { return of(self).running.state(); }
    static void go(void* self, const penstock::state& s) {
      holder& h = of(self);
      const run_limits limits = h.running.limits();
      h.current.reset();
      h.running = h.plan.open(s);
      h.running.adjust(limits);
      h.begun = false;
      h.number = s.epoch;
      h.resting = false;
    }
    static void to_epoch(void* self, std::uint64_t number, bool rest) {
      holder& h = of(self);
      h.current.reset();
      h.number = number;
      h.resting = rest;
      h.begun = false;
    }
    static void plan_epoch(void* self, std::uint64_t number) { (void)of(self).running.epoch(number); }
    static void plan_epochs(void* self, std::uint64_t count) { (void)of(self).running.epochs(count); }
    static std::uint64_t rest_of(void* self) { return of(self).running.rest().number(); }
    static std::uint64_t resume_here(void* self) {
      return (*typename run_type::epochs_range(&of(self).running, 0).begin()).number();
    }
    static std::uint64_t steps(const void* self) {
      if constexpr (requires(const run_type& r) { r.steps_per_epoch(); })
        return of(self).running.steps_per_epoch();
      else
        return 0;
    }
    static bad_sample_counts bad_samples(const void* self) { return of(self).running.bad_samples(); }
    static run_counters counters(const void* self) { return of(self).running.counters(); }
    static run_monitor monitor(const void* self) { return of(self).running.monitor(); }
    static void adjust(void* self, const run_limits& wanted) { of(self).running.adjust(wanted); }
    static run_limits limits(const void* self) { return of(self).running.limits(); }
    static void stop(void* self) noexcept { of(self).running.request_stop(); }
    static bool stopped(const void* self) noexcept { return of(self).running.stopped(); }
    static void destroy(void* self) { delete static_cast<holder*>(self); }

    static constexpr table functions{next,    where,       go,    to_epoch, plan_epoch, plan_epochs,
                                     rest_of, resume_here, steps, counters, monitor,    bad_samples,
                                     adjust,  limits,      stop,  stopped,  destroy};
  };

  /// The functions of the plan; throws if the loader is empty.
  [[nodiscard]] const table& functions() const {
    if (self_ == nullptr) [[unlikely]]
      throw error(errc::argument, "any_loader: it is empty; assign one that was made from a plan");
    return *functions_;
  }
  void loop_over(std::uint64_t number, bool rest = false) {
    functions().to_epoch(self_, number, rest);
    ++loop_;
    fetch();
  }
  void loop_over_rest(std::uint64_t number) { loop_over(number, true); }
  std::uint64_t resume_here() { return functions().resume_here(self_); }
  [[nodiscard]] static std::uint64_t loops_over_epochs() noexcept { return 0; }  // they may be nested
  void move_on(std::uint64_t loop) {
    if (loop != loop_) [[unlikely]]
      detail::refuse_outer_loop("any_loader");
    fetch();
  }
  [[nodiscard]] bool is_at_end() const noexcept { return current_ == nullptr; }
  void fetch() {
    current_ = nullptr;
    Batch* next = nullptr;
    if (functions().next(self_, next)) current_ = next;
  }
  [[nodiscard]] Batch& current() { return *current_; }

  const table* functions_ = nullptr;
  void* self_ = nullptr;
  Batch* current_ = nullptr;
  std::uint64_t loop_ = 0;  // how many have begun
};

}  // namespace penstock::inline v0_1
