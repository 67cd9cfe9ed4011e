// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/position.hpp>

#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Which sample is next: orders are arithmetic on positions, and each of them is invertible.
namespace penstock::inline v0_1 {

/// Which samples of the source reach a stage, if that is the same in every epoch. For stages that need to
/// know something about each sample, such as `subset`. Immutable and thread-safe; used while an order is
/// built, not per sample.
class source_places {
 public:
  using look_up = std::uint64_t (*)(const void*, std::uint64_t);

  /// Position i is sample i of the dataset with this fingerprint (0: unknown) and this number of samples.
  source_places(std::uint64_t dataset, std::uint64_t samples) noexcept
      : dataset_(dataset), samples_(samples) {}
  /// Position i is `find(owner, i)`.
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

/// What an order stage knows about the stage before it.
struct order_input {
  /// The number of positions per epoch.
  std::uint64_t size = 0;
  /// The shard boundaries: shards + 1 ascending offsets, the first 0, the last `size`. Null if unknown: the
  /// positions then count as one shard.
  shared<const std::vector<std::uint64_t>> starts = nullptr;
  /// Which samples of the source these positions are. Null if that is unknown or changes from epoch to epoch.
  /// A stage that needs it declares `static constexpr bool wants_places = true`.
  shared<const source_places> places = nullptr;
};

/// A range of positions, both ends included, ordered by epoch and then by index.
struct position_range {
  position first;
  position last;
};

/// A value for every sample of a dataset: its label, its weight, the patient it belongs to.
///   value_type       what a value is: a number, or std::string_view
///   size()           the number of samples
///   v[i]             the value of sample i, in the order of the source; callable from any thread
///   dataset()        the fingerprint of the dataset, 0 if unknown
///   fingerprint()    changes when a value does
///   describe()       a short description for people
/// Cheap to copy. Optionally it has `same_until(i)`: the first sample after i whose value may differ.
template <class V>
concept sample_values = std::copy_constructible<V> && requires(const V& v, std::uint64_t i) {
  typename V::value_type;
  { v[i] } -> std::convertible_to<typename V::value_type>;
  { v.size() } -> std::same_as<std::uint64_t>;
  { v.dataset() } -> std::same_as<std::uint64_t>;
  { v.fingerprint() } -> std::same_as<std::uint64_t>;
  { v.describe() } -> std::convertible_to<std::string>;
};

/// An order bound to one epoch: maps an index after the stage to the position before it.
/// Default-constructible (but then not callable), copyable, and callable from many threads.
template <class B>
concept bound_order =
    std::default_initializable<B> && std::copyable<B> && requires(const B& b, std::uint64_t index) {
      { b(index) } -> std::same_as<position>;
    };

/// An order: immutable, cheap to copy, shared between threads.
///
///   size()                  positions per epoch after the stage
///   bind(epoch)             an order for one epoch: at most O(shards), except for the orders of other
///                           libraries, which need a table of the epoch
///   position_of(position)   the inverse; empty if the stage drops the position
///   lanes()                 optional: the number of lanes, if the stage sets it; else it stays as before
///   reach(position_range)   optional: the positions before the stage, if they are known more precisely than
///                           "any in these epochs"
///   changes_epoch           optional: true if the epoch before the stage differs from the epoch after it
///   repeats                 optional: true if a sample may be at several positions of an epoch;
///                           `position_of` then returns the first of them, and may have to search
///   bound.pads(index)       optional, on the result of `bind`: whether this position repeats a sample to
///                           fill up the epoch
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
/// An order that can narrow down which positions before it the positions after it come from.
template <class O>
concept reaching = order<O> && requires(const O& o, position_range after) {
  { o.reach(after) } -> std::same_as<position_range>;
};

/// An order stage: the plan-level value whose `make` builds the order once the size before it is known.
/// `describe` is for people; `fingerprint(h)` calls `h.add(stage_name, numbers...)` with everything that
/// determines the sequence. A stage with a seed has `plan_seed()`, which a plan without `seed(n)` uses.
/// Behind `batch` it would order whole batches, which `works_on_batches = true` allows.
/// `works_forward = true` allows it over a source that can only be read forward: it must then be a
/// `counting_stage` or a `repeating_stage`.
template <class S>
concept order_stage = std::copy_constructible<S> && std::same_as<typename S::penstock_part, order_tag> &&
                      requires(const S& s, order_input in) {
                        { S::stage_name } -> std::convertible_to<std::string_view>;
                        { s.describe() } -> std::same_as<std::string>;
                        { s.make(std::move(in)) } -> order;
                      };

/// The range that a stage keeps of anything counted from 0 in every epoch (samples, rows or batches): from
/// `first` up to, but not including, `end`.
struct item_range {
  std::uint64_t first = 0;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
};

/// An order stage that chooses by number alone and tells which numbers it keeps: `take` and `skip`. It
/// declares `counts_only`, and works even where things have no positions and are counted one after another.
template <class S>
concept counting_stage = part_of_kind<S, order_tag> && requires(const std::remove_cvref_t<S>& s) {
  requires std::remove_cvref_t<S>::counts_only;
  { s.kept() } -> std::same_as<item_range>;
};

/// An order stage that repeats everything before it `times` times: `repeat`. It declares `goes_round`.
template <class S>
concept repeating_stage = part_of_kind<S, order_tag> && requires(const std::remove_cvref_t<S>& s) {
  requires std::remove_cvref_t<S>::goes_round;
  { s.times } -> std::convertible_to<std::optional<std::uint64_t>>;
};

/// An order stage that needs to know which samples of the source reach it: `static constexpr bool
/// wants_places = true`.
template <class S>
concept place_wanting = order_stage<S> && requires { requires S::wants_places; };

namespace detail {
/// The first position of an epoch that an order takes from a sample; searches the epoch.
[[nodiscard]] std::optional<position> first_position(const auto& from, position sample) {
  const auto bound = from.bind(sample.epoch);
  for (std::uint64_t at = 0; at < from.size(); ++at)
    if (bound(at).index == sample.index) return position{sample.epoch, at};
  return std::nullopt;
}
}  // namespace detail

/// The order that stage `S` builds.
template <order_stage S>
using order_of = decltype(std::declval<const S&>().make(std::declval<order_input>()));

}  // namespace penstock::inline v0_1
