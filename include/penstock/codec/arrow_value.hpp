// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/detail/arrow_values.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/codec/tf_example.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/core/value_run.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// A value of an Arrow column, as `arrow_ipc` and `arrow_stream` pass it on.
template <class T>
concept arrow_member = requires(const std::remove_cvref_t<T>& value) {
  requires std::same_as<std::remove_cvref_t<decltype(value.cell())>, arrow_cell>;
};

template <class T>
concept arrow_numeric = arrow_number_of<T> != arrow_number::none;

/// How `T` is read: `type` is what comes out, and `read(cell, scratch)` reads it from a value that is not
/// null.
template <class T>
struct arrow_form {
  static constexpr bool possible = false;
  using type = T;
};

template <arrow_numeric T>
struct arrow_form<T> {
  static constexpr bool possible = true;
  using type = T;
  static T read(const arrow_cell& cell, buffer&) {
    if (cell.type().number == arrow_number_of<T>) [[likely]]
      return cell.template number<T>();
    if constexpr (std::integral<T>) {
      const arrow_whole whole = whole_arrow_number(cell);
      if (whole.negative ? !std::in_range<T>(static_cast<std::int64_t>(whole.bits))
                         : !std::in_range<T>(whole.bits))
        arrow_out_of_range(cell.type());
      return static_cast<T>(whole.bits);
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(real_arrow_number(cell, sizeof(T)));
    } else {
      return T(static_cast<float>(real_arrow_number(cell, sizeof(T))));
    }
  }
};
template <>
struct arrow_form<bool> {
  static constexpr bool possible = true;
  using type = bool;
  static bool read(const arrow_cell& cell, buffer&) {
    if (cell.type().layout != arrow_layout::bits) other_arrow_type(cell.type(), "bool");
    return cell.bit();
  }
};
template <>
struct arrow_form<bytes> {
  static constexpr bool possible = true;
  using type = bytes_view;
  static bytes_view read(const arrow_cell& cell, buffer&) { return arrow_bytes(cell); }
};
template <>
struct arrow_form<std::string_view> {
  static constexpr bool possible = true;
  using type = std::string_view;
  static std::string_view read(const arrow_cell& cell, buffer&) { return text_of(arrow_bytes(cell)); }
};
template <>
struct arrow_form<std::string> {
  static constexpr bool possible = true;
  using type = std::string;
  static std::string read(const arrow_cell& cell, buffer&) { return std::string(text_of(arrow_bytes(cell))); }
};
template <std::size_t N>
struct arrow_form<std::array<std::byte, N>> {
  static constexpr bool possible = N != 0;
  using type = std::array<std::byte, N>;
  static type read(const arrow_cell& cell, buffer&) {
    if (cell.type().layout != arrow_layout::fixed || cell.type().width != N)
      other_arrow_type(cell.type(), "a value of as many bytes as the array has");
    const bytes_view found = cell.bytes();
    type copy;
    std::copy(found.begin(), found.end(), copy.begin());
    return copy;
  }
};
template <class T>
struct arrow_form<std::optional<T>> {
  static constexpr bool possible = arrow_form<T>::possible;
  using type = std::optional<typename arrow_form<T>::type>;
  static type read(const arrow_cell& cell, buffer& scratch) {
    if (cell.is_null()) return std::nullopt;
    return arrow_form<T>::read(cell, scratch);
  }
};
template <class T>
inline constexpr bool arrow_takes_null = false;
template <class T>
inline constexpr bool arrow_takes_null<std::optional<T>> = true;

/// The value, or an error if it is null and `T` has nothing for that.
template <class T>
[[nodiscard]] typename arrow_form<T>::type read_arrow(const arrow_cell& cell, buffer& scratch) {
  if constexpr (!arrow_takes_null<T>)
    if (cell.is_null()) [[unlikely]]
      null_arrow_value(cell.type());
  return arrow_form<T>::read(cell, scratch);
}
template <arrow_numeric T>
struct arrow_form<std::span<const T>> {
  static constexpr bool possible = true;
  using type = std::span<const T>;
  static type read(const arrow_cell& cell, buffer& scratch) {
    const bytes_view values = arrow_list_bytes(cell.list(), arrow_number_of<T>, sizeof(T));
    return {reinterpret_cast<const T*>(aligned_arrow_values(values, alignof(T), scratch)),
            values.size() / sizeof(T)};
  }
};
template <class T, class A>
struct arrow_form<std::vector<T, A>> {
  static constexpr bool possible =
      arrow_form<T>::possible && std::same_as<typename arrow_form<T>::type, T> && !std::same_as<T, bool>;
  using type = std::vector<T, A>;
  static type read(const arrow_cell& cell, buffer& scratch) {
    const arrow_slice values = cell.list();
    check_arrow_count(values);
    type all;
    all.reserve(to_size(values.count));
    for (std::uint64_t i = 0; i < values.count; ++i)
      all.push_back(read_arrow<T>({*values.column, values.first + i}, scratch));
    return all;
  }
};

}  // namespace detail

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
/// - `std::vector<V>` of any of these that own what they are: a list, also of lists;
/// - `std::optional<V>`: none where the value is null.
/// Dictionary values are read as the values that they stand for.
/// Kind: pointwise, keeps all guarantees. Cost per sample: reading the value; no allocation except for those
/// of `std::vector` and `std::string`, and the scratch of a list that is not aligned. Thread-safe, with a
/// scratch per thread.
/// Throws `errc::missing` for a null where `T` has nothing for it, `errc::format` for a column of another
/// type, a number out of the range of `T`, and offsets that lead out of the column.
template <class T, auto... Fill>
struct arrow_value {
  static constexpr bool possible = detail::arrow_form<T>::possible;
  static_assert(possible,
                "penstock: arrow_value<T> reads numbers, bool, bytes, std::string_view, std::string, "
                "std::array<std::byte, N>, std::span<const N> of numbers, and std::vector and std::optional "
                "of these");
  static_assert(sizeof...(Fill) == 0 ||
                    (sizeof...(Fill) == 1 && (std::is_arithmetic_v<T> || std::same_as<T, half>)),
                "penstock: arrow_value<T, value>: only a number has a value to take where a column is null; "
                "write std::optional for other types");
  static constexpr bool fill_fits = (detail::tf_default_fits<T, Fill>() && ...);
  static_assert(fill_fits, "penstock: arrow_value<T, value>: the value to take for null is not one of T");

  static constexpr std::string_view codec_name = "arrow_value";
  static constexpr bool reads_columns = true;
  struct scratch {
    buffer values;
  };

  static constexpr bool reads_runs = detail::arrow_numeric<T>;
  /// The value and those of the rows behind it, if the column is nothing but numbers of this type.
  template <class Value>
    requires reads_runs
  [[nodiscard]] detail::value_run<T> values_of(const Value& in) const noexcept {
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
      return detail::read_arrow<T>(cell, s.values);
    } else {
      detail::no_arrow_column(codec_name);
    }
  }
};

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
