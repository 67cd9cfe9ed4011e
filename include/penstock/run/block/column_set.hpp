// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/light_tuple.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/whole.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/run/block/column.hpp>
#include <penstock/run/block/online_packed_column.hpp>
#include <penstock/run/block/packed_column.hpp>

#include <array>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

/// The columns of a block: one per field of the element, or one for an element that is not a record.
namespace penstock::inline v0_1 {

namespace detail {

template <class V, class Policy, shape_class Shape = shape_class_of<V>>
struct column_for {
  using type = flexible_column<typename stored<V>::type, Policy>;
};
template <class V, class Policy>
struct column_for<V, Policy, shape_class::fixed> {
  using type =
      fixed_column<V, std::conditional_t<arranges<order_of<Policy>>, order_of<Policy>, stack_policy>>;
};

template <class V, bool First, shape_class Shape>
struct column_for<V, packed_policy<First>, Shape> {
  using type = packed_column<typename stored<V>::type, First>;
};
template <class V, bool First>
struct column_for<V, packed_policy<First>, shape_class::fixed> {
  using type = packed_column<typename stored<V>::type, First>;
};

template <class V, bool First, shape_class Shape>
struct column_for<V, online_packed_policy<First>, Shape> {
  using type = online_packed_column<typename stored<V>::type, First>;
};
template <class V, bool First>
struct column_for<V, online_packed_policy<First>, shape_class::fixed> {
  using type = online_packed_column<typename stored<V>::type, First>;
};

template <class Batch, class V>
struct columns_for {
  using type = light_tuple<typename column_for<V, typename Batch::template policy<void>>::type>;
};
template <class Batch, class... Fields>
struct columns_for<Batch, record<Fields...>> {
  using type =
      light_tuple<typename column_for<std::remove_cvref_t<typename Fields::type>,
                                      typename Batch::template policy<typename Fields::name_type>>::type...>;
};

/// Bytes of a row of columns, as far as their types say.
template <class Columns>
inline constexpr std::uint64_t row_bytes_of = 0;
template <class Column>
  requires requires { Column::row_bytes; }
inline constexpr std::uint64_t row_bytes_of<Column> = Column::row_bytes;
template <class... Columns>
inline constexpr std::uint64_t row_bytes_of<light_tuple<Columns...>> =
    (row_bytes_of<Columns> + ... + std::uint64_t{0});

/// Whether a column keeps sequences that are put into rows later.
template <class Column>
inline constexpr bool keeps_sequences = requires(const Column& c) { c.sequence_length(std::size_t{}); };

template <class Column, class Run>
inline constexpr bool takes_run =
    requires(Column& column, const Run& run) { column.write_contiguous(std::size_t{}, std::size_t{}, run); };
/// Whether columns take a record of value runs.
template <class Columns, class Runs>
inline constexpr bool take_runs = false;
template <class... Columns, class... Fields>
  requires(sizeof...(Columns) == sizeof...(Fields))
inline constexpr bool take_runs<light_tuple<Columns...>, record<Fields...>> =
    (takes_run<Columns, typename Fields::type> && ...);

}  // namespace detail

/// The columns that collect a plan's elements.
template <class Columns>
class column_set {
 public:
  /// Whether the shapes of the values of a batch are compared with each other.
  static constexpr bool compares = []<class... Each>(const light_tuple<Each...>*) {
    return (Each::compares || ...);
  }(static_cast<const Columns*>(nullptr));
  static constexpr std::size_t size = Columns::size;
  /// Bytes of a row, including gaps, as far as the types say.
  static constexpr std::uint64_t row_bytes = detail::row_bytes_of<Columns>;

  template <class Session>
  column_set(Session& session, memory_account& account)
      : columns_([&]<class... Each>(const light_tuple<Each...>*) {
          return Columns{{{Each(session, account)}...}};
        }(static_cast<const Columns*>(nullptr))) {}

