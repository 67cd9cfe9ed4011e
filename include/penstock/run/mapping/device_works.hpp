// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/device/concepts.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/run/block/plan_blocks.hpp>
#include <penstock/run/block/slot_memory.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// What the `on_device` stages of a plan make of the columns of its batches, and their operations at work.
namespace penstock::inline v0_1 {

/// What a block keeps for its operations on the device: the table that is copied with the columns, and what
/// each operation asked for. The operations of all stages are numbered in order.
template <std::size_t Operations>
struct device_work {
  template <class Session>
  device_work(Session& session, memory_account& account) : table(session, account) {}

  slot_memory table;
  std::size_t table_bytes = 0;
  std::array<std::size_t, Operations> tables{};     // where the part of each begins
  std::array<std::size_t, 2 * Operations> rooms{};  // bytes of what each makes, then of the scratch of each
  std::array<extents, Operations> shapes{};         // of what each makes
  std::vector<std::uint8_t> mask;
  std::vector<position> positions;
  device_batch::facts facts;
};

namespace detail {

/// The operations of a stage, as they work in a run.
template <class Operations>
struct connected_operations;
template <class... Ops>
struct connected_operations<light_tuple<Ops...>> {
  using type = light_tuple<typename connected_operation<Ops>::type...>;
};

/// The type of the numbers that operations, one after another, make of a column.
template <class View, class Operations>
struct made_on_device;
template <class View, class Op, class... Rest>
struct made_on_device<View, light_tuple<Op, Rest...>>
    : made_on_device<tensor_view<typename Op::template output<View>>, light_tuple<Rest...>> {};
template <class View>
struct made_on_device<View, light_tuple<>> {
  using type = typename View::value_type;
};

/// The column of a block of these columns, writable.
template <class Columns, std::size_t I>
using column_of_block = decltype(std::declval<Columns&>().template edit_one<I>(std::size_t{}, std::size_t{}));

template <class Plan, class... Stages>
struct device_layout<Plan, light_tuple<Stages...>> {
  using columns = block_columns_of<Plan>;
  using element = batch_element_of<Plan>;
  static constexpr std::size_t column_count =
      std::tuple_size_v<decltype(std::declval<const columns&>().bytes(std::size_t{}, std::size_t{}))>;
  static constexpr std::size_t operations = (Stages::operations::size + ...);
  using work = device_work<operations>;

  /// The stage that works on column I, or the number of stages.
  template <std::size_t I>
  static constexpr std::size_t stage_of = [] {
    std::size_t found = sizeof...(Stages), i = 0;
    ((Stages::template column<element> == I ? (found = i, ++i) : ++i), ...);
    return found;
  }();
  template <std::size_t I>
  static constexpr bool changes = stage_of<I> != sizeof...(Stages);
  /// The number of the first operation of stage S.
  static constexpr std::array<std::size_t, sizeof...(Stages) + 1> first = [] {
    std::array<std::size_t, sizeof...(Stages) + 1> begins{};
    std::size_t i = 0;
    ((begins[i + 1] = begins[i] + Stages::operations::size, ++i), ...);
    return begins;
  }();
  /// The operation that leaves what becomes of column I.
  template <std::size_t I>
  static constexpr std::size_t last = first[stage_of<I> + 1] - 1;
  /// Behind the columns lies the table, and behind it what the operations make.
  template <std::size_t I>
  static constexpr std::size_t place = [] {
    if constexpr (changes<I>)
      return column_count + 1 + last<I>;
    else
      return I;
  }();
  template <std::size_t I>
  using made = typename made_on_device<column_of_block<columns, I>,
                                       typename connected_operations<typename type_at<
                                           stage_of<I>, light_tuple<Stages...>>::operations>::type>::type;
};

/// The number of each `on_device` stage among the random stages: value stages count before it, as they do
/// for each other.
template <class Context, std::size_t Count>
constexpr void number_device_stages(std::array<std::uint64_t, Count>&, std::uint64_t, std::size_t) {}
template <class Context, std::size_t Count, class Stage, class... Rest>
constexpr void number_device_stages(std::array<std::uint64_t, Count>& numbers, std::uint64_t number,
                                    std::size_t found) {
  if constexpr (part_of_kind<Stage, device_map_tag>) numbers[found++] = number;
  constexpr bool uses_random = stage_uses_random<Stage, typename Context::element> ||
                               (part_of_kind<Stage, device_map_tag> && random_stage<Stage, Context>);
  number_device_stages<typename fold_context<Context, Stage>::type, Count, Rest...>(
      numbers, number + (uses_random ? 1 : 0), found);
}

}  // namespace detail

/// The `on_device` stages of a plan that has some.
template <class Plan, class First, class... Rest>
class device_works<Plan, light_tuple<First, Rest...>> {
  using layout = device_layout_of<Plan>;
  using stages = light_tuple<First, Rest...>;

