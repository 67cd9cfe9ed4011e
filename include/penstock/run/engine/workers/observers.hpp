// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/observe/concepts.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/storage/storage_counters.hpp>

#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// The session of one observer, of any type. It is called through function pointers, a few times per block.
class any_observer {
 public:
  template <class Session>
    requires(!std::is_same_v<Session, any_observer> && observer_session<Session>)
  explicit any_observer(Session session)
      : self_(new Session(std::move(session))), calls_(&calls_to<Session>) {}

  void note(unsigned thread, const run_event& e) const noexcept { calls_->note(self_.get(), thread, e); }
  void hold(const void* key, const run_event& e) const noexcept { calls_->hold(self_.get(), key, e); }
  void let_go(const void* key) const noexcept { calls_->let_go(self_.get(), key); }

 private:
  struct calls {
    void (*note)(void*, unsigned, const run_event&) noexcept;
    void (*hold)(void*, const void*, const run_event&) noexcept;
    void (*let_go)(void*, const void*) noexcept;
  };
  template <class S>
  static constexpr calls calls_to{
      [](void* s, unsigned thread, const run_event& e) noexcept { static_cast<S*>(s)->note(thread, e); },
      [](void* s, const void* key, const run_event& e) noexcept { static_cast<S*>(s)->hold(key, e); },
      [](void* s, const void* key) noexcept { static_cast<S*>(s)->let_go(key); }};

  shared<void> self_;
  const calls* calls_;
};

namespace detail {
void add_observer(std::vector<any_observer>& all, any_observer one);
}  // namespace detail

/// The names of a plan's source and value stages, in the order in which workers run them; then the names of
/// the `map_batch` stages, if workers call them.
template <class Plan>
[[nodiscard]] std::vector<std::string> names_of_stages(const Plan& p) {
  std::vector<std::string> names;
  detail::add_text(names, Plan::source_type::source_name);
  const auto name = [&]<class Stage>(const Stage& stage) {
    if constexpr (value_stage<Stage> || (plan_parts<Plan>::direct && part_of_kind<Stage, batch_map_tag>))
      detail::add_text(names, text_of_stage(stage));
  };
  p.stages().apply([&](const auto&... stages) { (name(stages), ...); });
  return names;
}

/// The sessions of a plan's observers, connected; empty if the plan has no observer.
template <class Plan>
[[nodiscard]] std::vector<any_observer> observers_of(const Plan& p, unsigned workers, bool asks_ahead) {
  std::vector<any_observer> all;
  observed_run what;
  const auto one = [&]<class Stage>(const Stage& stage) {
    if constexpr (observer<Stage>) {
      if (all.empty()) {
        what.source = text_of_stage(p.source());
        what.stages = names_of_stages(p);
        what.workers = workers;
        what.asks_ahead = asks_ahead && workers != 0;
        what.rank = world_of(p).rank;
        what.world = world_of(p).size;
      }
      detail::add_observer(all, any_observer(stage.connect(what)));
    }
  };
  p.stages().apply([&](const auto&... stages) { (one(stages), ...); });
  return all;
}

/// What a run reports to the observers of its plan, block by block. Without observers every function here
/// returns immediately.
///
/// Threads as in `observed_run`: `consumer` and `worker(i)` name the thread of the event.
class run_watch {
 public:
  /// `in_place`: batches are written in place. `times_grains`: samples are expensive enough to time.
  /// `stages`: the number of source and value stages, or 0 if their costs cannot be told apart.
  run_watch(std::vector<any_observer> all, unsigned workers, bool in_place, bool times_grains,
            std::size_t stages);

  [[nodiscard]] bool any() const noexcept { return !all_.empty(); }
  /// Whether the first sample of every grain is timed.
  [[nodiscard]] bool times_all_grains() const noexcept { return any() && times_grains_; }
  /// The current time if there are observers, otherwise 0.
  [[nodiscard]] std::uint64_t now() const noexcept { return any() ? detail::now_ns() : 0; }

  void consumer(const run_event& e) const noexcept { note(0, e); }
  void consumer(run_event e, const block& b) const noexcept;
  void worker(std::size_t i, const run_event& e) const noexcept { note(thread_of(i), e); }
  /// A grain, whose slots start at `first`: adds the range of its positions, and the time each stage spent on
  /// its first sample (`costs` are running totals).
  void grain(std::size_t i, std::span<const stage_cost> costs, const block& b, std::uint64_t first,
             std::uint64_t slots, std::uint64_t samples, run_event e) noexcept;
  void hold(const block& b) const noexcept;
  void let_go(const void* b) const noexcept;
  /// A request for bytes, from now until `let_go(key)`. Any thread.
  void requested(const void* key, std::uint64_t object, std::uint64_t offset, std::uint64_t bytes,
                 std::uint64_t begin) const noexcept;
  /// What the storage and its caches have counted so far; called by the requesting thread, or the consumer.
  void counted(const storage_counters& all, bool by_consumer) const noexcept;
  /// Bytes of `samples` were requested ahead of their turn; called by the requesting thread.
  void asked_ahead(std::uint64_t begin, std::uint64_t end, std::uint64_t samples) const noexcept;

 private:
  void note(unsigned thread, const run_event& e) const noexcept {
    for (const any_observer& one : all_) one.note(thread, e);
  }
  [[nodiscard]] unsigned thread_of(std::size_t worker) const noexcept {
    return workers_ == 0 ? 0 : 1 + static_cast<unsigned>(worker);
  }
  void describe(run_event& e, const block& b) const noexcept;
  void locate(run_event& e, const block& b, std::uint64_t first, std::uint64_t slots) const noexcept;

  std::vector<any_observer> all_;
  unsigned workers_;
  bool in_place_, times_grains_;
  std::size_t stages_;
  std::size_t stride_;                       // words of one worker, in cache lines of its own
  std::vector<std::uint64_t> costs_before_;  // of each worker and each of its stages
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/workers/observers.ipp>
#endif
