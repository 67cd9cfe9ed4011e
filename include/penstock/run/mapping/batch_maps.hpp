// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/observe/concepts.hpp>
#include <penstock/run/block/column.hpp>
#include <penstock/run/block/plan_blocks.hpp>
#include <penstock/run/block/slot_memory.hpp>
#include <penstock/run/engine/tuning/worker_counts.hpp>
#include <penstock/run/engine/workers/observers.hpp>
#include <penstock/run/feed/placement.hpp>
#include <penstock/stage/batch_columns.hpp>

#include <array>
#include <span>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

/// A column that a function returned for a whole batch, in memory of the device's session. `View` is what the
/// next function receives: a span of numbers, or a `tensor_view`.
template <class View>
class returned_column {
 public:
  using value_type = typename View::value_type;

  template <class Session>
  returned_column(Session& session, memory_account& account) : memory_(session, account) {}

  /// Copies what was returned, or lets it write itself here. Allocates only if it is larger than any before.
  void assign(const auto& value) {
    const extents shape = detail::value_shape(value);
    const auto count = detail::to_size(shape.elements());
    memory_.reserve(count * sizeof(value_type));
    if (count != 0) detail::write_values(value, data(), shape, memory_.space());
    shape_ = shape;
  }
  void clear() noexcept { shape_ = extents(std::uint64_t{0}); }

  [[nodiscard]] View edit() const noexcept { return shown<value_type>(); }
  [[nodiscard]] auto view() const noexcept { return shown<const value_type>(); }
  [[nodiscard]] bytes_view bytes() const noexcept { return {memory_.data(), count() * sizeof(value_type)}; }
  [[nodiscard]] std::uint64_t held() const noexcept { return memory_.capacity(); }
  void release() noexcept {
    clear();
    memory_.release();
  }

 private:
  [[nodiscard]] value_type* data() const noexcept { return reinterpret_cast<value_type*>(memory_.data()); }
  [[nodiscard]] std::size_t count() const noexcept { return detail::to_size(shape_.elements()); }
  template <class T>
  [[nodiscard]] auto shown() const noexcept {
    if constexpr (std::is_same_v<View, std::span<value_type>>)
      return std::span<T>(data(), count());
    else
      return tensor_view<T>(data(), shape_);
  }

  slot_memory memory_;
  extents shape_{std::uint64_t{0}};
};

namespace detail {

/// The read-only counterpart of a writable view.
template <class View>
using reading = decltype(std::declval<const returned_column<View>&>().view());

}  // namespace detail

/// The columns that one function of `map_batch` returns.
template <class... Columns>
class returned_arrays {
 public:
  static constexpr std::size_t size = sizeof...(Columns);

  template <class Session>
  returned_arrays(Session& session, memory_account& account) : columns_{{{Columns(session, account)}...}} {}

  void clear() noexcept {
    columns_.apply([](auto&... columns) { (columns.clear(), ...); });
  }
  [[nodiscard]] std::uint64_t held() const noexcept {
    return columns_.apply([](const auto&... columns) { return (columns.held() + ...); });
  }
  void release() noexcept {
    columns_.apply([](auto&... columns) { (columns.release(), ...); });
  }
  [[nodiscard]] std::array<bytes_view, size> bytes() const {
    return columns_.apply(
        [](const auto&... columns) { return std::array<bytes_view, size>{columns.bytes()...}; });
  }
  template <std::size_t I>
  [[nodiscard]] auto view() const noexcept {
    return detail::at<I>(columns_).view();
  }
  template <std::size_t I>
  [[nodiscard]] auto edit_one() const noexcept {
    return detail::at<I>(columns_).edit();
  }

 protected:
  light_tuple<Columns...> columns_;
};

/// The columns that one function of `map_batch` returns, by the views that the next function receives: one
/// view, or a record of views.
template <class Views>
class returned_set : public returned_arrays<returned_column<Views>> {
 public:
  /// The element type that a batch reports.
  using element = detail::reading<Views>;
  using returned_arrays<returned_column<Views>>::returned_arrays;

  void assign(const auto& made) { detail::at<0>(this->columns_).assign(made); }
  [[nodiscard]] Views edit() const noexcept { return detail::at<0>(this->columns_).edit(); }
};
template <class... Fields>
class returned_set<record<Fields...>> : public returned_arrays<returned_column<typename Fields::type>...> {
 public:
  using element = record<basic_field<typename Fields::name_type, detail::reading<typename Fields::type>>...>;
  using returned_arrays<returned_column<typename Fields::type>...>::returned_arrays;

  void assign(const auto& made) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (detail::at<Is>(this->columns_).assign(made.template at<Is>()), ...);
    }(std::index_sequence_for<Fields...>{});
  }
  [[nodiscard]] record<Fields...> edit() const noexcept {
    return this->columns_.apply([](const auto&... columns) { return record<Fields...>(columns.edit()...); });
  }
};

