// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/packed_rows.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/order/detail/epoch_tables.hpp>

#include <atomic>
#include <concepts>
#include <type_traits>

/// The cut as a concept: the rule by which epochs become global steps, and steps become the batches of ranks.
namespace penstock::inline v0_1 {

/// One epoch cut into global steps, as one rank sees it. Thread-safe; reads no data.
///
///   steps()          global steps of the epoch, the same on all ranks
///   before(step)     positions in the steps before this one, over all ranks; `steps()` is valid too
///   count(step)      positions in a step, over all ranks
///   at(step)         this rank's slots in the step: a `step_view`. Throws if the step cannot be made
///   check()          optional: throws what `at` would throw for some step
///   list(step, v)    optional, see `listing_cut`
///   pack(step, rows)  optional, see `packing_cut`
///   elastic()        optional, of a cut with `list`: `before(s)` alone determines the positions in the steps
///                    before s, whatever the number of ranks
///
/// Without `list`, steps are consecutive: step s has the positions [before(s), before(s) + count(s)). There,
/// and if it is `elastic()`, a state after `before(s)` positions resumes at step s on any number of ranks.
template <class C>
concept epoch_cut = std::copy_constructible<C> && requires(const C& c, std::uint64_t step) {
  { c.steps() } -> std::same_as<std::uint64_t>;
  { c.before(step) } -> std::same_as<std::uint64_t>;
  { c.count(step) } -> std::same_as<std::uint64_t>;
  { c.at(step) } -> std::same_as<step_view>;
};

/// A cut whose steps may hold any positions of the epoch: `list(step, v)` appends those in this rank's slots
/// [0, valid) to a `std::vector<std::uint64_t>`; the view from `at` tells only how many there are.
template <class C>
concept listing_cut = epoch_cut<C> && requires(const C& c, std::uint64_t step,
                                               std::vector<std::uint64_t>& into) { c.list(step, into); };

/// This rank's rows of a step in which several samples share a row.
struct packed_step {
  std::vector<packed_document> documents;  ///< one per slot, in the order of `list`, by row and place
  std::uint64_t rows = 0;                  ///< including those of padding, which come last
  std::uint64_t capacity = 0;              ///< places of a row
  std::uint32_t slices = 1, slice = 0;     ///< which part of each row is here, see `context_parallel`
  std::int64_t pad = 0;                    ///< the value in padding
  const std::string* lengths = nullptr;    ///< names the lengths of samples; lives as long as the cut

  [[nodiscard]] packed_rows view() const noexcept {
    return {documents.data(),          documents.size(), detail::to_size(rows),
            detail::to_size(capacity), slices,           slice};
  }
};

/// A cut that puts samples into rows: `pack(step, rows)` tells where each slot's sample is. A sample that was
/// split has a slot for each piece.
template <class C>
concept packing_cut =
    listing_cut<C> && requires(const C& c, std::uint64_t step, packed_step& rows) { c.pack(step, rows); };

/// Thrown by a pass over an epoch that was stopped because its result is no longer needed.
struct pass_stopped {};

/// The cut of all epochs for one rank: bound to an epoch like an order.
///
///   bind(epoch)      an `epoch_cut`. May make a pass over the epoch: the result is kept while it is in use.
///                    Callable from any thread
///   bind(epoch, stop)  optional: `stop` is a `const std::atomic<bool>*`, or null. A long pass checks it now
///                      and then, and throws `pass_stopped` once it is true
///   on(world, rank)  this cut for another rank
///   usual()          the approximate number of slots in a batch; affects how fast a run is, never its result
template <class C>
concept step_cut = std::copy_constructible<C> && requires(const C& c, std::uint64_t number) {
  { c.bind(number) } -> epoch_cut;
  { c.on(number, number) } -> std::same_as<C>;
  { c.usual() } -> std::same_as<std::uint64_t>;
};

/// What a rule knows about the plan that it cuts.
struct cut_input {
  std::uint64_t world = 1;    ///< ranks
  std::uint64_t rank = 0;     ///< this rank
  std::uint64_t dataset = 0;  ///< fingerprint of the data
  std::uint64_t samples = 0;  ///< of the source
  std::uint64_t seed = 0;     ///< of the plan
};

/// A rule by which `batch_by` cuts: makes a `step_cut` from the orders of the samples, an `order_chain`.
///   make(orders, cut_input)  the cut; throws if it cannot be made
///   describe()               for people and for states
///   fingerprint(h)           calls `h.add(...)` with everything that determines where it cuts
template <class R, class Orders>
concept cut_rule = std::copy_constructible<R> && requires(const R& r, const Orders& orders, cut_input in) {
  { r.make(orders, in) } -> step_cut;
};

/// An `epoch_cut` of any type. Each call is indirect, but there is one per step, not per sample.
class any_epoch_cut {
 public:
  any_epoch_cut() = default;
  template <class C>
    requires(!std::same_as<C, any_epoch_cut> && epoch_cut<C>)
  explicit any_epoch_cut(C made) : any_epoch_cut(std::shared_ptr<const C>(new const C(std::move(made)))) {}
  /// Wraps a cut that is shared with others.
  template <epoch_cut C>
  explicit any_epoch_cut(std::shared_ptr<const C> made) : called_(&functions_of<C>) {
    owner_ = shared<const void>(std::shared_ptr<const void>(std::move(made)));
  }