 public:
  static constexpr bool any = true;

  template <class Session>
  device_works(const Plan& p, const Session& session)
      : seed_(*options_of(p).seed), operations_(connect(p, device_of(session))) {
    std::size_t i = 0;
    p.stages().apply([&](const auto&... all) { (take_address(all, i), ...); });
  }

  /// Starts the copy of a block, `valid` of whose slots hold samples, and the operations behind it. If
  /// something throws, nothing is in progress.
  template <class Session, class Block, std::size_t Columns>
  void start(Session& session, Block& b, std::size_t valid, const std::array<bytes_view, Columns>& columns) {
    describe(b, valid);
    measure(b);
    std::array<bytes_view, Columns + 1> all;
    std::copy(columns.begin(), columns.end(), all.begin());
    all[Columns] = {b.work.table.data(), b.work.table_bytes};
    session.start(b.transfer, std::span<const bytes_view>(all), std::span<const std::size_t>(b.work.rooms),
                  [&](typename Session::stream_type stream) { launch(session, b, stream); });
  }

 private:
  template <class Stage>
  using connected = typename detail::connected_operations<typename Stage::operations>::type;
  using connected_stages = light_tuple<connected<First>, connected<Rest>...>;
  static constexpr std::size_t count = 1 + sizeof...(Rest);

  static constexpr std::array<std::uint64_t, count> numbers = []<class... All>(const light_tuple<All...>*) {
    std::array<std::uint64_t, count> found{};
    detail::number_device_stages<detail::context_of<typename Plan::source_type>, count, All...>(found, 1, 0);
    return found;
  }(static_cast<const typename Plan::stages_type*>(nullptr));
  static constexpr bool uses_random = First::own_streams + (Rest::own_streams + ... + std::uint64_t{0}) != 0;

  static int device_of(const auto& session) {
    if constexpr (requires { session.device(); })
      return session.device();
    else
      return 0;
  }
  static connected_stages connect(const Plan& p, int device) {
    return p.stages().apply([&](const auto&... all) { return connect_all(light_tuple<>{}, device, all...); });
  }
  template <class... Done>
  static auto connect_all(light_tuple<Done...> done, int /*device*/) {
    return done;
  }
  template <class... Done, class Stage, class... More>
  static auto connect_all(light_tuple<Done...> done, int device, const Stage& stage, const More&... more) {
    if constexpr (part_of_kind<Stage, device_map_tag>)
      return connect_all(
          detail::join(std::move(done), detail::make_light_tuple(connect_one(stage.all, device))), device,
          more...);
    else
      return connect_all(std::move(done), device, more...);
  }
  template <class... Ops>
  static auto connect_one(const light_tuple<Ops...>& ops, int device) {
    return ops.apply([&](const Ops&... each) {
      return detail::make_light_tuple(detail::connected_operation<Ops>::make(each, device)...);
    });
  }
  template <class Stage>
  void take_address(const Stage& stage, std::size_t& i) {
    if constexpr (part_of_kind<Stage, device_map_tag>) {
      streams_[i] = stage.stream_address() != 0 ? stage.stream_address() : numbers[i];
      ++i;
    }
  }

  /// What operations may ask of the batch.
  template <class Block>
  void describe(Block& b, std::size_t valid) const {
    auto& work = b.work;
    work.facts = {detail::to_size(b.slots), valid};
    work.facts.seed = seed_;
    if (const std::size_t holes = b.bad.holes(0, b.slots); holes != 0) {
      work.mask.resize(work.facts.slots);
      b.bad.mark(work.mask.data(), 0, work.facts.slots, valid);
      work.facts.mask = work.mask;
    }
    if constexpr (uses_random) {
      work.positions.clear();
      for (std::size_t row = 0; row < valid; ++row)
        work.positions.push_back(b.from_batches ? b.gathered.first_of(row) : position{b.epoch, b.index(row)});
      work.facts.positions = work.positions;
    }
  }

