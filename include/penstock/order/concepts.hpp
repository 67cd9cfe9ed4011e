// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/position.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Which sample is next: orders are arithmetic on positions, and every one of them can be turned round.
namespace penstock::inline v0_1 {

/// Which samples of the source stand before a stage, where that is the same in every epoch: for stages that
/// need to know something of each sample, such as `subset`. Immutable, free for all threads; used while an
/// order is made, and not for samples.
class source_places {
 public:
  using look_up = std::uint64_t (*)(const void*, std::uint64_t);

  /// Position i is sample i of the dataset with this fingerprint (0: not known) and so many samples.
  source_places(std::uint64_t dataset, std::uint64_t samples) noexcept
      : dataset_(dataset), samples_(samples) {}
  /// Position i is what `find(owner, i)` gives.
  source_places(const source_places& before, look_up find, shared<const void> owner) noexcept
      : dataset_(before.dataset_), samples_(before.samples_), find_(find), owner_(std::move(owner)) {}

  [[nodiscard]] std::uint64_t dataset() const noexcept { return dataset_; }
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  /// Whether position i is sample i.
  [[nodiscard]] bool as_stored() const noexcept { return find_ == nullptr; }
  [[nodiscard]] std::uint64_t operator()(std::uint64_t index) const {
    return find_ == nullptr ? index : find_(owner_.get(), index);
  }

 private:
  std::uint64_t dataset_, samples_;
  look_up find_ = nullptr;
  shared<const void> owner_;
};

/// What an order stage sees of the stage before it.
struct order_input {
  /// Positions per epoch.
  std::uint64_t size = 0;
  /// Where shards begin: shards + 1 ascending offsets, the first 0, the last `size`. Null when unknown: then
  /// there is one shard.
  shared<const std::vector<std::uint64_t>> starts = nullptr;
  /// Which samples of the source these are. Null where it is not known, or another in every epoch. A stage
  /// that wants it says `static constexpr bool wants_places = true`.
  shared<const source_places> places = nullptr;
};

/// A run of positions, both ends included, ordered by epoch and then by index.
struct position_range {
  position first;
  position last;
};

/// A value for every sample of a dataset: its label, its weight, the patient it belongs to.
///   value_type       what a value is: a number, or std::string_view
///   size()           samples
///   v[i]             the value of sample i, in the order of the source; any thread
///   dataset()        the fingerprint of the dataset, 0 where it is not known
///   fingerprint()    changes when a value does
///   describe()       a few words for people
/// Cheap to copy. It may have `same_until(i)`: the first sample behind i that may have another value.
template <class V>
concept sample_values = std::copy_constructible<V> && requires(const V& v, std::uint64_t i) {
  typename V::value_type;
  { v[i] } -> std::convertible_to<typename V::value_type>;
  { v.size() } -> std::same_as<std::uint64_t>;
  { v.dataset() } -> std::same_as<std::uint64_t>;
  { v.fingerprint() } -> std::same_as<std::uint64_t>;
  { v.describe() } -> std::convertible_to<std::string>;
};

/// An order that is fixed for one epoch: the position before the stage, from the index after it.
/// Default-constructible (and then not to be called), copyable, and callable from many threads.
template <class B>
concept bound_order =
    std::default_initializable<B> && std::copyable<B> && requires(const B& b, std::uint64_t index) {
      { b(index) } -> std::same_as<position>;
    };

/// An order: immutable, cheap to copy, shared between threads.
///
///   size()                  positions per epoch after the stage
///   bind(epoch)             what one epoch needs: at most O(shards), save for the orders of other libraries,
///                           which need a table of the epoch
///   position_of(position)   the inverse: nothing where the stage drops the position
///   lanes()                 optional: where the stage sets the number of lanes; else it keeps those before it
///   reach(position_range)   optional: the positions before the stage, where they are known more closely than
///                           "any of these epochs"
///   changes_epoch           optional: true where the epoch before the stage is not the epoch after it
///   repeats                 optional: true where a sample may stand at several positions of an epoch;
///                           `position_of` is then the first of them, and may have to look for it
///   bound.pads(index)       optional, of what `bind` gives: whether this position gives a sample once more, to
///                           fill an epoch up
template <class O>
concept order = std::copy_constructible<O> && requires(const O& o, std::uint64_t epoch, position at) {
  typename O::bound;
  { o.size() } -> std::same_as<std::uint64_t>;
  { o.output() } -> std::same_as<order_input>;
  { o.bind(epoch) } -> std::same_as<typename O::bound>;
  { o.position_of(at) } -> std::same_as<std::optional<position>>;
} && bound_order<typename O::bound>;

/// An order that sets the number of lanes.
template <class O>
concept lane_setting = order<O> && requires(const O& o) {
  { o.lanes() } -> std::same_as<std::uint64_t>;
};
/// An order that knows closely which positions before it belong to those after it.
template <class O>
concept reaching = order<O> && requires(const O& o, position_range after) {
  { o.reach(after) } -> std::same_as<position_range>;
};

/// An order stage: the plan-level value from which `make` builds the order, once the size before it is known.
/// `describe` is for people; `fingerprint(h)` calls `h.add(stage_name, numbers...)` with all that determines
/// the sequence. A stage with a seed has `plan_seed()`: that of a plan without `seed(n)`.
/// `works_forward = true` says that it can stand over a source that can only be read forward: then it is a
/// `counting_stage` or a `repeating_stage`.
template <class S>
concept order_stage = std::copy_constructible<S> && std::same_as<typename S::penstock_part, order_tag> &&
                      requires(const S& s, order_input in) {
                        { S::stage_name } -> std::convertible_to<std::string_view>;
                        { s.describe() } -> std::same_as<std::string>;
                        { s.make(std::move(in)) } -> order;
                      };

/// What a stage keeps of things that are counted from 0 in every epoch, be they samples, rows or batches:
/// numbers `first` and on, up to `end`.
struct item_range {
  std::uint64_t first = 0;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
};

/// An order stage that chooses by number alone, and says what it keeps: `take` and `skip`. It says so with
/// `counts_only`, and can stand where things have no positions and are counted one after another.
template <class S>
concept counting_stage = part_of_kind<S, order_tag> && requires(const std::remove_cvref_t<S>& s) {
  requires std::remove_cvref_t<S>::counts_only;
  { s.kept() } -> std::same_as<item_range>;
};

/// An order stage that gives what stands before it again, `times` times: `repeat`. It says so with
/// `goes_round`.
template <class S>
concept repeating_stage = part_of_kind<S, order_tag> && requires(const std::remove_cvref_t<S>& s) {
  requires std::remove_cvref_t<S>::goes_round;
  { s.times } -> std::convertible_to<std::optional<std::uint64_t>>;
};

/// An order stage that needs to know which samples of the source stand before it:
/// `static constexpr bool wants_places = true`.
template <class S>
concept place_wanting = order_stage<S> && requires { requires S::wants_places; };

/// The order that stage `S` makes.
template <order_stage S>
using order_of = decltype(std::declval<const S&>().make(std::declval<order_input>()));

}  // namespace penstock::inline v0_1
