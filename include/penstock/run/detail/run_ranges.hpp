// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/mistake.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/run/delivery/delivery.hpp>

#include <iterator>
#include <memory>

/// The ranges that a loop over a run iterates over. They all refer to the run.
namespace penstock::inline v0_1::mistakes {

struct temporary_run : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: rest() or epoch() of a temporary run; give the run a name: auto run = plan.open();");
  }
};
struct epoch_is_no_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: run.epochs(n) gives epochs, and this is one of them, not a batch; write "
                  "for (auto epoch : run.epochs(n)) for (auto&& b : epoch)");
  }
};

}  // namespace penstock::inline v0_1::mistakes

namespace penstock::inline v0_1::detail {

/// Iterates over one epoch, or over everything the run was asked for; copyable, a single pointer.
template <class Run>
class run_iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = typename Run::value_type;
  using difference_type = std::ptrdiff_t;

  run_iterator() = default;
  explicit run_iterator(Run* owner) : owner_(owner), loop_(owner->loop_) {}
  [[nodiscard]] value_type& operator*() const { return owner_->current(); }
  [[nodiscard]] value_type* operator->() const { return std::addressof(**this); }
  /// Drops the element; the next one is requested only when you dereference or compare, so
  /// `run | std::views::take(3)` requests three.
  run_iterator& operator++() {
    owner_->move_on(loop_);
    return *this;
  }
  void operator++(int) { owner_->move_on(loop_); }
  friend bool operator==(const run_iterator& it, std::default_sentinel_t) { return it.done(); }

 private:
  [[nodiscard]] bool done() const { return owner_->is_at_end(); }
  Run* owner_ = nullptr;
  std::uint64_t loop_ = 0;  // which loop of the run this is
};

/// One epoch of a run, or the rest of it.
template <class Run>
class run_epoch {
 public:
  run_epoch(Run* owner, std::uint64_t number, bool rest = false)
      : owner_(owner), number_(number), rest_(rest) {}
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// Batches of this epoch, equal on all ranks; for plans that keep `lockstep`. After `batch_by`, scans the
  /// epoch unless that was done before.
  [[nodiscard]] std::uint64_t steps() const
    requires(Run::parts::batched && lockstep<typename Run::plan_type>)
  {
    if constexpr (Run::parts::facts.uneven)
      return owner_->core().engine.leading().steps_of(number_);
    else
      return owner_->steps_per_epoch();
  }
  [[nodiscard]] run_iterator<Run> begin() const {
    if (rest_)
      owner_->loop_over_rest(number_);
    else
      owner_->loop_over(number_);
    return run_iterator<Run>(owner_);
  }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

  /// A mistake: a batch has a size, values and fields, an epoch has not.
  template <class Self = run_epoch>
  [[nodiscard]] ill_formed::batch size() const {
    mistakes::epoch_is_no_batch::explain(std::type_identity<Self>{});
    return {};
  }
  /// A mistake, as `size`.
  template <class Self = run_epoch>
  [[nodiscard]] ill_formed::view values() const {
    mistakes::epoch_is_no_batch::explain(std::type_identity<Self>{});
    return {};
  }
  /// A mistake, as `size`.
  template <class Index>
  [[nodiscard]] ill_formed::view operator[](const Index&) const {
    mistakes::epoch_is_no_batch::explain(std::type_identity<Index>{});
    return {};
  }

 private:
  Run* owner_;
  std::uint64_t number_;
  bool rest_;
};

/// The epochs from where the run stands when a loop over them begins, up to a number.
template <class Run>
class run_epochs {
 public:
  class iterator {
   public:
    using value_type = run_epoch<Run>;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    iterator(Run* owner, std::uint64_t number, std::uint64_t loop = 0)
        : owner_(owner), number_(number), loop_(loop) {}
    [[nodiscard]] run_epoch<Run> operator*() const { return {owner_, number_}; }
    iterator& operator++() {
      if (loop_ != owner_->loops_over_epochs()) refuse_outer_loop("run");
      ++number_;
      return *this;
    }
    iterator operator++(int) {
      auto before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator& a, const iterator& b) { return a.number_ >= b.number_; }

   private:
    Run* owner_ = nullptr;
    std::uint64_t number_ = 0, loop_ = 0;
  };
  run_epochs(Run* owner, std::uint64_t last) : owner_(owner), last_(last) {}
  [[nodiscard]] iterator begin() const {
    const std::uint64_t first = owner_->resume_here();
    return {owner_, first, owner_->loops_over_epochs()};
  }
  [[nodiscard]] iterator end() const { return {owner_, last_}; }

 private:
  Run* owner_;
  std::uint64_t last_;
};

}  // namespace penstock::inline v0_1::detail

namespace penstock::inline v0_1 {

/// A mistake: an epoch has no fields.
template <fixed_string Name, class Run>
[[nodiscard]] ill_formed::view get(const detail::run_epoch<Run>&) {
  mistakes::epoch_is_no_batch::explain(std::type_identity<Run>{});
  return {};
}

}  // namespace penstock::inline v0_1
