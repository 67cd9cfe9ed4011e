// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/pack.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/run/block/column.hpp>
#include <penstock/run/block/plan_blocks.hpp>
#include <penstock/run/block/slot_memory.hpp>
#include <penstock/stage/batch_columns.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

/// The columns of a block whose batches get new columns from `map_batch`.
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
  template <class V>
  void assign(const V& value) {
    const extents shape = detail::value_shape(value);
    const auto count = detail::to_size(shape.elements());
    memory_.reserve(count * sizeof(value_type));
    if (count != 0) detail::write_values(value, data(), shape, memory_.space());
    shape_ = shape;
  }
  /// For a batch without slots.
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
  returned_arrays(Session& session, memory_account& account)
      : columns_(make(session, account, std::index_sequence_for<Columns...>{})) {}

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
  /// Like `view`, but writable.
  template <std::size_t I>
  [[nodiscard]] auto edit_one() const noexcept {
    return detail::at<I>(columns_).edit();
  }

 protected:
  pack<Columns...> columns_;

 private:
  template <class Session, std::size_t... Is>
  static pack<Columns...> make(Session& session, memory_account& account, std::index_sequence<Is...>) {
    return {{detail::pack_slot<Is, Columns>{Columns(session, account)}...}};
  }
};

/// The columns that one function of `map_batch` returns, by the views that the next function receives: one
/// view, or a record of views.
template <class Views>
class returned_set : public returned_arrays<returned_column<Views>> {
 public:
  /// The element type that a batch reports.
  using element = detail::reading<Views>;
  using returned_arrays<returned_column<Views>>::returned_arrays;

  template <class R>
  void assign(const R& made) {
    detail::at<0>(this->columns_).assign(made);
  }
  [[nodiscard]] Views edit() const noexcept { return detail::at<0>(this->columns_).edit(); }
};
template <class... Fields>
class returned_set<record<Fields...>> : public returned_arrays<returned_column<typename Fields::type>...> {
 public:
  using element = record<basic_field<typename Fields::name_type, detail::reading<typename Fields::type>>...>;
  using returned_arrays<returned_column<typename Fields::type>...>::returned_arrays;

  template <class R>
  void assign(const R& made) {
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
  using last = detail::type_at<sizeof...(Sets) - 1, pack<Sets...>>;

 public:
  /// The element type that `batch_handle` reports.
  using element = typename last::element;

  template <class Session>
  mapped_columns(Session& session, memory_account& account)
      : Gathered(session, account), sets_(make(session, account, std::index_sequence_for<Sets...>{})) {}

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
  template <class Session, std::size_t... Is>
  static pack<Sets...> make(Session& session, memory_account& account, std::index_sequence<Is...>) {
    return {{detail::pack_slot<Is, Sets>{Sets(session, account)}...}};
  }
  [[nodiscard]] const last& final_set() const noexcept { return detail::at<sizeof...(Sets) - 1>(sets_); }

  pack<Sets...> sets_;
};

namespace detail {

/// A place after `batch`: the samples that were collated, and the columns there.
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
template <class Place, class Found, part_of_kind<batch_tag> Stage, class... Rest>
struct batch_way<Place, Found, Stage, Rest...>
    : batch_way<batch_place<typename Place::element, Stage>, Found, Rest...> {};
template <class Place, class... Found, part_of_kind<batch_map_tag> Stage, class... Rest>
  requires(Stage::template returns<views_in<Place>>)
struct batch_way<Place, pack<Found...>, Stage, Rest...>
    : batch_way<batch_place<typename Place::element, typename Stage::template columns_after<Place>>,
                pack<Found..., returned_set<typename Stage::template columns_after<Place>>>, Rest...> {};

template <class Plan, class Stages = typename Plan::stages_type>
struct way_of_batches;
template <class Plan, class... Stages>
struct way_of_batches<Plan, pack<Stages...>>
    : batch_way<batch_place<typename plan_parts<Plan>::element, void>, pack<>, Stages...> {};

template <class Gathered, class Sets>
struct with_returned {
  using type = Gathered;
};
template <class Gathered, class Set, class... Sets>
struct with_returned<Gathered, pack<Set, Sets...>> {
  using type = mapped_columns<Gathered, Set, Sets...>;
};

template <class Plan>
struct block_columns<Plan, true> {
  using type = typename with_returned<columns_of<Plan>, typename way_of_batches<Plan>::sets>::type;
};

}  // namespace detail

}  // namespace penstock::inline v0_1