/// The columns that collect samples, followed by a set of new ones for each function that returns any; the
/// batch shows the last set.
template <class Gathered, class... Sets>
class mapped_columns : public Gathered {
  using last = detail::type_at<sizeof...(Sets) - 1, light_tuple<Sets...>>;

 public:
  using element = typename last::element;

  template <class Session>
  mapped_columns(Session& session, memory_account& account)
      : Gathered(session, account), sets_{{{Sets(session, account)}...}} {}

  /// The new columns of function number I among those that return any.
  template <std::size_t I>
  [[nodiscard]] auto& returned() noexcept {
    return detail::at<I>(sets_);
  }
  void clear_returned() noexcept {
    sets_.apply([](auto&... sets) { (sets.clear(), ...); });
  }
  [[nodiscard]] std::uint64_t held() const noexcept {
    return Gathered::held() + sets_.apply([](const auto&... sets) { return (sets.held() + ...); });
  }
  void release() noexcept {
    Gathered::release();
    sets_.apply([](auto&... sets) { (sets.release(), ...); });
  }
  template <std::size_t I>
  [[nodiscard]] auto view(std::size_t /*first*/, std::size_t /*slots*/) const noexcept {
    return final_set().template view<I>();
  }
  template <std::size_t I>
  [[nodiscard]] auto edit_one(std::size_t /*first*/, std::size_t /*slots*/) const noexcept {
    return final_set().template edit_one<I>();
  }
  [[nodiscard]] auto bytes(std::size_t /*first*/, std::size_t /*slots*/) const { return final_set().bytes(); }

 private:
  [[nodiscard]] const last& final_set() const noexcept { return detail::at<sizeof...(Sets) - 1>(sets_); }

  light_tuple<Sets...> sets_;
};

namespace detail {

/// A place after `batch`: the samples that were collated, and the columns there; after `pack`, that stage.
template <class Element, class Columns>
struct batch_place {
  using element = Element;
  using columns = Columns;
};

/// The place after a plan's last stage, and the sets of new columns made on the way.
template <class Place, class Found, class... Stages>
struct batch_way {
  using place = Place;
  using sets = Found;
};
template <class Place, class Found, class Stage, class... Rest>
struct batch_way<Place, Found, Stage, Rest...> : batch_way<Place, Found, Rest...> {};
template <class Place, class Found, part_of_kind<pack_tag> Stage, class... Rest>
struct batch_way<Place, Found, Stage, Rest...>
    : batch_way<batch_place<typename Place::element, Stage>, Found, Rest...> {};
template <class Place, class Found, part_of_kind<batch_tag> Stage, class... Rest>
struct batch_way<Place, Found, Stage, Rest...>
    : batch_way<
          batch_place<typename Place::element, typename batch_behind<Stage, typename Place::columns>::type>,
          Found, Rest...> {};
template <class Place, class... Found, part_of_kind<batch_map_tag> Stage, class... Rest>
  requires(Stage::template returns<views_in<Place>>)
struct batch_way<Place, light_tuple<Found...>, Stage, Rest...>
    : batch_way<batch_place<typename Place::element, typename Stage::template columns_after<Place>>,
                light_tuple<Found..., returned_set<typename Stage::template columns_after<Place>>>, Rest...> {
};

template <class Plan, class Stages = typename Plan::stages_type>
struct way_of_batches;
template <class Plan, class... Stages>
struct way_of_batches<Plan, light_tuple<Stages...>>
    : batch_way<batch_place<typename plan_parts<Plan>::element, void>, light_tuple<>, Stages...> {};

template <class Gathered, class Sets>
struct with_returned {
  using type = Gathered;
};
template <class Gathered, class Set, class... Sets>
struct with_returned<Gathered, light_tuple<Set, Sets...>> {
  using type = mapped_columns<Gathered, Set, Sets...>;
};

template <class Plan>
struct block_columns<Plan, true> {
  using type = typename with_returned<columns_of<Plan>, typename way_of_batches<Plan>::sets>::type;
};

/// How many `map_batch` stages there are.
template <class Stages>
inline constexpr std::size_t maps_among = 0;
template <class... Stages>
inline constexpr std::size_t maps_among<light_tuple<Stages...>> =
    (std::size_t{part_of_kind<Stages, batch_map_tag>} + ... + std::size_t{0});

}  // namespace detail

/// The `map_batch` stages of a plan: calls their functions with a batch whose columns are in order.
///
/// The caller must be the batch's only user. Cost: the calls, inlined, and two clock reads for each.
template <class Plan>
class batch_maps<Plan, true> {
  using parts = plan_parts<Plan>;
  using stages = typename parts::stages;

 public:
  static constexpr std::size_t count = detail::maps_among<stages>;
  /// What each stage cost, in order.
  using costs = std::array<stage_cost, count>;

  batch_maps(const Plan& p, std::uint64_t seed) : plan_(&p), seed_(seed), rank_(world_of(p).rank) {}

