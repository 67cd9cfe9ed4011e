// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/arrow_forms.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/core/contiguous_values.hpp>
#include <penstock/core/mistake.hpp>

namespace penstock::inline v0_1 {

/// A struct as `arrow_value` and `arrow_list` read it, by the names of its fields:
/// `arrow_struct<field<"role", std::string>, field<"content", std::string>>`. Becomes a `record` of them; the
/// struct may have others.
template <class... Fields>
struct arrow_struct {
  static_assert(sizeof...(Fields) != 0, "penstock: arrow_struct<> names no field");
};

/// Reads a value of an Arrow column: `arrow_value<std::int64_t>`, or `arrow_value<float, 0.0f>` with a number
/// to take where a value is null.
///
///     auto rows = arrow_ipc("train.arrow") | decode<field<"label", arrow_value<std::int64_t, -1>>,
///                                                   field<"scores", arrow_value<std::span<const float>>>>;
///
/// In: a value of `arrow_ipc` or `arrow_stream`. Out, by `T`:
/// - a whole number: any whole number of Arrow's that fits; also what dates (`date32` days, `date64`
///   milliseconds), times, timestamps and durations count, in the column's unit;
/// - `half`, `float`, `double`: a floating-point number of at most as many bytes;
/// - `bool`; `bytes`, `std::string_view`, `std::string`: binary values and texts, the first two in place;
/// - `std::array<std::byte, N>`: a value of N bytes as it lies there, as decimals (little-endian, the
///   unscaled number), `fixed_size_binary[N]` and intervals have;
/// - `std::span<const N>`: a list of numbers of exactly that type, in place; becomes a ragged batch;
/// - `std::span<const bool>`: a list of truth values, in the worker's scratch; becomes a ragged batch;
/// - `std::array<N, K>`: a list of K numbers;
/// - `std::vector<V>`, or `arrow_list<V>`, of any of these: a list, also of lists, views and structs;
/// - `arrow_struct<field<"name", V>...>`: a struct in a list or a map, as a record; the fields of other
/// structs are
///   columns of their own;
/// - `std::map<K, V>` or another map, `std::vector<std::pair<K, V>>`: a map; `std::pair<A, B>`: a struct of
/// two
///   fields;
/// - `std::optional<V>`: none where the value is null, and a field that a struct lacks.
/// Dictionary values are read as the values that they stand for. Texts and spans within others are views that
/// live as long as the sample: read what is kept as `std::string` and `std::vector`.
/// Kind: pointwise, keeps all guarantees. Cost per sample: reading the value; no allocation except for those
/// of `std::vector`, maps and `std::string`, and the scratch of a list that is not aligned. Thread-safe, with
/// a scratch per thread.
/// Throws `errc::missing` for a null, or a field that a struct lacks, where `T` has nothing for it,
/// `errc::format` for a column of another type, a number out of the range of `T`, and offsets that lead out
/// of the column.
template <class T, auto... Fill>
struct arrow_value {
  static constexpr bool possible = detail::arrow_form<T>::possible;
  static_assert(possible,
                "penstock: arrow_value<T> reads numbers, bool, bytes, std::string_view, std::string, "
                "std::array<std::byte, N>, std::span<const N> of numbers or bool, and std::vector, "
                "std::optional, maps and arrow_struct<field<\"name\", T>...> of these");
  static_assert(sizeof...(Fill) == 0 ||
                    (sizeof...(Fill) == 1 && (std::is_arithmetic_v<T> || std::same_as<T, half>)),
                "penstock: arrow_value<T, value>: only a number has a value to take where a column is null; "
                "write std::optional for other types");
  static constexpr bool fill_fits = (detail::tf_default_fits<T, Fill>() && ...);
  static_assert(fill_fits, "penstock: arrow_value<T, value>: the value to take for null is not one of T");

  static constexpr std::string_view codec_name = "arrow_value";
  static constexpr bool reads_columns = true;
  struct scratch {
    detail::arrow_room room;
  };