  [[nodiscard]] std::uint64_t steps() const { return called_->steps(owner_.get()); }
  [[nodiscard]] std::uint64_t before(std::uint64_t step) const { return called_->before(owner_.get(), step); }
  [[nodiscard]] std::uint64_t count(std::uint64_t step) const { return called_->count(owner_.get(), step); }
  [[nodiscard]] step_view at(std::uint64_t step) const { return called_->at(owner_.get(), step); }
  void check() const { called_->check(owner_.get()); }
  /// Whether steps may hold any positions, so that `list` must be called.
  [[nodiscard]] bool lists() const noexcept { return called_->list != nullptr; }
  void list(std::uint64_t step, std::vector<std::uint64_t>& into) const {
    called_->list(owner_.get(), step, into);
  }
  /// Whether samples share rows, so that `pack` must be called.
  [[nodiscard]] bool packs() const noexcept { return called_->pack != nullptr; }
  void pack(std::uint64_t step, packed_step& into) const { called_->pack(owner_.get(), step, into); }
  /// Whether a state resumes on any number of ranks, at the step with as many positions before it.
  [[nodiscard]] bool elastic() const { return called_->elastic(owner_.get()); }

 private:
  struct functions {
    std::uint64_t (*steps)(const void*);
    std::uint64_t (*before)(const void*, std::uint64_t);
    std::uint64_t (*count)(const void*, std::uint64_t);
    step_view (*at)(const void*, std::uint64_t);
    void (*check)(const void*);
    void (*list)(const void*, std::uint64_t, std::vector<std::uint64_t>&);
    void (*pack)(const void*, std::uint64_t, packed_step&);
    bool (*elastic)(const void*);
  };
  template <class C>
  static const C& of(const void* made) noexcept {
    return *static_cast<const C*>(made);
  }
  template <class C>
  static constexpr auto list_of() -> decltype(functions::list) {
    if constexpr (listing_cut<C>)
      return [](const void* c, std::uint64_t step, std::vector<std::uint64_t>& into) {
        of<C>(c).list(step, into);
      };
    else
      return nullptr;
  }
  template <class C>
  static constexpr auto pack_of() -> decltype(functions::pack) {
    if constexpr (packing_cut<C>)
      return [](const void* c, std::uint64_t step, packed_step& into) { of<C>(c).pack(step, into); };
    else
      return nullptr;
  }
  template <class C>
  static constexpr functions functions_of{
      .steps = [](const void* c) { return of<C>(c).steps(); },
      .before = [](const void* c, std::uint64_t step) { return of<C>(c).before(step); },
      .count = [](const void* c, std::uint64_t step) { return of<C>(c).count(step); },
      .at = [](const void* c, std::uint64_t step) { return of<C>(c).at(step); },
      .check =
          [](const void* c) {
            if constexpr (requires { of<C>(c).check(); }) of<C>(c).check();
          },
      .list = list_of<C>(),
      .pack = pack_of<C>(),
      .elastic =
          [](const void* c) {
            if constexpr (requires { of<C>(c).elastic(); }) return of<C>(c).elastic();
            return !listing_cut<C>;
          }};

  const functions* called_ = nullptr;
  shared<const void> owner_;
};

/// A `step_cut` of any type. Copies share what it was bound to. A run's feed holds one if batches have no
/// fixed number of samples.
class any_step_cut {
 public:
  any_step_cut() = default;
  template <class C>
    requires(!std::same_as<C, any_step_cut> && step_cut<C>)
  explicit any_step_cut(C made) : called_(&functions_of<C>) {
    owner_ = shared<const void>(new const model<C>{std::move(made), {}});
  }

  /// Whether this holds a cut.
  [[nodiscard]] bool any() const noexcept { return called_ != nullptr; }
  /// Throws `pass_stopped` if `stop` becomes true and the cut checks it.
  [[nodiscard]] any_epoch_cut bind(std::uint64_t epoch, const std::atomic<bool>* stop = nullptr) const {
    return called_->bind(owner_.get(), epoch, stop);
  }
  [[nodiscard]] any_step_cut on(std::uint64_t world, std::uint64_t rank) const {
    return called_->on(owner_.get(), world, rank);
  }
  [[nodiscard]] std::uint64_t usual() const { return called_->usual(owner_.get()); }

 private:
  struct functions {
    any_epoch_cut (*bind)(const void*, std::uint64_t, const std::atomic<bool>*);
    any_step_cut (*on)(const void*, std::uint64_t, std::uint64_t);
    std::uint64_t (*usual)(const void*);
  };
  template <class C>
  struct model {
    C cut;
    detail::epoch_tables<std::remove_cvref_t<decltype(std::declval<const C&>().bind(0))>> bound;
  };
  template <class C>
  static const model<C>& of(const void* made) noexcept {
    return *static_cast<const model<C>*>(made);
  }
  // Functions, because with lambdas in the table nvcc considers the class incomplete.
  template <class C>
  static any_epoch_cut bind_of(const void* c, std::uint64_t epoch,
                               [[maybe_unused]] const std::atomic<bool>* stop) {
    const model<C>& made = of<C>(c);
    return any_epoch_cut(made.bound.get(epoch, [&] {
      if constexpr (requires { made.cut.bind(epoch, stop); })
        return made.cut.bind(epoch, stop);
      else
        return made.cut.bind(epoch);
    }));
  }
  template <class C>
  static any_step_cut on_of(const void* c, std::uint64_t world, std::uint64_t rank) {
    return any_step_cut(of<C>(c).cut.on(world, rank));
  }
  template <class C>
  static std::uint64_t usual_of(const void* c) {
    return of<C>(c).cut.usual();
  }
  template <class C>
  static constexpr functions functions_of{&bind_of<C>, &on_of<C>, &usual_of<C>};

  const functions* called_ = nullptr;
  shared<const void> owner_;
};

}  // namespace penstock::inline v0_1
