// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/observe/concepts.hpp>
#include <penstock/run/engine/sizes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// The observers of a run, each told the same. Without one it is empty, and whoever would tell it something
/// asks `any` first.
template <observer_session... Sessions>
class observer_set {
 public:
  static constexpr bool any = sizeof...(Sessions) != 0;

  observer_set() = default;
  explicit observer_set(std::tuple<Sessions...> all)
    requires(any)
      : all_(std::move(all)) {}

  void note(unsigned thread, const run_event& e) noexcept {
    std::apply([&](auto&... each) { (each.note(thread, e), ...); }, all_);
  }
  void hold(const void* key, const run_event& e) noexcept {
    std::apply([&](auto&... each) { (each.hold(key, e), ...); }, all_);
  }
  void let_go(const void* key) noexcept {
    std::apply([&](auto&... each) { (each.let_go(key), ...); }, all_);
  }

 private:
  [[no_unique_address]] std::tuple<Sessions...> all_;
};

namespace detail {

/// The sessions of those stages that are observers.
template <class... Stages>
auto observe_with(const observed_run& what, const Stages&... stages) {
  const auto one = [&what]<class Stage>(const Stage& stage) {
    if constexpr (observer<Stage>)
      return std::tuple<typename Stage::session>(stage.connect(what));
    else
      return std::tuple<>();
  };
  return [&]<class... Sessions>(std::tuple<Sessions...> all) {
    if constexpr (sizeof...(Sessions) == 0)
      return observer_set<>();
    else
      return observer_set<Sessions...>(std::move(all));
  }(std::tuple_cat(one(stages)...));
}

struct no_stages {};

template <class Stages>
struct observers_in;
template <class... Stages>
struct observers_in<pack<Stages...>> {
  using type = decltype(observe_with(std::declval<const observed_run&>(), std::declval<const Stages&>()...));
};

}  // namespace detail

/// The type of what watches the runs of a plan.
template <class Plan>
using observers_of = typename detail::observers_in<typename Plan::stages_type>::type;

/// What a run tells the observers of its plan. Without one every function here is empty.
///
/// Threads as in `observed_run`: `consumer` and `worker(i)` say whose the event is.
template <class Plan>
class run_watch {
  using parts = plan_parts<Plan>;

 public:
  static constexpr bool any = observers_of<Plan>::any;
  /// Whether the first sample of every grain is timed: not where samples are numbers.
  static constexpr bool all_grains = any && !plain_plan<Plan>;

  run_watch(const Plan& p, unsigned workers, bool asks_ahead)
      : all_(connect(p, workers, asks_ahead)), workers_(workers) {
    if constexpr (all_grains) stages_.resize(std::max(1u, workers));
  }

  /// The clock, where anybody looks.
  [[nodiscard]] static std::uint64_t now() noexcept {
    if constexpr (any) return detail::now_ns();
    return 0;
  }

  void consumer(const run_event& e) noexcept { note(0, e); }
  template <class Payload>
  void consumer(run_event e, const Payload& p) noexcept {
    if constexpr (any) {
      describe(e, p);
      note(0, e);
    }
  }
  void worker(std::size_t i, const run_event& e) noexcept { note(thread_of(i), e); }
  /// A grain, whose slots begin at `first`: with the range of its positions, and what each stage took of its
  /// first sample.
  template <class Scratch, class Payload>
  void grain(std::size_t i, Scratch& scratch, const Payload& p, std::uint64_t first, std::uint64_t slots,
             std::uint64_t samples, run_event e) noexcept {
    if constexpr (any) {
      e.samples = samples;
      if (samples != 0) locate(e, p, first, slots);
      note(thread_of(i), e);
      if constexpr (all_grains) {
        std::uint64_t at = e.begin_ns;
        detail::for_each_cost(scratch, [&](std::size_t number, const stage_cost& cost) {
          std::uint64_t& before = stages_[i].nanoseconds[number];
          const std::uint64_t took = cost.nanoseconds - std::exchange(before, cost.nanoseconds);
          if (took == 0 || parts::forward) return;
          note(thread_of(i), {at, std::min(at + took, e.end_ns), activity::stage,
                              static_cast<std::uint32_t>(number), e.block});
          at = std::min(at + took, e.end_ns);
        });
      }
    }
  }

