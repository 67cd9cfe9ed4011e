// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/part.hpp>
#include <penstock/core/position.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Which sample is next: orders are arithmetic on positions, and every one of them can be turned round.
namespace penstock::inline v0_1 {

/// What an order stage sees of the stage before it.
struct order_input {
  /// Positions per epoch.
  std::uint64_t size = 0;
  /// Where shards begin: shards + 1 ascending offsets, the first 0, the last `size`. Null when unknown: then
  /// there is one shard.
  std::shared_ptr<const std::vector<std::uint64_t>> starts = nullptr;
};

/// A run of positions, both ends included, ordered by epoch and then by index.
struct position_range {
  position first;
  position last;
};

/// An order that is fixed for one epoch: the position before the stage, from the index after it.
/// Default-constructible (and then not to be called), copyable, and callable from many threads.
template <class B>
concept bound_order =
    std::default_initializable<B> && std::copyable<B> && requires(const B& b, std::uint64_t index) {
      { b(index) } -> std::same_as<position>;
    };

/// An order: immutable, cheap to copy, shared between threads. `size` is the number of positions per epoch
/// after the stage, `bind` makes what one epoch needs (at most O(shards), save for the orders of other
/// libraries, which need a table of the epoch), `position_of` is the inverse: nothing where the stage drops
/// the position.
///
/// Optional members: `std::uint64_t lanes() const` where the stage sets the number of lanes (otherwise it
/// keeps those before it);
/// `position_range reach(position_range) const` where the positions before the stage are known more closely
/// than "any of these epochs"; `static constexpr bool changes_epoch = true` where the epoch before the stage
/// is not the epoch after it.
template <class O>
concept order = std::copy_constructible<O> && requires(const O& o, std::uint64_t epoch, position at) {
  typename O::bound;
  { o.size() } -> std::same_as<std::uint64_t>;
  { o.output() } -> std::same_as<order_input>;
  { o.bind(epoch) } -> std::same_as<typename O::bound>;
  { o.position_of(at) } -> std::same_as<std::optional<position>>;
} && bound_order<typename O::bound>;

/// An order stage: the plan-level value from which `make` builds the order, once the size before it is known.
/// `describe` is for people; `fingerprint(h)` calls `h.add(stage_name, numbers...)` with all that determines
/// the sequence.
template <class S>
concept order_stage = std::copy_constructible<S> && std::same_as<typename S::penstock_part, order_tag> &&
                      requires(const S& s, order_input in) {
                        { S::stage_name } -> std::convertible_to<std::string_view>;
                        { s.describe() } -> std::same_as<std::string>;
                        { s.make(std::move(in)) } -> order;
                      };

/// The order that stage `S` makes.
template <order_stage S>
using order_of = decltype(std::declval<const S&>().make(std::declval<order_input>()));

}  // namespace penstock::inline v0_1