  /// Calls f(number, operation, view, batch) for each operation, in order; its shape must be known when f
  /// returns.
  template <class Block, class F>
  void each(Block& b, F f) {
    [&]<std::size_t... S>(std::index_sequence<S...>) {
      (each_of<S>(b, f), ...);
    }(std::make_index_sequence<count>{});
  }
  template <std::size_t S, class Block, class F>
  void each_of(Block& b, F& f) {
    using stage = detail::type_at<S, stages>;
    constexpr std::size_t column = stage::template column<typename layout::element>;
    try {
      step<S, 0, 0>(b, b.columns.template edit_one<column>(0, detail::to_size(b.slots)), f);
    } catch (error& e) {
      if (e.stage().empty()) e.in_stage(stage::stage_name);
      throw;
    }
  }
  template <std::size_t S, std::size_t J, std::uint64_t Drawn, class Block, class View, class F>
  void step(Block& b, const View& view, F& f) {
    auto& operations = detail::at<S>(operations_);
    auto& operation = detail::at<J>(operations);
    using type = std::remove_cvref_t<decltype(operation)>;
    constexpr std::size_t number = layout::first[S] + J;
    const device_batch batch(b.work.facts, streams_[S], Drawn);
    f(std::integral_constant<std::size_t, number>{}, operation, view, batch, S, J == 0);
    if constexpr (J + 1 < std::remove_cvref_t<decltype(operations)>::size)
      step<S, J + 1, Drawn + detail::device_streams<type>>(
          b, tensor_view<typename type::template output<View>>(nullptr, b.work.shapes[number]), f);
  }

  template <class Block>
  void measure(Block& b) {
    auto& work = b.work;
    work.table_bytes = 0;
    std::array<std::size_t, layout::operations> sizes{};
    each(b, [&]<class Op, class View>(auto number, Op& operation, const View& view, const device_batch& batch,
                                      std::size_t, bool) {
      work.shapes[number] = operation.shape(view, batch);
      work.rooms[number] =
          detail::to_size(work.shapes[number].elements()) * sizeof(typename Op::template output<View>);
      if constexpr (requires { operation.scratch_bytes(view, batch); })
        work.rooms[layout::operations + number] = operation.scratch_bytes(view, batch);
      if constexpr (requires { operation.table_bytes(view, batch); }) {
        sizes[number] = operation.table_bytes(view, batch);
        work.tables[number] = work.table_bytes;
        work.table_bytes += (sizes[number] + alignment - 1) / alignment * alignment;
      }
    });
    if (work.table_bytes == 0) return;
    work.table.reserve(work.table_bytes);
    each(b, [&]<class Op, class View>(auto number, Op& operation, const View& view, const device_batch& batch,
                                      std::size_t, bool) {
      if constexpr (requires { operation.table_bytes(view, batch); })
        if (sizes[number] != 0)
          operation.fill_table(view, batch,
                               mutable_bytes(work.table.data() + work.tables[number], sizes[number]));
    });
  }

  template <class Session, class Block, class Stream>
  void launch(Session& session, Block& b, Stream stream) {
    if (b.slots == 0) return;
    const auto& work = b.work;
    const auto place = [&](std::size_t i) {
      return static_cast<std::byte*>(
          const_cast<void*>(static_cast<const void*>(session.data(b.transfer, i))));
    };
    constexpr std::size_t table = layout::column_count, made = table + 1;
    constexpr std::array<std::size_t, count> columns = {First::template column<typename layout::element>,
                                                        Rest::template column<typename layout::element>...};
    each(b, [&]<class Op, class View>(auto number, Op& operation, const View& view, const device_batch& batch,
                                      std::size_t stage, bool first) {
      constexpr std::size_t i = decltype(number)::value;
      device_places places;
      places.input = place(first ? columns[stage] : made + i - 1);
      if (work.table_bytes != 0) places.table = place(table) + work.tables[i];
      places.output = place(made + i);
      places.scratch = place(made + layout::operations + i);
      operation.launch(stream, view, batch, places);
    });
  }

  static constexpr std::size_t alignment = 256;

  std::uint64_t seed_;
  std::array<std::uint64_t, count> streams_{};
  connected_stages operations_;
};

}  // namespace penstock::inline v0_1