  template <class Payload>
  void hold(const Payload& p) noexcept {
    if constexpr (any) {
      run_event e{now(), 0, parts::direct || p.from_batches ? activity::hold_batch : activity::hold_chunk};
      describe(e, p);
      all_.hold(&p, e);
    }
  }
  void let_go(const void* payload) noexcept {
    if constexpr (any) all_.let_go(payload);
  }
  template <class ReadAhead>
  void follow(ReadAhead& ahead) noexcept {
    if constexpr (any) ahead.observe(asked, this);
  }

 private:
  struct alignas(64) stage_times {
    std::array<std::uint64_t, 1 + parts::in::count> nanoseconds{};
  };

  static observers_of<Plan> connect(const Plan& p, unsigned workers, bool asks_ahead) {
    if constexpr (any) {
      observed_run what;
      what.source = text_of_stage(p.source());
      what.stages.emplace_back(Plan::source_type::source_name);
      const auto name = [&]<class Stage>(const Stage& stage) {
        if constexpr (value_stage<Stage>) what.stages.push_back(text_of_stage(stage));
      };
      p.stages().apply([&](const auto&... stages) { (name(stages), ...); });
      what.workers = workers;
      what.asks_ahead = asks_ahead && workers != 0;
      what.rank = world_of(p).rank;
      what.world = world_of(p).size;
      return p.stages().apply([&](const auto&... stages) { return detail::observe_with(what, stages...); });
    } else {
      return {};
    }
  }

  void note(unsigned thread, const run_event& e) noexcept {
    if constexpr (any) all_.note(thread, e);
  }
  [[nodiscard]] unsigned thread_of(std::size_t worker) const noexcept {
    return workers_ == 0 ? 0 : 1 + static_cast<unsigned>(worker);
  }
  static void asked(void* self, std::uint64_t begin, std::uint64_t end, std::uint64_t samples) {
    auto& me = *static_cast<run_watch*>(self);
    run_event e{begin, end, activity::ask_ahead};
    e.samples = samples;
    me.note(me.workers_ == 0 ? 0 : 1 + me.workers_, e);
  }

  /// Which batch a payload is.
  template <class Payload>
  static void describe(run_event& e, const Payload& p) noexcept {
    if constexpr (parts::direct) {
      e.batch = p.parts.front().delivered.index;
      e.epoch = p.parts.front().delivered.epoch;
      for (const auto& part : p.parts) e.samples += part.valid;
    } else if (p.from_batches) {
      e.samples = p.gathered.size();
      if (p.gathered.empty()) return;
      e.epoch = p.gathered.front().epoch;
      e.first = p.gathered.front().index;
      e.last = p.gathered.back().index;
    } else {
      e.samples = p.rows;
    }
  }
  /// Which positions the slots [first, first + slots) hold: the first of them and the last.
  template <class Payload>
  static void locate(run_event& e, const Payload& p, std::uint64_t first, std::uint64_t slots) noexcept {
    e.epoch = p.epoch;
    for (const auto& part : p.parts) {
      const std::uint64_t begin = parts::direct ? std::max(first, part.first) : part.first;
      const std::uint64_t all = part.first + part.valid;
      const std::uint64_t end = parts::direct ? std::min(first + slots, all) : all;
      if (begin >= end) continue;
      if (e.first == run_event::none) {
        e.first = p.index(begin);
        if constexpr (parts::direct) e.batch = part.delivered.index;
      }
      e.last = p.index(end - 1);
    }
  }

  [[no_unique_address]] observers_of<Plan> all_;
  [[no_unique_address]] std::conditional_t<all_grains, std::vector<stage_times>, detail::no_stages> stages_;
  unsigned workers_;
};

}  // namespace penstock::inline v0_1
