// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/pack.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/concepts.hpp>
#include <penstock/run/block/plan_blocks.hpp>
#include <penstock/run/block/slot_memory.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// What the `on_device` stages of a plan make of the columns of its batches.
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
struct connected_operations<pack<Ops...>> {
  using type = pack<typename connected_operation<Ops>::type...>;
};

/// The type of the numbers that operations, one after another, make of a column.
template <class View, class Operations>
struct made_on_device;
template <class View, class Op, class... Rest>
struct made_on_device<View, pack<Op, Rest...>>
    : made_on_device<tensor_view<typename Op::template output<View>>, pack<Rest...>> {};
template <class View>
struct made_on_device<View, pack<>> {
  using type = typename View::value_type;
};

/// The column of a block of these columns, writable.
template <class Columns, std::size_t I>
using column_of_block = decltype(std::declval<Columns&>().template edit_one<I>(std::size_t{}, std::size_t{}));

template <class Plan, class... Stages>
struct device_layout<Plan, pack<Stages...>> {
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
  using made = typename made_on_device<
      column_of_block<columns, I>,
      typename connected_operations<typename type_at<stage_of<I>, pack<Stages...>>::operations>::type>::type;
};

}  // namespace detail

}  // namespace penstock::inline v0_1
