// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/run.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

namespace penstock::inline v0_1 {

/// Any loader that yields `Batch`, a type of yours: a class member, or what a function in another .cpp
/// returns, so that the templates of a plan are compiled once.
///
/// Made of a plan and a function that turns its batch into a `Batch`, usually a struct of views; the batch
/// itself is held until the next one is asked for. Move-only. Cost: one indirect call per batch, nothing per
/// sample.
///
///     any_loader<my_batch> make_loader(std::uint64_t samples) {      // in loader.cpp
///       using sample = record<field<"value", float>, field<"label", std::uint64_t>>;
///       const auto make = [](std::uint64_t i) { return sample(static_cast<float>(i) / 2, i); };
///       return {generated(samples, make) | shuffle(7) | batch(32), [](auto& b) {
///                 return my_batch{get<"value">(b), get<"label">(b)};
///               }};
///     }
template <class Batch>
class any_loader {
  /// One table of functions per plan: what a vtable would be, without inheritance.
  struct table {
    bool (*next)(void*, Batch*&);
    state (*where)(const void*);
    void (*go)(void*, const state&);
    void (*to_epoch)(void*, std::uint64_t);
    run_counters (*counters)(const void*);
    void (*stop)(void*);
    void (*destroy)(void*);
  };

 public:
  using value_type = Batch;

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    explicit iterator(any_loader* owner) : owner_(owner) {}
    [[nodiscard]] Batch& operator*() const { return owner_->current(); }
    iterator& operator++() {
      owner_->fetch();
      return *this;
    }
    void operator++(int) { owner_->fetch(); }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.done(); }

   private:
    [[nodiscard]] bool done() const { return owner_->current_ == nullptr; }
    any_loader* owner_ = nullptr;
  };

  class epoch_range {
   public:
    epoch_range(any_loader* owner, std::uint64_t number) : owner_(owner), number_(number) {}
    [[nodiscard]] iterator begin() const {
      owner_->functions_->to_epoch(owner_->self_, number_);
      owner_->fetch();
      return iterator(owner_);
    }
    [[nodiscard]] std::default_sentinel_t end() const { return {}; }

   private:
    any_loader* owner_;
    std::uint64_t number_;
  };

  any_loader() = default;
  /// Opens `p`; each batch is handed on as `convert(batch)`, which is valid until the next one is asked for.
  template <class Plan, class Convert>
    requires part_of_kind<Plan, plan_tag>
  any_loader(const Plan& p, Convert convert)
      : any_loader(holder<Plan, Convert>::make(p, std::move(convert))) {}
  any_loader(any_loader&& other) noexcept
      : functions_(std::exchange(other.functions_, nullptr)),
        self_(std::exchange(other.self_, nullptr)),
        current_(std::exchange(other.current_, nullptr)) {}
  any_loader& operator=(any_loader&& other) noexcept {
    std::swap(functions_, other.functions_);
    std::swap(self_, other.self_);
    std::swap(current_, other.current_);
    return *this;
  }
  ~any_loader() {
    if (self_ != nullptr) functions_->destroy(self_);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return self_ != nullptr; }
  [[nodiscard]] epoch_range epoch(std::uint64_t number) & { return {this, number}; }
  [[nodiscard]] penstock::state state() const { return functions_->where(self_); }
  /// Goes on where a state says, by opening the plan again; errors like `plan.open(state)`.
  void restore(const penstock::state& s) { functions_->go(self_, s); }
  [[nodiscard]] run_counters counters() const { return functions_->counters(self_); }
  void request_stop() { functions_->stop(self_); }

 private:
  template <class Plan, class Convert>
  struct holder {
    using run_type = run<Plan>;
    Plan plan;
    Convert convert;
    run_type running;
    typename run_type::iterator at{};
    bool begun = false;
    std::uint64_t number = 0;
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
        h.at = h.running.epoch(h.number).begin();
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
      h.current.reset();
      h.running = h.plan.open(s);
      h.begun = false;
      h.number = s.epoch;
    }
    static void to_epoch(void* self, std::uint64_t number) {
      of(self).current.reset();
      of(self).number = number;
      of(self).begun = false;
    }
    static run_counters counters(const void* self) { return of(self).running.counters(); }
    static void stop(void* self) { of(self).running.request_stop(); }
    static void destroy(void* self) { delete static_cast<holder*>(self); }

    static constexpr table functions{next, where, go, to_epoch, counters, stop, destroy};
  };

  void fetch() {
    current_ = nullptr;
    Batch* next = nullptr;
    if (functions_->next(self_, next)) current_ = next;
  }
  [[nodiscard]] Batch& current() { return *current_; }

  const table* functions_ = nullptr;
  void* self_ = nullptr;
  Batch* current_ = nullptr;
};

}  // namespace penstock::inline v0_1
