// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/collate.hpp>
#include <penstock/core/packed_rows.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/uneven_views.hpp>

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

/// The columns of a batch, as a function of `map_batch` receives them, and those that it may return.
namespace penstock::inline v0_1 {

namespace detail {

struct batch_facts {
  std::size_t size = 0;    ///< slots
  std::size_t valid = 0;   ///< slots with a sample; includes holes
  std::size_t holes = 0;   ///< how many of `valid` are holes
  std::size_t global = 0;  ///< samples of the global step
  position place;
  /// 1 for each slot that holds a sample; empty until requested
  mutable std::vector<std::uint8_t> mask{};

  /// The mask, made if nobody has requested it before.
  [[nodiscard]] std::span<const std::uint8_t> valid_mask() const {
    if (mask.empty()) {
      mask.assign(size, 0);
      std::fill_n(mask.begin(), static_cast<std::ptrdiff_t>(valid), std::uint8_t{1});
    }
    return mask;
  }
};

}  // namespace detail

/// The columns of one batch, to be changed in place; a function of `map_batch` is called with them.
/// `get<"name">(columns)` returns the view that `get<"name">(batch)` would return, but writable: a span of
/// numbers, a `tensor_view` with the slots in front, a `strided_view` of pitched rows, or the views of ragged
/// and padded values and arrays. Lengths and shapes are fixed.
///
/// Slots without a sample are included: padding at the end, and the holes that `bad_samples::skip` leaves.
/// They are zeros; `valid()` tells them apart. Valid during the call.
template <class Views>
class batch_columns {
 public:
  using is_batch_columns = void;
  /// A record of views, or the view of values without names.
  using views_type = Views;

  batch_columns(const Views& views, const detail::batch_facts& facts) noexcept
      : views_(views), facts_(&facts) {}

  /// Slots of this rank's batch, padding included. After `pack`, the samples and pieces of samples in all
  /// rows.
  [[nodiscard]] std::size_t size() const noexcept { return facts_->size; }
  /// Slots that hold a sample.
  [[nodiscard]] std::size_t valid_size() const noexcept { return facts_->valid - facts_->holes; }
  /// Samples of the whole global step, as `batch.global_size()`.
  [[nodiscard]] std::size_t global_size() const noexcept { return facts_->global; }
  /// 1 for each slot that holds a sample, 0 for padding and for holes. The first call allocates.
  [[nodiscard]] std::span<const std::uint8_t> valid() const { return facts_->valid_mask(); }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return facts_->place.epoch; }
  /// The number of this batch in its epoch.
  [[nodiscard]] std::uint64_t step() const noexcept { return facts_->place.index; }

  /// The view of field `I`, in the order of the element's type; use 0 for values without names.
  template <std::size_t I>
  [[nodiscard]] auto field() const noexcept {
    if constexpr (any_record<Views>)
      return views_.template at<I>();
    else
      return views_;
  }
  /// The only field of a batch whose elements are not records.
  [[nodiscard]] Views values() const noexcept
    requires(!any_record<Views>)
  {
    return views_;
  }
  [[nodiscard]] auto begin() const noexcept
    requires(!any_record<Views> && requires(const Views& v) { v.begin(); })
  {
    return views_.begin();
  }
  [[nodiscard]] auto end() const noexcept
    requires(!any_record<Views> && requires(const Views& v) { v.end(); })
  {
    return views_.end();
  }

 private:
  Views views_;
  const detail::batch_facts* facts_;
};

/// The columns of any batch, also by reference.
template <class T>
concept any_batch_columns = requires { typename std::remove_cvref_t<T>::is_batch_columns; };

/// The view of a field of a batch's columns: `get<"image">(columns)`.
template <fixed_string Name, any_batch_columns C>
[[nodiscard]] auto get(C&& columns) noexcept {
  using views = typename std::remove_cvref_t<C>::views_type;
  constexpr bool found = has_field<views, name_of<Name>>;
  if constexpr (!found)
    mistakes::no_such_field_in_batch::explain(
        std::type_identity<typename detail::names_of_record<views>::type>{});
  if constexpr (found)
    return columns.template field<views::template index_of<name_of<Name>>>();
  else
    return std::span<int>();  // one error is enough
}
template <std::size_t I, any_batch_columns C>
[[nodiscard]] auto get(C&& columns) noexcept {
  return columns.template field<I>();
}

