// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/light_tuple.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/uneven_views.hpp>
#include <penstock/device/concepts.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/run/block/column_set.hpp>
#include <penstock/run/block/slot_memory.hpp>

#include <array>
#include <span>

/// What the blocks of a plan consist of, where no stage works on batches; `map_batch` and `on_device` bring
/// the rest, see run/mapping.
namespace penstock::inline v0_1 {

namespace detail {

template <class Plan, bool Maps = plan_parts<Plan>::maps_batches>
struct block_columns;
template <class Plan>
struct block_columns<Plan, false> {
  using type = columns_of<Plan>;
};
template <class Columns, class Element>
struct batch_element {
  using type = Element;
};
template <class Columns, class Element>
  requires requires { typename Columns::element; }
struct batch_element<Columns, Element> {
  using type = typename Columns::element;
};

}  // namespace detail

/// The columns in the blocks of a plan.
template <class Plan>
using block_columns_of = typename detail::block_columns<Plan>::type;

/// The element type of a plan's batches: the samples that were collated, or the views of the columns that
/// `map_batch` made from them.
template <class Plan>
using batch_element_of =
    typename detail::batch_element<block_columns_of<Plan>, typename plan_parts<Plan>::element>::type;

/// The `map_batch` stages of a plan; one without has this.
template <class Plan, bool Maps = plan_parts<Plan>::maps_batches>
class batch_maps;
template <class Plan>
class batch_maps<Plan, false> {
 public:
  static constexpr std::size_t count = 0;
  using costs = std::array<stage_cost, 0>;

  batch_maps(const Plan&, std::uint64_t) noexcept {}
  template <class Block, class Rows>
  void keep(Block&, const Rows&, costs&) const noexcept {}
};

/// In a block of a plan without `on_device`.
struct without_device_work {
  template <class Session>
  without_device_work(Session&, memory_account&) noexcept {}
};

namespace detail {

template <class Found, class... Stages>
struct stages_on_device {
  using type = Found;
};
template <class... Found, class Stage, class... Rest>
struct stages_on_device<light_tuple<Found...>, Stage, Rest...>
    : stages_on_device<light_tuple<Found...>, Rest...> {};
template <class... Found, part_of_kind<device_map_tag> Stage, class... Rest>
struct stages_on_device<light_tuple<Found...>, Stage, Rest...>
    : stages_on_device<light_tuple<Found..., Stage>, Rest...> {};
template <class Stages>
struct device_stages_among;
template <class... Stages>
struct device_stages_among<light_tuple<Stages...>> : stages_on_device<light_tuple<>, Stages...> {};

template <class Plan, class Stages>
struct device_layout;
template <class Plan>
struct device_layout<Plan, light_tuple<>> {
  static constexpr std::size_t operations = 0;
  template <std::size_t I>
  static constexpr bool changes = false;
  /// What `data(transfer, ...)` calls a column, or what was made of it.
  template <std::size_t I>
  static constexpr std::size_t place = I;
  using work = without_device_work;
};

// What the device has of a column of which it has a copy, by the host's view of it.
template <class T>
device_array<const T> copied_array(const void* data, const std::span<const T>& view) {
  return {static_cast<const T*>(data), extents(view.size())};
}
template <template <class> class View, class T>
device_array<const T> copied_array(const void* data, const View<const T>& view) {
  return {static_cast<const T*>(data), view.shape()};
}
template <class T>
device_array<const T> copied_array(const void* data, const strided_view<const T>& view) {
  return {static_cast<const T*>(data), view.shape(), view.strides()};
}
template <class T>
device_array<const T> copied_array(const void* data, const ragged_view<T>& view) {
  return {static_cast<const T*>(data), extents(view.values().size())};
}

}  // namespace detail

/// The operations on the device of a plan, by type.
template <class Plan>
using device_layout_of =
    detail::device_layout<Plan, typename detail::device_stages_among<typename Plan::stages_type>::type>;

/// The `on_device` stages of a run: prepares what their operations ask for, and starts the copy of a batch
/// with them. Everything is called by the consumer's thread.
template <class Plan, class Stages = typename detail::device_stages_among<typename Plan::stages_type>::type>
class device_works {
 public:
  static constexpr bool any = false;
  template <class Session>
  device_works(const Plan&, const Session&) noexcept {}
};

}  // namespace penstock::inline v0_1