  static constexpr bool reads_contiguous = detail::arrow_numeric<T>;
  /// The value and those of the rows behind it, if the column is nothing but numbers of this type.
  template <class Value>
    requires reads_contiguous
  [[nodiscard]] detail::contiguous_values<T> values_of(const Value& in) const noexcept {
    return {in.plain(arrow_number_of<T>)};
  }

  template <class Value>
  [[nodiscard]] typename detail::arrow_form<T>::type decode(const Value& in, scratch& s) const {
    if constexpr (detail::arrow_member<Value>) {
      if constexpr (detail::arrow_numeric<T> && requires { in.plain(arrow_number_of<T>); })
        if (const std::byte* const there = in.plain(arrow_number_of<T>)) [[likely]] {
          T value;
          std::memcpy(&value, there, sizeof(T));
          return value;
        }
      const arrow_cell& cell = in.cell();
      if constexpr (sizeof...(Fill) != 0)
        if (cell.is_null()) return (static_cast<T>(Fill), ...);
      s.room.begin();
      return detail::read_arrow<T>(cell, s.room);
    } else {
      detail::no_arrow_column(codec_name);
    }
  }
};

/// Reads lists of an Arrow column: `arrow_value<std::vector<T>>` in fewer words.
///
///     using message = arrow_struct<field<"role", std::string>, field<"content", std::string>>;
///     using chat = field<"messages", arrow_list<message>>;  // for decode<chat>
///
/// Out: a `std::vector` of what `arrow_value<T>` gives. Everything else is as for `arrow_value`.
template <class T>
struct arrow_list : arrow_value<std::vector<T>> {
  static constexpr std::string_view codec_name = "arrow_list";
};

template <class T>
typename detail::arrow_form<T>::type arrow_cell::as() const {
  using form = detail::arrow_form<T>;
  static_assert(form::possible, "penstock: cell.as<T>() reads what arrow_value<T> does");
  static_assert(!form::in_room,
                "penstock: cell.as<std::span<...>>() has no memory; write as<std::vector<...>>");
  detail::arrow_room none;
  return detail::read_arrow<T>(*this, none);
}

/// Reads arrays of an Arrow column: lists, or lists of lists, of numbers of exactly type `T`, whose lengths
/// make them an array. So are tensors of fixed shape, and the arrays of Hugging Face's Array2D to Array5D.
///
///     auto rows = arrow_ipc("train.arrow") | decode<field<"pixels", arrow_array<std::uint8_t>>>;
///
/// In: a value of `arrow_ipc` or `arrow_stream`. Out: an array expression of one to eight dimensions, in
/// place, that is copied once, straight to its destination. The shape of a `fixed_shape_tensor`, which only
/// its metadata have, is that of its list: one dimension; give another with `map`.
/// Kind: pointwise, keeps all guarantees. Cost per sample: one look at each inner list of variable length; no
/// allocation. Thread-safe, with a scratch per thread.
/// Throws `errc::format` for a column of another type, `errc::shape` for lists that make no array,
/// `errc::missing` for a null.
template <class T>
struct arrow_array {
  static_assert(arrow_number_of<T> != arrow_number::none,
                "penstock: arrow_array<T> needs a whole number type, half, float or double");

  static constexpr std::string_view codec_name = "arrow_array";
  static constexpr bool reads_columns = true;
  struct scratch {
    buffer values;
  };

  template <class Value>
  [[nodiscard]] npy_array<T> decode(const Value& in, scratch& s) const {
    if constexpr (detail::arrow_member<Value>) {
      if constexpr (requires { in.listed(arrow_number_of<T>); }) {
        const bytes_view flat = in.listed(arrow_number_of<T>);
        if (!flat.empty()) [[likely]]
          return {flat, extents(flat.size() / sizeof(T)), false, s.values};
      }
      if (const bytes_view flat = detail::flat_arrow_list(in.cell(), arrow_number_of<T>, sizeof(T));
          !flat.empty())
        return {flat, extents(flat.size() / sizeof(T)), false, s.values};
      const auto found = detail::find_arrow_array(in.cell(), arrow_number_of<T>, sizeof(T));
      return {found.values, found.shape, false, s.values};
    } else {
      detail::no_arrow_column(codec_name);
    }
  }
};

}  // namespace penstock::inline v0_1