namespace detail {

template <class V, class Policy>
consteval auto editing_view() {
  using kept = stored<V>;
  if constexpr (lays_into_rows<Policy>) {
    return std::type_identity<packed_view<typename kept::type>>{};
  } else if constexpr (kept::shape == shape_class::fixed) {
    if constexpr (kept::scalar)
      return std::type_identity<std::span<typename kept::type>>{};
    else if constexpr (has_gaps<Policy>)
      return std::type_identity<strided_view<typename kept::type>>{};
    else
      return std::type_identity<tensor_view<typename kept::type>>{};
  } else if constexpr (has_gaps<Policy>) {
    return std::type_identity<strided_view<typename kept::type>>{};
  } else if constexpr (stacks<Policy>) {
    return std::type_identity<tensor_view<typename kept::type>>{};
  } else if constexpr ((padding_multiple<Policy> != 0)) {
    return std::type_identity<basic_padded_view<typename kept::type>>{};
  } else if constexpr (pads_all<Policy>) {
    return std::type_identity<basic_padded_arrays_view<typename kept::type>>{};
  } else {
    return std::type_identity<basic_ragged_view<typename kept::type>>{};
  }
}
template <class V, class Policy>
using editing = typename decltype(editing_view<std::remove_cvref_t<V>, Policy>())::type;

/// The views of a chain's columns at some place after `batch`: `Columns` is the `batch` stage, or what a
/// `map_batch` there has returned.
template <class Columns, class Element>
struct views_of_columns : std::type_identity<Columns> {};
template <part_of_kind<batch_tag> Batch, class Element>
struct views_of_columns<Batch, Element>
    : std::type_identity<editing<Element, typename Batch::template policy<void>>> {};
template <part_of_kind<batch_tag> Batch, class... Fields>
struct views_of_columns<Batch, record<Fields...>>
    : std::type_identity<record<basic_field<
          typename Fields::name_type,
          editing<typename Fields::type, typename Batch::template policy<typename Fields::name_type>>>...>> {
};

template <class Columns, class Stage, class Element>
struct views_of_columns<columns_on_device<Columns, Stage>, Element> : views_of_columns<Columns, Element> {};

/// The views of the columns at a place after `batch`, with which functions there are called.
template <class Context>
using views_in = typename views_of_columns<typename Context::columns,
                                           std::remove_cvref_t<typename Context::element>>::type;

/// Whether a value can be a column of a batch: numbers with a shape that the value knows.
template <class V>
inline constexpr bool is_column = [] {
  if constexpr (shape_class_of<V> == shape_class::fixed)
    return !stored<V>::scalar;
  else
    return shape_class_of<V> == shape_class::announced;
}();

/// The view of a returned column: a span of a list of numbers, a `tensor_view` of anything with a shape.
template <class V>
using returned_view = std::conditional_t<requires(const V& v) {
  v.shape();
}, tensor_view<typename stored<V>::type>, std::span<typename stored<V>::type>>;

/// The views of the new columns that a function of `map_batch` returns; void if it returns nothing, or
/// something that cannot be columns.
template <class R>
struct returned_columns {
  static constexpr bool are_columns = false;
  using type = void;
};
template <class R>
  requires is_column<R>
struct returned_columns<R> {
  static constexpr bool are_columns = true;
  using type = returned_view<R>;
};
template <class... Fields>
  requires(sizeof...(Fields) != 0 && (is_column<std::remove_cvref_t<typename Fields::type>> && ...))
struct returned_columns<record<Fields...>> {
  static constexpr bool are_columns = true;
  using type = record<
      basic_field<typename Fields::name_type, returned_view<std::remove_cvref_t<typename Fields::type>>>...>;
};

}  // namespace detail

}  // namespace penstock::inline v0_1