  /// Stores a failure in the block, at the batch's first position; an `error` is given the stage's name.
  template <class Block>
  void keep(Block& b, const batch_rows& batch, costs& spent) const noexcept {
    try {
      call_all(b, batch, spent);
    } catch (...) {
      // padding has no position: the step's first one says which batch it is
      b.fail_at(batch.first, {b.epoch, batch.valid != 0 ? b.index(batch.first) : b.step_index()}, {});
    }
  }
  /// Like `keep`, but in a worker and for the only batch of a block; reports to observers and the watchdog.
  /// `stages_before`: the source and value stages, which come first in the counters.
  template <class Block>
  void in_worker(Block& b, costs& spent, worker_counts& counts, const run_watch& watch, std::size_t worker,
                 std::size_t stages_before) const noexcept {
    const batch_rows& batch = b.batches.front();
    if (batch.valid != 0) counts.begin_run(b.index(batch.first), batch.valid);
    const costs before = spent;
    run_event e{detail::now_ns()};
    keep(b, batch, spent);
    counts.end_run();
    e.what = activity::stage;
    e.batch = batch.delivered.index;
    e.epoch = batch.delivered.epoch;
    for (std::size_t i = 0; i < count; ++i, e.begin_ns = e.end_ns) {
      const std::uint64_t took = spent[i].nanoseconds - before[i].nanoseconds;
      e.end_ns = e.begin_ns + took;
      e.stage = static_cast<std::uint32_t>(stages_before + i);
      counts.add_busy(took);
      watch.worker(worker, e);
    }
  }

 private:
  template <class Block>
  void call_all(Block& b, const batch_rows& batch, costs& spent) const {
    if constexpr (makes_columns<Block>) b.columns.clear_returned();
    if (batch.slots == 0 && b.packed.rows == 0) return;
    const auto first = static_cast<std::size_t>(batch.first), slots = static_cast<std::size_t>(batch.slots);
    detail::batch_facts facts{slots, static_cast<std::size_t>(batch.valid), 0,
                              static_cast<std::size_t>(batch.global), batch.delivered};
    if constexpr (parts::tolerant) mark_holes(b, batch, facts);
    using collated =
        detail::batch_place<typename parts::element, typename detail::columns_of_plan<Plan>::batch>;
    go<collated, parts::in::batch + 1, 0, 0, 0>(
        b, b.columns.template edit<detail::views_in<collated>>(first, slots), facts, spent);
  }
  template <class Block>
  static constexpr bool makes_columns = requires(Block& b) { b.columns.clear_returned(); };

  template <class Block>
  static void mark_holes(const Block& b, const batch_rows& batch, detail::batch_facts& facts) {
    facts.holes = b.bad.holes(batch.first, batch.slots);
    if (facts.holes == 0) return;
    facts.mask.resize(facts.size);
    b.bad.mark(facts.mask.data(), batch.first, facts.size, facts.valid);
  }

  /// Starts at stage I, which is number `Map` among the `map_batch` stages; `Drawn` of them before it draw
  /// random numbers, and `Made` have returned columns.
  template <class Place, std::size_t I, std::size_t Map, std::size_t Drawn, std::size_t Made, class Block,
            class Views>
  void go(Block& b, const Views& views, const detail::batch_facts& facts, costs& spent) const {
    if constexpr (I < stages::size) {
      using stage_type = detail::type_at<I, stages>;
      if constexpr (part_of_kind<stage_type, batch_map_tag>) {
        constexpr bool returns = stage_type::template returns<Views>;
        constexpr std::size_t drawn = Drawn + (stage_type::template uses_random<Views> ? 1 : 0);
        const auto& stage = detail::at<I>(plan_->stages());
        batch_columns<Views> columns(views, facts);
        rng random(seed_, facts.place.epoch, facts.place.index, stage.stream(Drawn, rank_));
        const std::uint64_t begin = timed::now();
        const auto done = [&] {
          spent[Map].nanoseconds += timed::now() - begin;
          spent[Map].timed += facts.valid;
        };
        if constexpr (returns) {
          using next = detail::batch_place<typename Place::element,
                                           typename stage_type::template columns_after<Place>>;
          auto& made = b.columns.template returned<Made>();
          made.assign(call(stage, columns, random));
          done();
          go<next, I + 1, Map + 1, drawn, Made + 1>(b, made.edit(), facts, spent);
        } else {
          call(stage, columns, random);
          done();
          go<Place, I + 1, Map + 1, drawn, Made>(b, views, facts, spent);
        }
      } else {
        go<Place, I + 1, Map, Drawn, Made>(b, views, facts, spent);
      }
    }
  }

  template <class Stage, class Views>
  static decltype(auto) call(const Stage& stage, batch_columns<Views>& columns,
                             [[maybe_unused]] rng& random) {
    try {
      if constexpr (Stage::template uses_random<Views>)
        return stage.function(columns, random);
      else
        return stage.function(columns);
    } catch (...) {
      detail::rethrow_in_stage(Stage::stage_name);
    }
  }

  const Plan* plan_;
  std::uint64_t seed_, rank_;
};

}  // namespace penstock::inline v0_1