  void begin(std::size_t slots) {
    each([&](auto& column) { column.begin(slots); });
  }
  void grow(std::size_t slots, std::size_t written) {
    each([&](auto& column) { column.grow(slots, written); });
  }
  template <class V>
  void write(std::size_t slot, V&& value) {
    if constexpr (any_record<V> && !whole_rows) {
      [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        (detail::at<Is>(columns_).write(slot, get<Is>(std::forward<V>(value))), ...);
      }(std::make_index_sequence<size>{});
      if constexpr (sequences > 1) check_lengths(slot);
    } else {
      detail::at<0>(columns_).write(slot, std::forward<V>(value));
    }
  }
  /// Writes `count` slots at once, from a record of value runs.
  template <class Runs>
    requires detail::take_runs<Columns, Runs>
  void write_contiguous(std::size_t slot, std::size_t count, const Runs& values) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (detail::at<Is>(columns_).write_contiguous(slot, count, get<Is>(values)), ...);
    }(std::make_index_sequence<size>{});
  }
  /// Leaves a slot without a value: zeros, or an empty row.
  void blank(std::size_t slot) {
    each([&](auto& column) { column.blank(slot); });
  }
  /// Before the slots are written: where they are in rows.
  void place(packed_step& rows) {
    each([&](auto& column) {
      if constexpr (requires { column.place(rows); }) column.place(rows);
    });
  }
  /// Discards what was written to a slot, perhaps only in part.
  void unwrite(std::size_t slot) noexcept {
    each([&](auto& column) { column.unwrite(slot); });
  }
  void choose_lead(std::size_t valid) noexcept {
    each([&](auto& column) { column.choose_lead(valid); });
  }
  void finish(std::size_t first, std::size_t slots, std::size_t valid, bool holes = false) {
    std::uint64_t lowest = 0;
    std::exception_ptr failure;  // where several columns failed, that of the lowest slot
    each([&](auto& column) {
      try {
        column.finish(first, slots, valid, holes);
      } catch (const slot_error& e) {
        if (failure == nullptr || e.slot < lowest) {
          lowest = e.slot;
          failure = std::current_exception();
        }
      }
    });
    if (failure != nullptr) std::rethrow_exception(failure);
  }
  void copy(std::size_t to, const column_set& other, std::size_t first, std::size_t count) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (detail::at<Is>(columns_).copy(to, detail::at<Is>(other.columns_), first, count), ...);
    }(std::make_index_sequence<size>{});
  }
  /// Puts row `from` of a window into a slot of this batch, and what is to be in a row into its place there.
  void lay(std::size_t to, const column_set& window, std::size_t from) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (lay_one(detail::at<Is>(columns_), to, detail::at<Is>(window.columns_), from), ...);
    }(std::make_index_sequence<size>{});
  }
  /// Makes room for so many rows of a batch, of which `keep` are there.
  void reserve_rows(std::size_t rows, std::size_t keep) {
    each([&]<class Column>(Column& column) {
      if constexpr (detail::keeps_sequences<Column>) column.reserve_rows(rows, keep);
    });
  }
  /// The tokens of the sample in a slot of a window.
  [[nodiscard]] std::uint64_t sequence_length(std::size_t slot) const {
    std::uint64_t length = 0;
    each_sequence([&](const auto& column) { length = column.sequence_length(slot); });
    return length;
  }
  /// The shapes found in the last round, which the next round may expect.
  using known_shapes = std::array<std::optional<extents>, size>;
  [[nodiscard]] known_shapes shapes() const {
    return columns_.apply([](const auto&... columns) { return known_shapes{columns.known_shape()...}; });
  }
  void expect(const known_shapes& shapes) {
    std::size_t i = 0;
    each([&](auto& column) { column.expect(shapes[i++]); });
  }
  /// The shapes of the values in a slot.
  using slot_shapes = std::array<extents, size>;
  [[nodiscard]] slot_shapes shapes_at(std::size_t slot) const {
    return columns_.apply([&](const auto&... columns) { return slot_shapes{columns.shape_at(slot)...}; });
  }
  /// Whether other values may be compared with those in a slot.
  [[nodiscard]] bool can_lead(std::size_t slot) const {
    return columns_.apply([&](const auto&... columns) { return (columns.can_lead(slot) && ...); });
  }
  /// Before `finish`: the shapes that the values of the batch must match, and that it shows if it has none.
  void lead(const slot_shapes& shapes) {
    std::size_t i = 0;
    each([&](auto& column) { column.lead(shapes[i++]); });
  }
  [[nodiscard]] std::uint64_t held() const noexcept {
    return columns_.apply([](const auto&... columns) { return (columns.held() + ... + std::uint64_t{0}); });
  }
  void release() noexcept {
    each([](auto& column) { column.release(); });
  }
  template <std::size_t I>
  [[nodiscard]] auto& column() {
    return detail::at<I>(columns_);
  }
  template <std::size_t I>
  [[nodiscard]] auto view(std::size_t first, std::size_t slots) const {
    return detail::at<I>(columns_).view(first, slots);
  }
  template <std::size_t I>
  [[nodiscard]] auto edit_one(std::size_t first, std::size_t slots) {
    return detail::at<I>(columns_).edit(first, slots);
  }
  /// Writable columns of a batch: a record of views, or one view.
  template <class Views>
  [[nodiscard]] Views edit(std::size_t first, std::size_t slots) {
    return columns_.apply([&](auto&... columns) { return Views(columns.edit(first, slots)...); });
  }
  [[nodiscard]] std::array<bytes_view, size> bytes(std::size_t first, std::size_t slots) const {
    return columns_.apply(
        [&](const auto&... columns) { return std::array<bytes_view, size>{columns.bytes(first, slots)...}; });
  }

 private:
  static constexpr bool whole_rows = requires(detail::type_at<0, Columns>& c) { c[0]; };

  /// Fields that are kept until they are put into rows.
  static constexpr int sequences = []<class... Each>(const light_tuple<Each...>*) {
    return (int{detail::keeps_sequences<Each>} + ... + 0);
  }(static_cast<const Columns*>(nullptr));

  void each_sequence(auto f) const {
    columns_.apply([&](const auto&... columns) {
      const auto one = [&]<class Column>(const Column& column) {
        if constexpr (detail::keeps_sequences<Column>) f(column);
      };
      (one(columns), ...);
    });
  }
  void check_lengths(std::size_t slot) const {
    const std::uint64_t expected = sequence_length(slot);
    each_sequence([&](const auto& column) {
      if (const std::uint64_t found = column.sequence_length(slot); found != expected) [[unlikely]]
        detail::refuse_lengths(found, expected);
    });
  }
  template <class Column>
  static void lay_one(Column& column, std::size_t to, const Column& window, std::size_t from) {
    if constexpr (detail::keeps_sequences<Column>)
      column.lay(to, window, from);
    else
      column.copy(to, window, from, 1);
  }
  void each(auto f) {
    columns_.apply([&](auto&... columns) { (f(columns), ...); });
  }

  Columns columns_;
};

namespace detail {

template <class Plan, bool Batched = plan_parts<Plan>::batched>
struct columns_of_plan {
  using parts = plan_parts<Plan>;
  using batch = typename batch_behind<detail::type_at<parts::in::batch, typename parts::stages>,
                                      typename parts::in::template first<pack_tag, parts>>::type;
  using type = column_set<typename columns_for<batch, typename parts::element>::type>;
};
template <class Plan>
struct columns_of_plan<Plan, false> {
  using type = column_set<light_tuple<whole_column<whole<typename plan_parts<Plan>::element>>>>;
};

}  // namespace detail

/// The columns of a plan's batches.
template <class Plan>
using columns_of = typename detail::columns_of_plan<Plan>::type;

}  // namespace penstock::inline v0_1
