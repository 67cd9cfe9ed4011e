// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/destination.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/joined/window_places.hpp>

#include <span>

/// What a window delivers: the rows of a column as one array, and the mask.
namespace penstock::inline v0_1::detail {

/// Whether values of type `V` can stand one behind the other in a window: numbers and arrays of numbers.
template <class V>
inline constexpr bool fits_window =
    !blob<V> && (shape_class_of<V> == shape_class::fixed || shape_class_of<V> == shape_class::announced);
template <class V>
  requires any_record<V>
inline constexpr bool fits_window<V> = false;

/// Whether the type of a row says its shape, and that shape.
template <class V>
inline constexpr bool row_shape_known = shape_class_of<V> == shape_class::fixed;
template <class V>
[[nodiscard]] constexpr extents known_row_shape() noexcept {
  if constexpr (static_array_expression<V>)
    return V::static_shape;
  else
    return value_rank<V> == 0 ? extents() : extents(stored<V>::elements);
}
template <class V>
[[nodiscard]] extents shape_of_row(const V& value) {
  if constexpr (row_shape_known<V>)
    return known_row_shape<V>();
  else if constexpr (requires { value.shape(); })
    return value.shape();
  else
    return extents(static_cast<std::uint64_t>(value.size()));
}
template <class V, class T>
void write_row(const V& value, const destination<T>& into) {
  if constexpr (array_expression<V>) {
    write_array(value, into);
  } else if constexpr (value_rank<V> == 0) {
    *into.data() = value;
  } else if constexpr (tells_strides<V>) {
    into.copy_from(value);
  } else if constexpr (requires { value.values(); }) {
    into.copy_from(std::span<const T>(value.values()));
  } else {
    into.copy_from(std::span<const T>(value.data(), value.size()));
  }
}

/// A column of a window: the rows of field I of a plan's records, or of the plan's elements; an array
/// expression. Valid during the call that delivers it.
template <class Reader, std::size_t I, class T>
class window_values {
 public:
  using unfinished = void;
  using value_type = T;

  window_values(const Reader& reader, typename Reader::worker& w, const window_place& at, std::uint64_t epoch,
                std::size_t list, const extents& row)
      : reader_(&reader), worker_(&w), at_(&at), epoch_(epoch), list_(list), row_(row) {
    if (row.rank() == extents::max_rank) [[unlikely]]
      throw error(errc::shape,
                  {"windows: a window adds a dimension in front of rows, and those of shape ", to_string(row),
                   " have eight, the most there may be; give them fewer in map"});
  }

  [[nodiscard]] extents shape() const noexcept { return row_.prepend(reader_->places().length(list_)); }
  void write_to(const destination<T>& into) const {
    reader_->template write<I>(*at_, epoch_, list_, row_, *worker_, into);
  }
  [[nodiscard]] tensor_view<const T> finish() const {
    const extents all = shape();
    buffer& room = worker_->finished[I];
    room.resize_for_overwrite(to_size(all.elements()) * sizeof(T));
    T* const values = reinterpret_cast<T*>(room.data());
    write_to(destination<T>(values, all));
    return {values, all};
  }

 private:
  const Reader* reader_;
  typename Reader::worker* worker_;
  const window_place* at_;
  std::uint64_t epoch_;
  std::size_t list_;
  extents row_;
};

/// Which rows of a window its episode does not have: an array expression. Valid as `window_values`.
template <std::size_t I>
class window_mask {
 public:
  using unfinished = void;
  using value_type = bool;

  window_mask(const window_places& places, const window_place& at, std::size_t list, buffer& room) noexcept
      : places_(&places), at_(&at), list_(list), room_(&room) {}

  [[nodiscard]] extents shape() const noexcept { return extents(places_->length(list_)); }
  void write_to(const destination<bool>& into) const {
    std::size_t k = 0;
    into.fill_from([&] { return places_->row(*at_, list_, k++).pad; });
  }
  [[nodiscard]] tensor_view<const bool> finish() const {
    const extents all = shape();
    room_->resize_for_overwrite(to_size(all.elements()));
    bool* const values = reinterpret_cast<bool*>(room_->data());
    write_to(destination<bool>(values, all));
    return {values, all};
  }

 private:
  const window_places* places_;
  const window_place* at_;
  std::size_t list_;
  buffer* room_;
};

}  // namespace penstock::inline v0_1::detail
